"""The deep probe: random pairs from below the pool's depth, and from a system that did not feed it, for people.

Two draws, each with its chance kept: ``each`` pairs of a question's window, and, of what the judge rejects among them,
the share of rejections that the project reads. What the judge takes for an answer, and what it gives no verdict on,
people read whole. Their answers enter a version by weight and are counted in ``recall_deep`` (METHODS 4).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config, HybridSystem
from goldset.errors import DataError, UsageError
from goldset.pipeline.people import campaign_of, open_review, store_of
from goldset.pipeline.runner import Artifacts, Say, finished, silent
from goldset.pipeline.stages import Context, judged
from goldset.schemas import DEEP, from_rows
from goldset.stats.sampling import Known, inclusion_probabilities, pairs_of, strata_counts
from goldset.stats.votes import settle
from goldset.store import Workspace, read_json, read_table, write_json
from goldset.text import content_hash, unit_hash

if TYPE_CHECKING:
    from goldset.review.queue import Wanted

EACH, DOWN_TO, TOP = 20, 200, 10
POINTER = "deep.json"  # campaign -> key of its deep probe
Pair = tuple[str, str]


@dataclass(frozen=True)
class Window:
    """What the deep probe draws from: ranks of the base systems below the pool, the first ``top`` of the others."""

    depth: int
    down_to: int
    top: int
    base: list[str]
    fourth: list[str]

    @classmethod
    def of(cls, config: Config, down_to: int) -> Window:
        """Systems by what they are: a fused list is a function of its parts and no list of its own."""
        if down_to <= config.pool.depth:
            raise UsageError(f"--down-to {down_to}: the pool holds the first {config.pool.depth} already; name a rank "
                             "below, e.g. 200")
        plain = [name for name, system in config.systems.items() if not isinstance(system, HybridSystem)]
        return cls(config.pool.depth, down_to, TOP, [name for name in plain if not config.systems[name].audit_only],
                   [name for name in plain if config.systems[name].audit_only])

    def told(self) -> str:
        """For a sentence: what is covered."""
        first = f"ranks {self.depth + 1} to {self.down_to} of {', '.join(self.base)}"
        return first + (f" and the first {self.top} of {', '.join(self.fourth)}" if self.fourth else "")


@dataclass(frozen=True)
class Deepened:
    """A deep probe that stands in the queue: its size, and what waits for people."""

    window: str
    report: dict[str, Any]
    new: int
    open: int

    def as_json(self) -> dict[str, Any]:
        """The document goldset.deepen/1."""
        return {"schema": "goldset.deepen/1", "covers": self.window, **self.report, "new": self.new, "open": self.open}

    def text(self, config_file: str) -> str:
        """What was drawn, and the next step."""
        if not self.report["drawn"]:
            return f"deep probe: nothing to draw, the pool holds all that is in {self.window}"
        said = {row["stratum"].removeprefix(DEEP): row for row in self.report["strata"]}
        words = {"positive": "that the judge takes for answers", "no_verdict": "that it gives no verdict on"}
        parts = [f"{said[name]['size']:,} {means}" for name, means in words.items() if name in said]
        if "rejection" in said:
            parts.append(f"{said['rejection']['asked']:,} of the {said['rejection']['size']:,} it rejects")
        return (f"deep probe: {self.report['drawn']:,} of {self.report['window']:,} pairs drawn from {self.window}\n"
                f"people read {', '.join(parts) or 'nothing'}: {self.new:,} new items\n"
                + (f"{self.open:,} items wait; goldset review serve -c {config_file}, then goldset publish -c "
                   f"{config_file}" if self.open else
                   f"nothing waits for people; goldset publish -c {config_file} makes the next version"))


def deepen(config: Config, *, each: int = EACH, down_to: int = DOWN_TO, quiet: bool = False,
           say: Say = silent) -> Deepened:
    """The last rebuild -> a deep probe in its queue. Harmless if repeated; killed at any point, it resumes.

    Raises:
        UsageError: this rebuild has a deep probe of another size.
        BudgetStop: the judge's budget does not cover the next call; what was answered is kept.
    """
    artifacts = finished(config)
    window = Window.of(config, down_to)
    workspace = Workspace(config.workspace).open()
    with workspace.lock("deepen"):
        open_review(config, artifacts)
        key = content_hash("deep", 1, artifacts.refs["queue"].key, each, down_to, TOP)
        known = _pointer(config).get(campaign_of(artifacts))
        if known not in (None, key):
            drawn = read_json(workspace.artifact("deep", known) / "manifest.json")["report"]
            raise UsageError(f"this rebuild has a deep probe already: {drawn['each']} pairs a question down to rank "
                             f"{drawn['down_to']}; run it again with --each {drawn['each']} --down-to "
                             f"{drawn['down_to']}, or rebuild first")
        if not workspace.has("deep", key):
            _draw_and_judge(config, artifacts, workspace, window, each, key, quiet=quiet, say=say)
        write_json(workspace.root / POINTER, {**_pointer(config), campaign_of(artifacts): key})
        new = _ask(config, artifacts)
        progress = open_review(config, artifacts)
    report = read_json(workspace.artifact("deep", key) / "manifest.json")["report"]
    return Deepened(window.told(), report, new, progress["open"])


def plan(config: Config, *, each: int = EACH, down_to: int = DOWN_TO) -> dict[str, Any]:
    """What a deep probe may cost at most: questions, judge calls, and what the window covers."""
    artifacts = finished(config)
    questions = len(artifacts.table("questions"))
    return {"questions": questions, "calls": questions * each, "covers": Window.of(config, down_to).told()}


def chances_of(config: Config, artifacts: Artifacts, queue: pa.Table, decisions: pa.Table, known: Known) -> pa.Table:
    """Inclusion probabilities of a review, the deep probe's first draw included; ``known`` pairs are certain."""
    folder = _folder(config, artifacts)
    entered = {} if folder is None else _entered(read_table(folder, "deep_draws"))
    return inclusion_probabilities(queue, decisions, known, entered=entered)


