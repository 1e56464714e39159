"""``goldset compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from goldset.cli.common import (
    ODD,
    PATH,
    chunk_fields,
    fields_option,
    json_option,
    large_files,
    named_files,
    open_runs,
    open_set,
    result,
    result_json,
    run_option,
    say,
    set_options,
)
from goldset.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldset.pipeline.scores import Compared


@click.command("compare")
@set_options
@run_option
@click.option("--k", type=click.IntRange(1), help="The k that production serves.")
@click.option("--budget", type=click.IntRange(1), metavar="WORDS", help="Cut both lists by words instead.")
@click.option("--chunks", multiple=True, metavar="NAME=FILE",
              help="What that run's chunk ids mean, where it is another chunking than the version's (JSONL).")
@fields_option
@click.option("--earlier", type=PATH, metavar="SET",
              help="An earlier version: the first --run is measured on it, the second (or the same) on SET.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], k: int | None, budget: int | None,
            chunks: tuple[str, ...], fields: str | None, earlier: Path | None, as_json: bool) -> int:
    """Two systems on the same questions: the paired difference."""
    from goldset.pipeline.scores import compare_any
    from goldset.pipeline.versions import compare_versions_any

    names = chunk_fields(fields, chunks=chunks)
    if len(runs) != 2 and not (earlier and len(runs) == 1):
        raise UsageError(f"name two runs, --run A=FILE --run B=FILE; {len(runs)} given")
    if (k is None) == (budget is None):
        raise UsageError("name one cut: --k N, the passages that production serves, or --budget WORDS")
    large = None if chunks or earlier else large_files(labelled, qrels, questions, corpus, runs,
                                                       whole=None if budget is None else "--budget")
    if large is not None and k is not None:
        from goldset.pipeline.parts import compare_in_parts

        found = compare_in_parts(*large, k=k, relevant_from=relevant_from)
        if found is not None:
            return _finish(found, as_json=as_json)
        say(ODD)
    tables = open_runs(runs)
    gold, own = open_set(labelled, qrels, questions, corpus, relevant_from), named_files(chunks, "--chunks")
    compared: Compared
    if earlier is None:
        compared = compare_any(gold, tables, k=k, budget=budget, chunks=own, fields=names)
    elif k is None:
        raise UsageError("--earlier compares two versions at --k; leave out --budget")
    else:
        old = open_set(earlier, None, None, None, relevant_from)
        compared = compare_versions_any(old, gold, tables, k=k, chunks=own, fields=names)
    return _finish(compared, as_json=as_json)


def _finish(compared: Compared, *, as_json: bool) -> int:
    """Print the answer; the exit code of the verdict."""
    if as_json:
        result_json(compared.as_json())
    else:
        result(compared.text())
    return int(ExitCode.TOO_LITTLE_DATA if compared.verdict == "too_few_to_tell" else ExitCode.DONE)
