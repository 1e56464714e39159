"""``goldset plan``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("plan")
@config_option
@json_option
def command(config_path: Path, as_json: bool) -> None:
    """What a rebuild would cost: pairs, calls, tokens, reading hours."""
    from goldset.config import load_config
    from goldset.pipeline import rebuild
    from goldset.pipeline.plan import plan_cost

    config = load_config(config_path)
    artifacts = rebuild(config, until="pool", quiet=as_json, say=say)
    cost = plan_cost(config, artifacts)
    if as_json:
        result_json({"schema": "goldset.plan/1", **cost})
        return
    lines = [f"{cost['questions']} questions, {cost['pairs']:,} pairs "
             f"({cost['pairs'] / cost['questions']:.1f} a question)",
             f"judge: {cost['calls']:,} calls, about {cost['tokens']:,} tokens"
             + (f", {cost['money']:.2f} in the currency of the prices" if cost["money"] is not None else ""),
             f"reading everything: {cost['full_hours']:.1f} h"]
    lines += [f"profile {name}: {row['items_low']:,} to {row['items_high']:,} items, {row['hours_low']:.1f} to "
              f"{row['hours_high']:.1f} h, if the judge says yes to {cost['yes_low']:.0%} to {cost['yes_high']:.0%}"
              for name, row in cost["profiles"].items()]
    result("\n".join(lines))
