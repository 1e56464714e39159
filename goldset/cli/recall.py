"""``goldset recall``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import (
    PATH,
    json_option,
    numbers,
    open_runs,
    open_set,
    result,
    result_json,
    run_option,
    set_options,
)
from goldset.errors import UsageError


@click.command("recall")
@set_options
@run_option
@click.option("--k", "cutoffs", metavar="N[,N]", help="Cutoffs; default: the serving k of a published version.")
@click.option("--budget", type=click.IntRange(1), metavar="WORDS", help="Cut the served list by words instead.")
@click.option("--by", "slices", multiple=True, metavar="COLUMN", help="Also by a column of the questions.")
@click.option("--chunks", type=PATH, help="What the runs' chunk ids mean, where it is another chunking (JSONL).")
@click.option("--min", "gate", type=float, metavar="X",
              help="Pass if the lower bound reaches X, fail if the upper does not.")
@click.option("--explain", is_flag=True, help="Print how recall is counted, and do nothing else.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], cutoffs: str | None, budget: int | None,
            slices: tuple[str, ...], chunks: Path | None, gate: float | None, explain: bool, as_json: bool) -> int:
    """Recall at the k that production serves, with an interval."""
    from goldset.pipeline import scores

    if explain:
        result(scores.explain())
        return 0
    gold = open_set(labelled, qrels, questions, corpus, relevant_from)
    tables = open_runs(runs)
    if not tables:
        raise UsageError("name at least one run: --run NAME=FILE")
    measured = scores.recall_any(gold, tables, ks=numbers(cutoffs, "--k"), budget=budget, by=slices,
                                 chunks=None if chunks is None else scores.read_chunking(chunks))
    if as_json:
        result_json(measured.as_json())
    else:
        result(measured.text())
    return measured.gate(gate)
