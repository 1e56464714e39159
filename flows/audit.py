"""The audit flow over a set and its runs. ``python -m flows.audit SET NAME=FILE…``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow

from flows.tasks import note_table, note_text, prefect_runner, run_flow, say
from goldset.formats.sets import load_set
from goldset.formats.trec import read_run
from goldset.pipeline.checks import audit_any


@flow(name="goldset-audit", persist_result=False)
def audit_flow(labelled: str, runs: dict[str, str], relevant_from: int | None = None, eval_k: int | None = None,
               serving_k: int | None = None) -> str:
    """Audit a set; returns the overall verdict."""

    def step() -> Any:
        tables = {name: read_run(Path(file), system=name) for name, file in runs.items()}
        return audit_any(load_set(Path(labelled), relevant_from=relevant_from), tables, eval_k=eval_k,
                         serving_k=serving_k)

    outcome = prefect_runner("audit", step)
    text = outcome.text()
    note_table("findings", [{name: row[name] for name in ("check", "subject", "verdict", "message")}
                            for row in outcome.findings.to_pylist()], "findings of the audit")
    note_text("audit", text, "the audit")
    say(text)
    return str(outcome.verdict)


if __name__ == "__main__":
    run_flow(lambda: audit_flow(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:])))
