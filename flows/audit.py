"""The audit flow over a set and its runs. ``python -m flows.audit SET NAME=FILE…``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from prefect import flow

from flows.tasks import note_table, note_text, prefect_runner, run_files, run_flow, show
from goldset.cli.common import say_mapping
from goldset.errors import ExitCode
from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.pipeline.checks import audit_any

CODES = {"fail": ExitCode.CHECK_FAILED, "insufficient": ExitCode.TOO_LITTLE_DATA}


@flow(name="goldset-audit", persist_result=False)
def audit_flow(labelled: str, runs: dict[str, str], relevant_from: int | None = None, eval_k: int | None = None,
               serving_k: int | None = None) -> str:
    """Audit a set; returns the overall verdict."""

    def step() -> Any:
        gold = load_set(Path(labelled), relevant_from=relevant_from)
        say_mapping(gold)
        tables = {name: read_run(Path(file), system=name) for name, file in runs.items()}
        return audit_any(gold, tables, eval_k=eval_k, serving_k=serving_k)

    outcome = prefect_runner("audit", step)
    text = outcome.text()
    note_table("findings", [{name: row[name] for name in ("check", "subject", "verdict", "message")}
                            for row in outcome.findings.to_pylist()], "findings of the audit")
    note_text("audit", text, "the audit")
    show(text)
    return str(outcome.verdict)


@click.command("python -m flows.audit")
@click.argument("labelled", metavar="SET")
@click.argument("runs", metavar="NAME=FILE...", nargs=-1)
@click.option("--relevant-from", type=int, metavar="GRADE", help="Smallest grade that counts as relevant.")
@click.option("--eval-k", type=click.IntRange(1), help="k of the headline figure.")
@click.option("--serving-k", type=click.IntRange(1), help="Passages that reach the reader.")
def main(labelled: str, runs: tuple[str, ...], relevant_from: int | None, eval_k: int | None,
         serving_k: int | None) -> int:
    """Can this labelled set be believed? As a Prefect flow; exit codes as goldset audit."""
    return int(CODES.get(audit_flow(labelled, run_files(runs), relevant_from, eval_k, serving_k), ExitCode.DONE))


if __name__ == "__main__":
    run_flow(main)
