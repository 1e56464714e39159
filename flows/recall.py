"""The recall flow over a set and its runs. ``python -m flows.recall SET K NAME=FILE…``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow

from flows.tasks import note_text, prefect_runner, run_flow, say
from goldset.formats.sets import load_set
from goldset.formats.trec import read_run
from goldset.pipeline.scores import recall_any


@flow(name="goldset-recall", persist_result=False)
def recall_flow(labelled: str, runs: dict[str, str], k: int, relevant_from: int | None = None) -> dict[str, Any]:
    """Measure recall at k; returns the JSON document."""

    def step() -> Any:
        tables = {name: read_run(Path(file), system=name) for name, file in runs.items()}
        return recall_any(load_set(Path(labelled), relevant_from=relevant_from), tables, ks=[k])

    measured = prefect_runner("recall", step)
    note_text("recall", measured.text(), "recall with intervals")
    say(measured.text())
    document: dict[str, Any] = measured.as_json()
    return document


if __name__ == "__main__":
    run_flow(lambda: recall_flow(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[3:]),
                                 int(sys.argv[2])))
