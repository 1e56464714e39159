"""``goldset twins``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from goldset.cli.common import config_option, json_option, result, result_json


@click.group("twins")
def command() -> None:
    """Passages that are almost the same: listed, merged, kept apart."""


@command.command("list")
@config_option
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show the most alike.")
@json_option
def list_(config_path: Path, limit: int, as_json: bool) -> None:
    """Near twins: how alike, where they differ, what was decided."""
    from goldset.config import load_config
    from goldset.pipeline.twins import Twins

    pairs = Twins.load(load_config(config_path)).listed()
    if as_json:
        result_json({"schema": "goldset.twins/1", "pairs": pairs})
        return
    if not pairs:
        result("no two passages are almost the same")
        return
    states = [pair["state"] for pair in pairs]
    some = "1 pair of passages is" if len(pairs) == 1 else f"{len(pairs)} pairs of passages are"
    lines = [f"{some} almost the same: {states.count('open')} open, "
             f"{states.count('merged')} merged (judged as one), {states.count('kept')} kept apart"]
    for pair in pairs[:limit]:
        lines += ["", *_shown(pair)]
    if len(pairs) > limit:
        lines += ["", f"… and {len(pairs) - limit} less alike; --limit {len(pairs)} shows all"]
    lines += ["", f"goldset twins merge -c {config_path} LEFT RIGHT --by NAME judges two as one, keep leaves them two, "
                  "undo takes either back; the next rebuild follows"]
    result("\n".join(lines))


def _shown(pair: dict[str, Any]) -> list[str]:
    """A pair, with what to take out of the left text [-so-] and to put in {+so+} to get the right one."""
    who = "by the configuration" if pair["by"] is None else f"by {pair['by']} on {pair['time'][:10]}"
    state = {"open": "open", "merged": f"merged {who}", "kept": f"kept apart {who}"}[pair["state"]]
    return [f"{pair['similarity']:.2f} alike, {state}", f"  {pair['left']}", f"  {pair['right']}",
            f"    {difference(pair['left_text'], pair['right_text'])}"]


def difference(left: str, right: str) -> str:
    """Two texts word by word: what both have around each difference, [-only left-], {+only right+}."""
    from goldset.spans.neartwins import segments

    parts = segments(left, right)
    if not {kind for kind, _ in parts} & {"left", "right"}:
        return "only white space differs"
    marked = {"left": ("[-{}-]", "red"), "right": ("{{+{}+}}", "green")}
    return " ".join(click.style(marked[kind][0].format(words), fg=marked[kind][1]) if kind in marked else words
                    for kind, words in parts)


def _decide(action: str, config_path: Path, left: str, right: str, by: str) -> None:
    from goldset.config import load_config
    from goldset.pipeline.twins import Twins

    alike = Twins.load(load_config(config_path)).decide(action, left, right, by=by, time=datetime.now(UTC))
    done = {"merge": "judged as one from the next rebuild on", "keep": "kept apart from the next rebuild on",
            "undo": "as if nothing had been decided, from the next rebuild on"}[action]
    result(f"{left} and {right} ({alike:.2f} alike): {done}")


def _decision(function: Any) -> Any:
    for option in reversed((
        config_option, click.argument("left"), click.argument("right"),
        click.option("--by", required=True, metavar="NAME", help="Who decides; it is kept with the time."),
    )):
        function = option(function)
    return function


@command.command("merge")
@_decision
def merge(config_path: Path, left: str, right: str, by: str) -> None:
    """Judge two passages as one."""
    _decide("merge", config_path, left, right, by)


@command.command("keep")
@_decision
def keep(config_path: Path, left: str, right: str, by: str) -> None:
    """Keep two passages apart, whatever the configuration says."""
    _decide("keep", config_path, left, right, by)


@command.command("undo")
@_decision
def undo(config_path: Path, left: str, right: str, by: str) -> None:
    """Take back what was decided about two passages."""
    _decide("undo", config_path, left, right, by)
