"""``goldset systems``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("systems")
@config_option
@click.option("--questions", type=click.IntRange(min=1), default=5, show_default=True, metavar="N",
              help="Questions that each service gets; a run file is looked up for all.")
@json_option
def command(config_path: Path, questions: int, as_json: bool) -> int:
    """A few questions to each system before anything long starts."""
    from goldset.config import load_config
    from goldset.pipeline import preflight, rebuild

    config = load_config(config_path)
    artifacts = rebuild(config, until="questions", quiet=as_json, say=say)
    tables = {name: artifacts.table(name) for name in ("documents", "chunks", "questions")}
    found = preflight.check_systems(config, tables, questions=questions)
    if as_json:
        result_json(preflight.as_json(found))
    else:
        result(preflight.text(found))
    return preflight.exit_code(found)
