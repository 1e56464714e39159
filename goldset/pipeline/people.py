"""Around the people: open the queue, carry what is known, grow it wave by wave, publish when it is closed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config
from goldset.errors import ReviewIncomplete
from goldset.gold import build_gold, export_set, write_version
from goldset.pipeline.carry import carry
from goldset.pipeline.checks import Outcome, audit_version
from goldset.pipeline.decided import decided
from goldset.pipeline.manifest import manifest_of
from goldset.pipeline.reread import reread_lines
from goldset.pipeline.runner import Artifacts, Runner, Say, finished, plain, silent
from goldset.pipeline.scores import cautions
from goldset.pipeline.supersede import superseded
from goldset.store import Workspace, read_json, write_json

if TYPE_CHECKING:
    from goldset.review import ReviewStore


def campaign_of(artifacts: Artifacts) -> str:
    """The name under which people's answers to this rebuild are kept."""
    campaign: str = artifacts.table("queue").column("campaign")[0].as_py()
    return campaign


def store_of(config: Config, artifacts: Artifacts) -> ReviewStore:
    """The review database, limited to this rebuild."""
    from goldset.review import ReviewStore

    return ReviewStore(config.review_url, campaign=campaign_of(artifacts))


def open_review(config: Config, artifacts: Artifacts) -> dict[str, Any]:
    """Put the queue before people, answer what earlier rebuilds know, and return the progress. Harmless if repeated."""
    store = store_of(config, artifacts)
    store.append_queue(artifacts.table("queue"))
    progress = grow(config, artifacts)
    store.set_passages(questions=artifacts.table("questions"), spans=artifacts.table("spans"),
                       documents=artifacts.table("documents"))
    return progress


def grow(config: Config, artifacts: Artifacts) -> dict[str, Any]:
    """Append the waves that the answers call for, carried ones too; returns the progress (status() of the review)."""
    from goldset.review import reread, status

    store = store_of(config, artifacts)
    make = wave_maker(config, artifacts)
    while True:
        carried = carry(config, artifacts, store)
        wave = make(store.queue(), store.labels())
        if not (carried.labels or carried.items or len(wave)):
            tables = {"queue": store.queue(), "labels": store.labels()}
            return {**status(**tables), "lost": len(carried.lost), "reread": reread(**tables)}
        store.append_queue(wave)


def wave_maker(config: Config, artifacts: Artifacts) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """The function queue, labels -> rows to append, for this rebuild."""
    from goldset.review import next_wave

    tables = {name: artifacts.table(name) for name in ("candidates", "verdicts", "spans")}
    return lambda queue, labels: next_wave(queue=queue, labels=labels, config=config.review, seed=config.project.seed,
                                           **tables)


def corpus_search(artifacts: Artifacts) -> Callable[[str], list[str]]:
    """Words -> span ids, best first: the search box of the page."""
    from goldset.lexical import BM25Index
    from goldset.text import tokenize

    spans = artifacts.table("spans")
    index = BM25Index.build(spans.column("span_id").to_pylist(),
                            [tokenize(text) for text in spans.column("text").to_pylist()])
    return lambda words: [span for span, _ in index.search(tokenize(words), 20)]


def review_progress(config: Config) -> dict[str, Any]:
    """How far the review of the last rebuild is, waves added."""
    return grow(config, finished(config))


def replay_review(config: Config, *, say: Say = silent) -> dict[str, Any]:
    """Let the recorded assessors of [review] replay answer, wave by wave, until nothing more is asked."""
    from goldset.judges import load_rubric
    from goldset.review import replay

    assert config.review.replay is not None, "the caller checks that a replay file is configured"
    artifacts = finished(config)
    store = store_of(config, artifacts)
    while True:
        progress = grow(config, artifacts)
        labels = replay(items=store.queue(), path=config.path(config.review.replay),
                        questions=artifacts.table("questions"), spans=artifacts.table("spans"),
                        links=artifacts.table("span_links"), chunks=artifacts.table("chunks"), labels=store.labels(),
                        rubric_version=load_rubric(config.path(config.judge.rubric)).version)
        if not labels:
            return progress
        store.append_labels(labels)
        say(f"review: wave {progress['waves']}, {len(labels)} answers")


