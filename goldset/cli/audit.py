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
    from goldset.config import Config


@click.command("audit")
@set_options
@run_option
@click.option("-c", "--config", "config_path", type=PATH,
              help="A rebuild's configuration: k, the served system, families, and the judge of --probe.")
@click.option("--labels", type=PATH, help="Who labelled what: a table of question, passage, assessor and grade.")
@click.option("--documents", type=PATH, help="The documents as they are now: does the gold still stand in them?")
@click.option("--logs", type=PATH, help="Question log (JSONL): the reference for lexical leakage.")
@click.option("--logs-text", default="text", show_default=True, help="Field of the question in --logs.")
@click.option("--reference", type=PATH, metavar="SET",
              help="A set of real questions whose gold people found: a better reference for lexical leakage.")
@click.option("--eval-k", type=click.IntRange(1), help="k of the headline figure.")
@click.option("--retrieve-k", type=click.IntRange(1), help="Passages retrieved before reranking.")
@click.option("--serving-k", type=click.IntRange(1), help="Passages that reach the reader.")
@click.option("--served-log", type=PATH, help="JSONL of what was served: the k that reached readers.")
@click.option("--served-field", default="served", show_default=True,
              help="Field of --served-log with the passages, or their number.")
@click.option("--served", metavar="NAME",
              help="Which --run is in production; default: the configuration's, or the first.")
@click.option("--retrieved", metavar="NAME", help="Which --run is the list before reranking.")
@click.option("--with", "extra", type=click.Choice(["dense"]), help="Add our own encoder as a second system.")
@click.option("--probe", type=PATH, metavar="DIR",
              help="Have people read unlabelled results: the folder that keeps them and their answers.")
@click.option("--probe-size", type=click.IntRange(1), metavar="N",
              help="Passages a question that --probe draws; more adds to an earlier probe.  [default: 2]")
@click.option("--answer", is_flag=True, help="Serve the probe's page until Ctrl-C, then audit.")
@click.option("--fail-on", type=click.Choice(["fail", "warn"]), default="fail", show_default=True,
              help="The verdict from which the exit code is 1.")
@click.option("--baseline", type=PATH, help="An earlier audit's --json: the exit code is 1 only for what is new.")
@click.option("--html", type=PATH, help="Write the report as one self-contained page.")
@json_option
def command(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
            relevant_from: int | None, runs: tuple[str, ...], config_path: Path | None, labels: Path | None,
            documents: Path | None, logs: Path | None, logs_text: str, reference: Path | None, eval_k: int | None,
            retrieve_k: int | None, serving_k: int | None, served_log: Path | None, served_field: str,
            served: str | None, retrieved: str | None, extra: str | None, probe: Path | None, probe_size: int | None,
            answer: bool, fail_on: str, baseline: Path | None, html: Path | None, as_json: bool) -> int:
    r"""Can this labelled set be believed? Pre-check and four properties.

    SET is a published version, a BEIR folder (corpus.jsonl, queries.jsonl, qrels/*.tsv), or a file of questions with
    gold ids or gold texts (JSON lines, CSV, Ragas, LlamaIndex, LangSmith). For qrels: --qrels with --questions and
    --corpus.

    \b
    goldset audit SET --run production=production.run.gz --logs queries.jsonl \
        --eval-k 20 --serving-k 5 --html report.html
    """
    from goldset.config import load_config
    from goldset.pipeline.checks import Given, audit_any
    from goldset.report import newly_convicted, read_audit_json, render_json

    for flag, given in (("--answer serves the page of a probe", answer), ("--probe-size draws a probe", probe_size)):
        if given and probe is None:
            raise UsageError(f"{flag}: name its folder with --probe DIR")
    earlier = read_audit_json(baseline) if baseline else None
    config = load_config(config_path) if config_path else None
    gold = open_set(labelled, qrels, questions, corpus, relevant_from, labels, contradictions=True)
    beside = Given(logs=logs, logs_text=logs_text, reference=reference, served_log=served_log,
                   served_field=served_field, documents=documents, config=config)
    outcome = audit_any(gold, open_runs(runs), given=beside, eval_k=eval_k, retrieve_k=retrieve_k, serving_k=serving_k,
                        served=served, retrieved=retrieved, with_dense=extra == "dense",
                        probing=_probing(probe, probe_size, answer, config) if probe else None, quiet=as_json)
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


def _probing(folder: Path, size: int | None, answer: bool, config: Config | None) -> Callable[[Context], Probe]:
    """The probe of the set under audit, judged first where a judge is configured, answered on the page if asked for."""
    from goldset.pipeline.probe import probe_loop
    from goldset.pipeline.probejudge import judge_of

    def announce(address: str) -> None:
        say(f"review page: {address}  (Ctrl-C ends it and the audit goes on; answers are stored as they are given)")

    return lambda context: probe_loop(context, folder, say=say, serve=announce if answer else None, per_question=size,
                                      judge=judge_of(config, say=say) if config else None)
