"""``goldset recall``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goldset.cli.common import (
    ODD,
    PATH,
    chunk_fields,
    fields_option,
    json_option,
    large_files,
    named_files,
    numbers,
    open_runs,
    open_set,
    result,
    result_json,
    run_option,
    say,
    set_options,
    spare_pandas,
)
from goldset.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from goldset.formats.sets import LabelledSet
    from goldset.pipeline.scores import Measured


@click.command("recall")
@set_options
@run_option
@click.option("--k", "cutoffs", metavar="N[,N]", help="Cutoffs; default: the serving k of a published version.")
@click.option("--served-log", type=PATH, help="JSONL of what was served: the cutoffs are the k that reached readers.")
@click.option("--served-field", default="served", show_default=True,
              help="Field of --served-log with the passages, or their number.")
@click.option("--curve", is_flag=True, help="Also recall against k, with its band.")
@click.option("--plot", type=PATH, metavar="FILE", help="Also recall against k as a picture: .svg or .png.")
@click.option("--headline", type=click.FloatRange(0, 1), metavar="X", help="Also the k at which a recall of X is true.")
@click.option("--retrieved", multiple=True, metavar="NAME=FILE",
              help="The list before reranking, of the --run with that name: where is recall lost?")
@click.option("--retrieve-k", type=click.IntRange(1), help="Passages retrieved before reranking, for --retrieved.")
@click.option("--eval-k", type=click.IntRange(1), help="k of the headline figure, for --retrieved and --plot.")
@click.option("--budget", type=click.IntRange(1), metavar="WORDS", help="Cut the served list by words instead.")
@click.option("--chunks", type=PATH, help="What the runs' ids mean: another chunking of a version's documents (JSONL).")
@fields_option
@click.option("--by", "slices", multiple=True, metavar="COLUMN",
              help="Also by a column of the questions, by week or by head_tail; compared, Holm-adjusted.")
@click.option("--min", "gate", type=click.FloatRange(0, 1), metavar="X",
              help="Pass if the lower bound reaches X, fail if the upper does not.")
@click.option("--queue", is_flag=True, help="Put what is served and unjudged before people; needs --config.")
@click.option("-c", "--config", "config_path", type=PATH, help="TOML configuration that the version came from.")
@click.option("--explain", is_flag=True, help="Print how recall is counted, and do nothing else.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], cutoffs: str | None, served_log: Path | None,
            served_field: str, curve: bool, plot: Path | None, headline: float | None,
            retrieved: tuple[str, ...], retrieve_k: int | None, eval_k: int | None, budget: int | None,
            chunks: Path | None, fields: str | None, slices: tuple[str, ...], gate: float | None, queue: bool,
            config_path: Path | None, explain: bool, as_json: bool) -> int:
    """Recall at the k that production serves, with an interval."""
    from goldset.formats.runs import empty_lists
    from goldset.pipeline import scores
    from goldset.pipeline.curves import Beside, plot_form, write_plot

    if explain:
        result(scores.explain())
        return 0
    if config_path is not None and not queue:
        raise UsageError("-c names the configuration for --queue: give both, or neither")
    names = chunk_fields(fields, chunks=chunks)
    spare_pandas(labelled)
    ks, slices = numbers(cutoffs, "--k"), tuple(dict.fromkeys(slices))
    if plot is not None:
        plot_form(plot)  # a wrong name is told before the work, not after it
    served = None
    if served_log is not None:
        from goldset.formats.servedlog import cutoffs_of, read_served

        served = read_served(served_log, served_field)
        ks = ks or cutoffs_of(served)
    whole = (headline is not None and "--headline") or (retrieved and "--retrieved") or (budget and "--budget")
    if ks and runs and not (chunks or queue):
        large = large_files(labelled, qrels, questions, corpus, runs, whole=whole or None)
        if large is not None:
            from goldset.pipeline.parts import recall_in_parts

            measured = recall_in_parts(*large, ks=ks, relevant_from=relevant_from, by=slices, curve=curve,
                                       served=served, plot=plot, evaluated_k=eval_k)
            if measured is not None:
                if plot is not None:
                    say(f"plot: {plot}")
                return _finish(measured, gate, as_json=as_json)
            say(ODD)
    gold = open_set(labelled, qrels, questions, corpus, relevant_from)
    tables = open_runs(runs)
    if not tables:
        raise UsageError("name at least one run: --run NAME=FILE")
    beside = Beside(curve=curve, headline=headline, served=served, retrieved=open_runs(retrieved, "--retrieved"),
                    retrieved_k=retrieve_k, evaluated_k=eval_k)
    chunking = None
    if chunks is not None:  # the readers of corpora come with the configuration's models: half of a short start
        from goldset.pipeline.chunking import read_chunking

        chunking = read_chunking(gold, chunks, names)
    empty = {name: empty_lists(file) for name, file in named_files(runs, "--run").items()}
    measured = scores.recall_any(gold, tables, ks=ks, budget=budget, by=slices, beside=beside, chunks=chunking,
                                 empty=empty)
    if plot is not None:
        from goldset.metrics import curves

        write_plot(gold, curves(gold, tables, chunks=chunking), plot, ks=ks, evaluated_k=eval_k)
        say(f"plot: {plot}")
    queued: dict[str, Any] = {}
    if queue:
        queued = {"queue": _queue(gold, tables, config_path, chunks, ks=measured.cutoffs, budget=budget)}
    return _finish(measured, gate, as_json=as_json, **queued)


def _finish(measured: Measured, gate: float | None, *, as_json: bool, **more: Any) -> int:
    """Print the answer; the exit code of the gate."""
    told = None if gate is None else measured.gate(gate)
    if as_json:
        result_json(measured.as_json() | more | ({} if told is None else {"gate": told.as_json()}))
    else:
        result("\n".join([measured.text(), *(told.lines() if told else [])]))
    return 0 if told is None else told.code


def _queue(gold: LabelledSet, runs: dict[str, pa.Table], config_path: Path | None, chunks: Path | None, *,
           ks: Sequence[int], budget: int | None) -> dict[str, Any]:
    """The unjudged served passages as items of the review page."""
    from goldset.config import load_config
    from goldset.pipeline.holes import queue_holes

    if config_path is None:
        raise UsageError("--queue: name the configuration that the version was published from, with -c CONFIG")
    if chunks is not None:
        raise UsageError("--queue: the version's passages are of its own chunking; leave out --chunks")
    found = queue_holes(load_config(config_path), gold, runs, ks=ks, budget=budget)
    for line in found.text(str(config_path)).splitlines():
        say(line)
    return found.as_json()
