"""``goldset compare``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import (
    PATH,
    fields_option,
    json_option,
    named_fields,
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
@fields_option
@click.option("--earlier", type=PATH, metavar="SET",
              help="An earlier version: the first --run is measured on it, the second (or the same) on SET.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], k: int, chunks: tuple[str, ...], fields: str | None,
            earlier: Path | None, as_json: bool) -> int:
    """Two systems on the same questions: the paired difference."""
    from goldset.pipeline.scores import Compared, compare_any
    from goldset.pipeline.versions import compare_versions_any

    names = named_fields(fields, chunks=chunks)
    tables = open_runs(runs)
    if len(tables) != 2 and not (earlier and len(tables) == 1):
        raise UsageError(f"name two runs, --run A=FILE --run B=FILE; {len(tables)} given")
    gold, own = open_set(labelled, qrels, questions, corpus, relevant_from), named_files(chunks, "--chunks")
    compared: Compared
    if earlier is None:
        compared = compare_any(gold, tables, k=k, chunks=own, fields=names)
    else:
        old = open_set(earlier, None, None, None, relevant_from)
        compared = compare_versions_any(old, gold, tables, k=k, chunks=own, fields=names)
    if as_json:
        result_json(compared.as_json())
    else:
        result(compared.text())
    return int(ExitCode.TOO_LITTLE_DATA if compared.verdict == "too_few_to_tell" else ExitCode.DONE)
