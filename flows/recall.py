"""The recall flow over a set and its runs. ``python -m flows.recall SET K NAME=FILE…``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from prefect import flow

from flows.tasks import note_text, prefect_runner, run_files, run_flow, show
from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.pipeline.scores import recall_any


@flow(name="goldset-recall", persist_result=False)
def recall_flow(labelled: str, runs: dict[str, str], k: int, relevant_from: int | None = None) -> dict[str, Any]:
    """Measure recall at k; returns the JSON document."""

    def step() -> Any:
        tables = {name: read_run(Path(file), system=name) for name, file in runs.items()}
        return recall_any(load_set(Path(labelled), relevant_from=relevant_from), tables, ks=[k])

    measured = prefect_runner("recall", step)
    note_text("recall", measured.text(), "recall with intervals")
    show(measured.text())
    document: dict[str, Any] = measured.as_json()
    return document


@click.command("python -m flows.recall")
@click.argument("labelled", metavar="SET")
@click.argument("k", type=click.IntRange(1))
@click.argument("runs", metavar="NAME=FILE...", nargs=-1, required=True)
@click.option("--relevant-from", type=int, metavar="GRADE", help="Smallest grade that counts as relevant.")
def main(labelled: str, k: int, runs: tuple[str, ...], relevant_from: int | None) -> None:
    """Recall at the k that production serves, with an interval, as a Prefect flow."""
    recall_flow(labelled, run_files(runs), k, relevant_from)


if __name__ == "__main__":
    run_flow(main)
