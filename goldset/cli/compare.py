"""``goldset compare``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import (
    json_option,
    named_files,
    open_runs,
    open_set,
    result,
    result_json,
    run_option,
    set_options,
)
from goldset.errors import ExitCode, UsageError


@click.command("compare")
@set_options
@run_option
@click.option("--k", type=click.IntRange(1), required=True, help="The k that production serves.")
@click.option("--chunks", multiple=True, metavar="NAME=FILE",
              help="What that run's chunk ids mean, where it is another chunking than the version's (JSONL).")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], k: int, chunks: tuple[str, ...], as_json: bool) -> int:
    """Two systems on the same questions: the paired difference."""
    from goldset.pipeline.scores import compare_any

    tables = open_runs(runs)
    if len(tables) != 2:
        raise UsageError(f"name two runs, --run A=FILE --run B=FILE; {len(tables)} given")
    compared = compare_any(open_set(labelled, qrels, questions, corpus, relevant_from), tables, k=k,
                           chunks=named_files(chunks, "--chunks"))
    if as_json:
        result_json(compared.as_json())
    else:
        result(compared.text())
    return int(ExitCode.TOO_LITTLE_DATA if compared.verdict == "too_few_to_tell" else ExitCode.DONE)
