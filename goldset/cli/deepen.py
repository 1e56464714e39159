"""``goldset deepen``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("deepen")
@config_option
@click.option("--each", default=20, show_default=True, type=click.IntRange(1), help="Pairs drawn a question.")
@click.option("--down-to", default=200, show_default=True, type=click.IntRange(1),
              help="Last rank of the base systems that is drawn from; the first is below the pool's depth.")
@click.option("--dry-run", is_flag=True, help="Say what it may cost, and do nothing.")
@json_option
def command(config_path: Path, each: int, down_to: int, dry_run: bool, as_json: bool) -> None:
    """A random look below the pool, for people: what recall misses."""
    from goldset.config import load_config
    from goldset.pipeline import deep

    config = load_config(config_path)
    if dry_run:
        cost = deep.plan(config, each=each, down_to=down_to)
        if as_json:
            result_json({"schema": "goldset.deepen/1", **cost})
        else:
            result(f"at most {cost['calls']:,} pairs for the judge ({each} for each of {cost['questions']:,} "
                   f"questions), from {cost['covers']}")
        return
    found = deep.deepen(config, each=each, down_to=down_to, quiet=as_json, say=say)
    if as_json:
        result_json(found.as_json())
    else:
        result(found.text(str(config_path)))
