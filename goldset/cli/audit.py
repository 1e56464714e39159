"""``goldset audit``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goldset.cli.common import (
    PATH,
    json_option,
    open_runs,
    open_set,
    result,
    result_json,
    run_option,
    say,
    say_mapping,
    set_options,
)
from goldset.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from goldset.audit import Context, Probe


@click.command("audit")
@set_options
@run_option
@click.option("--labels", type=PATH, help="Who labelled what: a table of question, passage, assessor and grade.")
@click.option("--logs", type=PATH, help="Question log (JSONL): the reference for lexical leakage.")
@click.option("--logs-text", default="text", show_default=True, help="Field of the question in --logs.")
@click.option("--eval-k", type=click.IntRange(1), help="k of the headline figure.")
@click.option("--retrieve-k", type=click.IntRange(1), help="Passages retrieved before reranking.")
@click.option("--serving-k", type=click.IntRange(1), help="Passages that reach the reader.")
@click.option("--served", metavar="NAME", help="Which --run is in production; default: the first.")
@click.option("--retrieved", metavar="NAME", help="Which --run is the list before reranking.")
@click.option("--with", "extra", type=click.Choice(["dense"]), help="Add our own encoder as a second system.")
@click.option("--probe", type=PATH, metavar="DIR",
              help="Have people read unlabelled results: the folder that keeps them and their answers.")
@click.option("--answer", is_flag=True, help="Serve the probe's page until Ctrl-C, then audit.")
@click.option("--fail-on", type=click.Choice(["fail", "warn"]), default="fail", show_default=True,
              help="The verdict from which the exit code is 1.")
@click.option("--baseline", type=PATH, help="An earlier audit's --json: the exit code is 1 only for what is new.")
@click.option("--html", type=PATH, help="Write the report as one self-contained page.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], labels: Path | None, logs: Path | None, logs_text: str,
            eval_k: int | None, retrieve_k: int | None, serving_k: int | None, served: str | None,
            retrieved: str | None, extra: str | None, probe: Path | None, answer: bool, fail_on: str,
            baseline: Path | None, html: Path | None, as_json: bool) -> int:
    """Can this labelled set be believed? Pre-check and four properties."""
    from goldset.pipeline.checks import audit_any
    from goldset.report import newly_convicted, read_audit_json, render_json

    if answer and probe is None:
        raise UsageError("--answer serves the page of a probe: name its folder with --probe DIR")
    earlier = read_audit_json(baseline) if baseline else None
    gold = open_set(labelled, qrels, questions, corpus, relevant_from, labels)
    outcome = audit_any(gold, open_runs(runs), logs=logs, logs_text=logs_text, eval_k=eval_k, retrieve_k=retrieve_k,
                        serving_k=serving_k, served=served,
                        retrieved=retrieved, with_dense=extra == "dense",
                        probing=_probing(probe, answer) if probe else None, quiet=as_json)
    if gold.kind != "examples":
        say_mapping(gold)
    if html is not None:
        outcome.write_html(html)
        say(f"report: {html}")
    if as_json:
        result_json(render_json(outcome.findings))
    else:
        result(outcome.text())
    if earlier is not None:
        new = newly_convicted(outcome.findings, earlier, from_verdict=fail_on)
        for line in new:
            say(f"new since {baseline}: {line}")
        return int(ExitCode.CHECK_FAILED if new else ExitCode.DONE)
    failing = {"fail": ("fail",), "warn": ("fail", "warn")}[fail_on]
    if outcome.verdict in failing:
        return int(ExitCode.CHECK_FAILED)
    return int(ExitCode.TOO_LITTLE_DATA if outcome.verdict == "insufficient" else ExitCode.DONE)


def _probing(folder: Path, answer: bool) -> Callable[[Context], Probe]:
    """The probe of the set under audit, answered on the page first if asked for."""
    from goldset.pipeline.probe import probe_loop

    def announce(address: str) -> None:
        say(f"review page: {address}  (Ctrl-C ends it and the audit goes on; answers are stored as they are given)")

    return lambda context: probe_loop(context, folder, say=say, serve=announce if answer else None)