def deep_manifest(config: Config, artifacts: Artifacts, queue: pa.Table, decisions: pa.Table,
                  known: Known) -> dict[str, Any] | None:
    """The manifest's key ``deep``: what was drawn from what, read and found, by stratum; None without a deep probe.

    ``weight`` is what one pair that people read stands for, on average; null where they read none.
    """
    folder = _folder(config, artifacts)
    if folder is None:
        return None
    report: dict[str, Any] = read_json(folder / "manifest.json")["report"]
    counts = {row["stratum"]: row for row in
              strata_counts(queue, decisions, campaign=campaign_of(artifacts), known=known, deep=True)}
    strata = []
    for row in report["strata"]:
        said = counts.get(row["stratum"], {"read": 0, "found": 0})
        strata.append({**{name: row[name] for name in ("stratum", "size", "stands_for")}, "read": said["read"],
                       "found": said["found"], "weight": row["stands_for"] / said["read"] if said["read"] else None})
    return {**report, "strata": strata}


def _pointer(config: Config) -> dict[str, str]:
    path = config.workspace / POINTER
    found: dict[str, str] = read_json(path) if path.exists() else {}
    return found


def _folder(config: Config, artifacts: Artifacts) -> Any:
    key = _pointer(config).get(campaign_of(artifacts))
    return None if key is None else Workspace(config.workspace).artifact("deep", key)


def _entered(draws: pa.Table) -> dict[str, float]:
    columns = (draws.column(name).to_pylist() for name in ("question_id", "drawn", "window"))
    return {question: drawn / window for question, drawn, window in zip(*columns, strict=True)}


def _draw_and_judge(config: Config, artifacts: Artifacts, workspace: Workspace, window: Window, each: int, key: str, *,
                    quiet: bool, say: Say) -> None:
    from goldset.retrievers import build_retrievers, retrieve

    tables = {name: artifacts.table(name) for name in ("documents", "chunks", "questions", "spans", "span_links",
                                                       "candidates")}
    made = set(pc.unique(artifacts.table("run_status").column("system")).to_pylist())
    if made != set(config.systems):
        raise DataError(f"[systems]: the last rebuild had {', '.join(sorted(made))}, the configuration has "
                        f"{', '.join(sorted(config.systems))}; run 'goldset rebuild' first")
    retrievers = build_retrievers(config=config, documents=tables["documents"], chunks=tables["chunks"],
                                  cache=workspace.cache("embeddings").parent, quiet=quiet)
    run, _ = retrieve(questions=tables["questions"], depth=window.down_to, retrievers={
        name: retrievers[name] for name in [*window.base, *window.fourth]})
    draws = draw(run=run, spans=tables["spans"], links=tables["span_links"],
                 known=set(pairs_of(tables["candidates"])) | _decided(config, artifacts), window=window, each=each,
                 seed=config.project.seed)
    say(f"deep: {len(draws):,} pairs drawn from {window.told()}")
    verdicts, report = judged(Context(config, workspace, quiet), tables, draws)
    strata = split(draws, verdicts)
    sizes = dict(zip(*(draws.column(name).to_pylist() for name in ("question_id", "window")), strict=True))
    workspace.write("deep", key, {"deep_draws": draws, "verdicts": verdicts}, {
        "inputs": {"queue": artifacts.refs["queue"].key}, "seed": config.project.seed,
        "report": {"each": each, "depth": window.depth, "down_to": window.down_to, "top": window.top,
                   "systems": window.base, "fourth": window.fourth, "covers": window.told(),
                   "questions": len(sizes), "window": sum(sizes.values()), "drawn": len(draws),
                   "verdicts": report["status"],
                   "strata": [{"stratum": name, "size": len(pairs), "asked": asked_of(name, len(pairs), config),
                               "stands_for": math.fsum(pairs.values())} for name, pairs in sorted(strata.items())]}})


