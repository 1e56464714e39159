"""``goldset plan``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("plan")
@config_option
@click.option("--measured", is_flag=True,
              help="Plan with the reading rate that the page measured, not the configured one.")
@json_option
def command(config_path: Path, measured: bool, as_json: bool) -> None:
    """What a rebuild would cost: pairs, calls, tokens, reading hours."""
    from goldset.config import load_config
    from goldset.pipeline import rebuild
    from goldset.pipeline.plan import plan_cost, plan_text
    from goldset.pipeline.poolreport import pool_text

    config = load_config(config_path)
    artifacts = rebuild(config, until="pool", quiet=as_json, say=say)
    cost = plan_cost(config, artifacts, measured=measured)
    pool = artifacts.report("pool")
    if as_json:
        result_json({"schema": "goldset.plan/1", **cost, "pool": pool})
    else:
        result(f"{plan_text(cost)}\n\n{pool_text(pool)}")