@dataclass(frozen=True)
class Published:
    """A version: where it lies, whether it is new, its manifest, its audit and its scores."""

    path: Path
    new: bool
    manifest: dict[str, Any]
    outcome: Outcome

    def summary(self) -> dict[str, Any]:
        """The JSON answer of ``goldset publish``."""
        from goldset.report import render_json

        return {"version": self.path.name, "path": str(self.path), "new": self.new, "partial": self.manifest["partial"],
                "content_hash": self.manifest["content_hash"], "counts": self.manifest["counts"],
                "outside_the_pool": self.manifest.get("outside_the_pool"), "carried": self.manifest.get("carried"),
                "cautions": cautions(self.outcome.labelled), "audit": render_json(self.outcome.findings),
                "measurements": self.outcome.measurements_json()}

    def head(self) -> str:
        """Name, counts, content hash, and about how much lies outside the pool."""
        from goldset.metrics import outside

        counts = self.manifest["counts"]
        told = self.manifest.get("outside_the_pool")  # a version of before it was kept has none
        return "\n".join([
            f"{self.manifest['name']}/{self.path.name}" + ("" if self.new else ": nothing changed, same version")
            + ("  PARTIAL: the review is not complete" if self.manifest["partial"] else ""),
            f"  {counts['questions']} questions ({counts['draws']} draws), {counts['answerable']} with an answer; "
            f"{counts['gold']} gold spans, {counts['judgments']} judgments by people",
            f"  content hash {self.manifest['content_hash']}",
            *textwrap.wrap(outside.sentence(told) if told else "", 100, initial_indent="  ", subsequent_indent="    "),
            *(f"  {line}" for line in reread_lines(self.manifest.get("carried"))),
            *(f"  {sentence}" for sentence in cautions(self.outcome.labelled))])

    def text(self) -> str:
        """The answer on a terminal: head, audit, main measures."""
        return f"{self.head()}\n\n{self.outcome.text()}"

    def brief(self) -> str:
        """The same in few lines."""
        return f"{self.head()}\n\n{self.outcome.brief()}"


def publish(config: Config, *, partial: bool = False, runner: Runner = plain, say: Say = silent) -> Published:
    """Labels -> a version, audited and scored.

    Raises:
        ReviewIncomplete: items wait for people, or two people differ and nobody adjudicated (unless
            ``partial``).
    """
    artifacts = finished(config)
    workspace = Workspace(config.workspace).open()
    with workspace.lock("publish"):
        progress = grow(config, artifacts)
        if not partial:
            _refuse_incomplete(progress, config)
        path, new = runner("publish", lambda: _write(config, artifacts, partial, progress))
        outcome = runner("audit", lambda: audit_version(path, artifacts.table("run"), config))
    say(f"publish: {path}" + ("" if new else " (nothing changed)"))
    return Published(path, new, read_json(path / "manifest.json"), outcome)


def _refuse_incomplete(progress: dict[str, Any], config: Config) -> None:
    if progress["open"] or progress["conflicts"]:
        waits = ", ".join(f"{count['open']} {reason}" for reason, count in sorted(progress["reasons"].items())
                          if count["open"])
        raise ReviewIncomplete(
            f"{progress['open']} of {progress['items']} items wait for people ({waits or 'none'}), "
            f"{progress['conflicts']} conflicts wait for a third; go on with 'goldset review serve', or publish what "
            "is there with --partial")


def _write(config: Config, artifacts: Artifacts, partial: bool, progress: dict[str, Any]) -> tuple[Path, bool]:
    """Tables, manifest and exports of the version, whole or not at all."""
    from goldset.formats.published import read_published

    store = store_of(config, artifacts)
    queue, labels = store.queue(), store.labels()
    review = decided(config, artifacts, queue=queue, labels=labels)
    made = build_gold(decisions=review.decisions, probabilities=review.chances, queue=queue,
                      spans=artifacts.table("spans"), candidates=artifacts.table("candidates"), known=review.known)
    tables: dict[str, pa.Table] = {name: artifacts.table(name)
                                   for name in ("questions", "spans", "span_links", "chunks")}
    tables |= {"judgments": made.judgments, "gold": made.gold}
    manifest = manifest_of(config, artifacts, tables, made, queue=queue, labels=labels, review=review,
                           progress=progress, partial=partial)

    def finish(folder: Path) -> None:
        made = read_published(folder)
        export_set(made, folder)
        run = artifacts.table("run")
        replaced = superseded(config, made, run.filter(pc.equal(run.column("system"), config.scoring.system)))
        if replaced is not None:
            write_json(folder / "manifest.json", {**made.manifest, "supersedes": replaced})

    return write_version(config.workspace / "gold" / config.project.name, tables, manifest, finish)


__all__ = ["Published", "campaign_of", "grow", "open_review", "publish", "replay_review",
           "review_progress", "store_of"]
