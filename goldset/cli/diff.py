"""``goldset diff``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, json_option, result, result_json


@click.command("diff")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@json_option
def command(old: Path, new: Path, as_json: bool) -> None:
    """What changed between two published versions."""
    from goldset.formats.sets import load_set
    from goldset.gold import diff_versions

    change = diff_versions(load_set(old), load_set(new))
    if as_json:
        result_json(change)
        return
    lines = [f"{change['old']} -> {change['new']}"]
    lines += [f"  {name:<10} {row['old']:>6} -> {row['new']:<6} {row['added']} added, {row['removed']} removed, "
              f"{row['kept']} kept" for name, row in (("questions", change["questions"]), ("gold", change["gold"]))]
    lines.append(f"  judgments that turned: {change['judgments_turned']}")
    lines += [f"    {row['question_id']} {row['span_id']}: {row['old']} -> {row['new']}" for row in change["turned"]]
    result("\n".join(lines))