def draw(*, run: pa.Table, spans: pa.Table, links: pa.Table, known: Collection[Pair], window: Window, each: int,
         seed: int) -> pa.Table:
    """Runs of base systems and of the fourth -> deep_draws: ``each`` random spans a question out of its window.

    The window of a question: what the base systems return below the pool's depth, and the fourth at its top, folded
    as the pool is, without the pairs in ``known`` (the pool's, and those that people have decided). Permanent random
    numbers: the same window gives the same draw, a larger one contains the smaller.
    """
    from goldset.pool import pool_candidates

    system, rank = run.column("system"), run.column("rank")
    below = pc.and_(pc.is_in(system, pa.array(window.base, pa.string())), pc.greater(rank, window.depth))
    below = pc.and_(below, pc.less_equal(rank, window.down_to))
    above = pc.and_(pc.is_in(system, pa.array(window.fourth, pa.string())), pc.less_equal(rank, window.top))
    found = pool_candidates(run=run.filter(pc.or_(below, above)), spans=spans, links=links,
                            depth=max(window.down_to, window.top)).candidates
    reach: dict[str, list[tuple[float, str, list[dict[str, Any]]]]] = {}
    for row in found.to_pylist():
        pair = (row["question_id"], row["span_id"])
        if pair not in known:
            reach.setdefault(pair[0], []).append((unit_hash(seed, "deep", *pair), pair[1], row["best_ranks"]))
    rows = []
    for question, spans_in in sorted(reach.items()):
        taken = sorted(spans_in, key=lambda one: one[:2])[:each]
        rows += [{"question_id": question, "span_id": span, "best_ranks": ranks, "window": len(spans_in),
                  "drawn": len(taken), "u": u} for u, span, ranks in taken]
    return from_rows("deep_draws", rows)


def split(draws: pa.Table, verdicts: pa.Table) -> dict[str, dict[Pair, float]]:
    """deep_draws, verdicts -> stratum -> its pairs with the weight of their first draw, window / drawn."""
    settled = settle(verdicts)
    strata: dict[str, dict[Pair, float]] = {}
    for row in draws.to_pylist():
        pair = (row["question_id"], row["span_id"])
        relevant = settled[pair].relevant if pair in settled else None
        name = "no_verdict" if relevant is None else "positive" if relevant else "rejection"
        strata.setdefault(DEEP + name, {})[pair] = row["window"] / row["drawn"]
    return strata


def asked_of(stratum: str, size: int, config: Config) -> int:
    """Pairs of a stratum that people read: the configured share of rejections, all of the others."""
    if stratum != DEEP + "rejection":
        return size
    return min(size, math.ceil(round(config.review.rejection_share * size, 9)))


def _ask(config: Config, artifacts: Artifacts) -> int:
    from goldset.review import ask
    from goldset.review.queue import Wanted

    folder = _folder(config, artifacts)
    strata = split(read_table(folder, "deep_draws"), read_table(folder, "verdicts"))
    wanted: list[Wanted] = []
    for name, pairs in sorted(strata.items()):
        # Its own number: those of the first draw are smaller where the window is larger.
        numbered = sorted((unit_hash(config.project.seed, name, *pair), pair) for pair in pairs)
        count = asked_of(name, len(pairs), config)
        wanted += [Wanted(*pair, "deep", name, len(pairs), u) for u, pair in numbered[:count]]
    return ask(store_of(config, artifacts), wanted, campaign=campaign_of(artifacts), seed=config.project.seed)


def _decided(config: Config, artifacts: Artifacts) -> set[Pair]:
    """Pairs that people have settled already: holes, and what a search found."""
    from goldset.review import resolve

    store = store_of(config, artifacts)
    decisions = resolve(queue=store.queue(), labels=store.labels())
    return set(pairs_of(decisions.filter(pc.is_in(decisions.column("status"), pa.array(("decided", "cant_tell"))))))


__all__ = ["Deepened", "chances_of", "deep_manifest", "deepen", "draw", "plan"]
