"""``goldset rebuild``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("rebuild")
@config_option
@click.option("--until", metavar="STAGE",
              help="Stop after this stage: corpus, spans, questions, retrieve, pool, judge, queue.")
@json_option
def command(config_path: Path, until: str | None, as_json: bool) -> None:
    """From logs and corpus to a queue for people; resumes."""
    from goldset.config import load_config
    from goldset.pipeline import open_review, rebuild

    config = load_config(config_path)
    artifacts = rebuild(config, until=until, quiet=as_json, say=say)
    refs = [{"stage": ref.stage, "key": ref.key, "reused": ref.reused} for ref in artifacts.refs.values()]
    if "queue" not in artifacts.refs:
        result_json({"schema": "goldset.rebuild/1", "stages": refs}) if as_json else result(f"stopped after {until}")
        return
    progress = open_review(config, artifacts)
    if as_json:
        result_json({"schema": "goldset.rebuild/1", "stages": refs, "review": progress})
    else:
        carried = f", {progress['carried']} answers carried from earlier rebuilds" if progress["carried"] else ""
        result(f"queue: {progress['open']} of {progress['items']} items wait for people{carried}; "
               f"goldset review serve -c {config_path}")
