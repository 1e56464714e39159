"""``goldset review``."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goldset.cli.common import PATH, config_option, json_option, result, result_json, say

if TYPE_CHECKING:
    from goldset.config import Config


@click.group("review")
def command() -> None:
    """The queue: page, progress, files."""


@command.command("serve")
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Any other address demands reviewers' tokens.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free port.")
@click.option("--tokens", type=PATH, help="File of name:token lines; or GOLDSET_REVIEW_TOKENS=name:token,…")
def serve(config_path: Path, host: str, port: int, tokens: Path | None) -> None:
    """Show the queue in a browser: one key judges and stores."""
    from goldset.config import load_config

    serve_page(load_config(config_path), host, port, tokens)


def serve_page(config: Config, host: str, port: int, tokens: Path | None = None) -> None:
    """Serve the page of the last rebuild until interrupted."""
    from goldset.judges import load_rubric
    from goldset.pipeline import finished, open_review, store_of
    from goldset.pipeline.people import campaign_of, corpus_search, wave_maker
    from goldset.pipeline.twins import Twins
    from goldset.review import Passages, read_tokens
    from goldset.review import serve as serve_review

    artifacts = finished(config)
    open_review(config, artifacts)
    serve_review(
        store_of(config, artifacts), host=host, port=port, title=config.project.name,
        tokens=read_tokens(tokens, os.environ.get("GOLDSET_REVIEW_TOKENS")),
        announce=lambda address: say(f"review page: {address}  (Ctrl-C ends it; answers are stored as they are given)"),
        rubric_version=load_rubric(config.path(config.judge.rubric)).version, campaign=campaign_of(artifacts),
        passages=Passages(spans=artifacts.table("spans"), documents=artifacts.table("documents")),
        search=corpus_search(artifacts), grow=wave_maker(config, artifacts),
        twins=Twins(config, artifacts.table("spans")))


@command.command("status")
@config_option
@json_option
def status(config_path: Path, as_json: bool) -> None:
    """How far the queue is, by reason and by person."""
    from goldset.config import load_config
    from goldset.pipeline import review_progress

    progress = review_progress(load_config(config_path))
    if as_json:
        result_json({"schema": "goldset.review/1", **progress})
    else:
        result(progress_text(progress))


def progress_text(progress: dict[str, Any]) -> str:
    """The progress on a terminal."""
    lines = [f"{progress['answered']} of {progress['items']} items answered, {progress['open']} open, "
             f"{progress['conflicts']} conflicts; wave {progress['waves']}"]
    lines += [f"  {reason:<14} {count['answered']:>6} answered {count['open']:>6} open"
              for reason, count in sorted(progress["reasons"].items())]
    lines += [f"  {name:<14} {row['answered']:>6} answered" for name, row in sorted(progress["assessors"].items())]
    lines += carried_lines(progress)
    left = progress["hours_left"]
    lines.append("  time left: unknown until answers are timed" if left is None else f"  time left: about {left:.1f} h")
    return "\n".join(lines)


def carried_lines(progress: dict[str, Any]) -> list[str]:
    """What earlier rebuilds answered, and what of them is lost."""
    from goldset.pipeline.reread import reread_lines

    carried, divided = progress["carried"], progress["reasons"].get("divided")
    lines = []
    if carried["items"] or carried["others"]:
        others = "1 passage" if carried["others"] == 1 else f"{carried['others']} passages"
        lines.append(f"  carried from earlier rebuilds: {carried['items']} items, and {others} that nobody is asked "
                     "about now")
    lines += [f"  {line}" for line in reread_lines(progress["reread"])]
    if divided:
        lines.append(f"  {divided['answered'] + divided['open']} items ask again where new spans divide the evidence "
                     "of an earlier yes, or its text has changed")
    if progress["lost"]:
        lines.append(f"  {progress['lost']} earlier yes stand in text that the corpus no longer has; 'goldset "
                     "reanchor' says where it went")
    return lines


@command.command("export")
@config_option
@click.option("--assessor", required=True, help="Who will answer: items that this person may not read are left out.")
@click.argument("file", type=PATH)
def export(config_path: Path, assessor: str, file: Path) -> None:
    """Write the open items to FILE (.jsonl or .csv) for work without the page."""
    from goldset.config import load_config
    from goldset.pipeline import finished, open_review, store_of
    from goldset.review import export_items

    config = load_config(config_path)
    artifacts = finished(config)
    open_review(config, artifacts)
    count = export_items(store_of(config, artifacts), file, assessor=assessor, now=datetime.now(UTC))
    result(f"{count} items to {file}; fill in 'answer' and import the file")


@command.command("import")
@config_option
@click.option("--assessor", help="Stands in for rows without an assessor.")
@click.argument("file", type=PATH)
def import_(config_path: Path, assessor: str | None, file: Path) -> None:
    """Read answers back from FILE; all of them, or none if one is wrong."""
    from goldset.config import load_config
    from goldset.judges import load_rubric
    from goldset.pipeline import finished, review_progress, store_of
    from goldset.review import import_answers

    config = load_config(config_path)
    count = import_answers(store_of(config, finished(config)), file, time=datetime.now(UTC), assessor=assessor,
                           rubric_version=load_rubric(config.path(config.judge.rubric)).version)
    result(f"{count} answers read from {file}")
    result(progress_text(review_progress(config)))
