"""``goldset power``."""

from __future__ import annotations

import click

from goldset.cli.common import json_option, result, result_json


@click.command("power")
@click.option("--questions", "n", type=click.IntRange(2), required=True, help="Questions with an answer in the set.")
@click.option("--sd", type=click.FloatRange(0, min_open=True), default=0.3, show_default=True,
              help="Standard deviation of the per-question difference.")
@json_option
def command(n: int, sd: float, as_json: bool) -> None:
    """The smallest difference that so many questions can show."""
    from goldset.metrics import power
    from goldset.stats.compare import questions_to_detect

    figures = {**power(sd=sd, n=n), "questions_to_detect_0.03": questions_to_detect(sd, 0.03)}
    if as_json:
        result_json({"schema": "goldset.power/1", **figures})
    else:
        result(f"{n} questions, per-question differences with SD {sd:g}:\n"
               f"  smallest difference shown with 80 % power: {figures['detectable']:.3f}\n"
               f"  half-width of its 95 % interval: {figures['half_width']:.3f}\n"
               f"  questions to show 0.03: {figures['questions_to_detect_0.03']:,}")
