"""What a version says about how it was made."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pyarrow as pa

from goldset.config import Config
from goldset.gold import GoldTables
from goldset.pipeline.decided import Decided
from goldset.pipeline.runner import Artifacts
from goldset.schemas import canonical_hash


def manifest_of(config: Config, artifacts: Artifacts, tables: dict[str, pa.Table], made: GoldTables, *,
                queue: pa.Table, labels: pa.Table, review: Decided, progress: dict[str, Any],
                partial: bool) -> dict[str, Any]:
    """Config, seed, fingerprints, systems, judge and its card, agreement, sampling, counts, people's hours."""
    from goldset.pipeline.deep import deep_manifest

    questions, spans = tables["questions"], tables["spans"]
    answerable = set(tables["gold"].column("question_id").to_pylist())
    pool = artifacts.report("pool")
    return {
        "schema": "goldset.version/1", "name": config.project.name, "partial": partial,
        "made_with": {name: version(name) for name in ("goldset-rebuilder", "numpy", "pyarrow", "pandas")},
        "config": config.resolved(), "seed": config.project.seed,
        "artifacts": {ref.stage: ref.key for ref in artifacts.refs.values()},
        "corpus": {"documents": len(artifacts.table("documents")), "chunks": len(tables["chunks"]),
                   "spans": len(spans), "sha": canonical_hash(tables["chunks"], "chunks")},
        "questions": {"drops": artifacts.table("drops").to_pylist(), **artifacts.report("questions")},
        "unit": config.questions.unit, "pool": {"depth": config.pool.depth, **pool},
        "outside_the_pool": outside_of(config, tables["gold"], artifacts.table("candidates")),
        "systems": {name: {"kind": system.kind, "family": config.family(name), "audit_only": system.audit_only}
                    for name, system in config.systems.items()},
        # A version's own headline is at the k that is served; [scoring] evaluated_k is the old headline's.
        "scoring": {**config.scoring.model_dump(mode="json"), "evaluated_k": config.scoring.served_k},
        "judge": {**artifacts.report("judge")["judge"], "family": config.judge.family, "kind": config.judge.kind},
        "card": judge_card(config, artifacts, review),
        "agreement": agreement_of(queue, labels), "sampling": {"profile": config.review.profile, **made.sampling},
        "gold_merged": made.merged, "read_in_full": made.read_in_full, "relevant_from": None,
        "people": {name: progress[name] for name in ("items", "answered", "waves", "assessors", "seconds")},
        "reading": reading_of(config, artifacts, queue),
        "counts": {"questions": len(questions), "draws": sum(questions.column("draws").to_pylist()),
                   "answerable": len(answerable), "judgments": len(tables["judgments"]), "gold": len(tables["gold"]),
                   "items": len(queue), "labels": len(labels)},
        "carried": progress["reread"],
        "holes": holes_of(tables["judgments"]),
        "deep": deep_manifest(config, artifacts, queue, review.decisions, review.known),
    }


def outside_of(config: Config, gold: pa.Table, candidates: pa.Table) -> dict[str, Any]:
    """About how many relevant passages no system returned, judged by the gold near the end of their lists."""
    from goldset.metrics.outside import outside_the_pool, pool_ranks

    families = {name: config.family(name) for name in config.systems}
    return outside_the_pool(pool_ranks(gold, candidates), families, depth=config.pool.depth).as_json()


def judge_card(config: Config, artifacts: Artifacts, review: Decided) -> dict[str, Any]:
    """The judge measured against people's decisions, and which systems it is not independent of."""
    from goldset.judges import independence, judge_card

    card: dict[str, Any] = judge_card(verdicts=artifacts.table("verdicts"), decisions=review.decisions,
                                      probabilities=review.chances, candidates=artifacts.table("candidates"))
    card["independence"] = independence(config.judge.family, {name: config.family(name) for name in config.systems})
    return card


def agreement_of(queue: pa.Table, labels: pa.Table) -> dict[str, Any]:
    """Two people on the same pairs, before adjudication (METHODS 10)."""
    from goldset.review import paired_labels
    from goldset.stats.agreement import two_raters

    pairs = paired_labels(queue=queue, labels=labels)
    told = pairs[pairs["relevant_a"].notna() & pairs["relevant_b"].notna()]
    a, b = told["relevant_a"].astype(bool), told["relevant_b"].astype(bool)
    return {"pairs": len(pairs), "cannot_tell": len(pairs) - len(told),
            **two_raters(int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum()))}


def reading_of(config: Config, artifacts: Artifacts, queue: pa.Table) -> dict[str, Any]:
    """Items, words and hours that people read, against reading the whole pool."""
    from goldset.metrics import reading_hours

    spans = artifacts.table("spans")
    words = dict(zip(*(spans.column(name).to_pylist() for name in ("span_id", "words")), strict=True))
    pool = [words[span] for span in artifacts.table("candidates").column("span_id").to_pylist()]
    read = [words[span] for span in queue.column("span_id").to_pylist()]
    rate = {"seconds_base": config.review.seconds_base, "words_per_minute": config.review.words_per_minute}
    return {"pool_items": len(pool), "pool_words": sum(pool), "pool_hours": reading_hours(len(pool), sum(pool), **rate),
            "read_items": len(read), "read_words": sum(read), "read_hours": reading_hours(len(read), sum(read), **rate),
            "share_of_words": sum(read) / sum(pool) if sum(pool) else None}


def holes_of(judgments: pa.Table) -> dict[str, Any]:
    """Pairs that were read because systems serve them, and the gold among them by system."""
    read = 0
    gold: dict[str, int] = {}
    for row in judgments.select(["stratum", "relevant"]).to_pylist():
        if (row["stratum"] or "").startswith("hole "):
            read += 1
            for system in row["stratum"].removeprefix("hole ").split("+"):
                gold[system] = gold.get(system, 0) + (row["relevant"] is True)
    return {"read": read, "gold_by_system": dict(sorted(gold.items()))}
