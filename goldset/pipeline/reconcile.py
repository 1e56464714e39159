"""From the recall that other tools take of exported files to ours, one difference at a time, for a given run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet

Recall = dict[str, float]
STEPS = {
    "plain": "plain recall over these files, as trec_eval and ir-measures count it",
    "order": "the list in the order of its ranks, not of its scores with ties by id",
    "sampled": "without pairs that only a sample found (recall_micro counts them by weight)",
    "draws": "each question as often as it was drawn",
    "evidence": "gold by evidence: chunks deliver it together, and it counts once (goldset recall)",
}
"""Each step keeps what those before it changed."""


def reconcile(labelled: LabelledSet, run: pa.Table, *, k: int, chunks: pa.Table | None = None) -> dict[str, Any]:
    """Published version, run of one system, k -> k, and ``steps`` from plain recall of an export to ``goldset recall``.

    A step has its name in STEPS, value (null where nothing has gold, or evidence is missing), questions (that count)
    and differ (questions whose own recall the step changed; null where it only weighs them).

    Args:
        labelled: a published version.
        run: table ``run`` of one system.
        k: cutoff.
        chunks: the chunking of the export, and of the run; default: the version's own.
    """
    from goldset.gold import project
    from goldset.metrics import per_question
    from goldset.metrics.questions import Questions

    corpus, questions = labelled.corpus, Questions.of(labelled)
    assert corpus is not None, "a published version carries its corpus"
    confirmed = labelled.gold.filter(pa.array(questions.confirmed))
    every, certain = (_by_question(project(gold=gold, corpus=corpus, chunks=chunks).rows)
                      for gold in (labelled.gold, confirmed))
    ranked, sorted_ = _first(run, k, by_score=False), _first(run, k, by_score=True)
    plain, order, sampled = _recall(every, sorted_), _recall(every, ranked), _recall(certain, ranked)
    draws = dict(zip(questions.ids, questions.draws.tolist(), strict=True))
    ours = {row["question_id"]: row["recall"] for row in per_question(labelled, run, k, chunks=chunks).to_pylist()
            if row["gold"]}
    unknown = any(value is None for value in ours.values())
    steps = [_step("plain", plain), _step("order", order, plain), _step("sampled", sampled, order),
             {**_step("draws", sampled, weights=draws), "differ": None},
             {"step": "evidence", "value": None, "questions": len(ours), "differ": None} if unknown
             else _step("evidence", ours, sampled, weights=draws)]
    return {"k": k, "steps": steps}


def reconciled_text(name: str, found: Mapping[str, Any]) -> str:
    """The steps on a terminal, a line each."""
    lines = [f"{name} at {found['k']}, from these files to goldset recall:"]
    for step in found["steps"]:
        value = "unknown" if step["value"] is None else f"{step['value']:.3f}"
        differ = f"; changes {step['differ']} of them" if step["differ"] else ""
        lines.append(f"  {value}  {STEPS[step['step']]} ({step['questions']} questions{differ})")
    return "\n".join(lines)


def _by_question(rows: list[tuple[str, str, float]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for question, chunk, _ in rows:
        found.setdefault(question, set()).add(chunk)
    return found


def _first(run: pa.Table, k: int, *, by_score: bool) -> dict[str, list[str]]:
    """Question -> its first k chunks, by rank, or as trec_eval sorts: by single-precision score, ties to larger ids."""
    lists: dict[str, list[tuple[Any, ...]]] = {}
    scored = by_score and not run.column("score").null_count
    for row in run.select(["question_id", "chunk_id", "rank", "score"]).to_pylist():
        key = (np.float32(row["score"]), row["chunk_id"]) if scored else (-row["rank"], "")
        lists.setdefault(row["question_id"], []).append((*key, row["chunk_id"]))
    return {question: [entry[-1] for entry in sorted(entries, reverse=True)[:k]]
            for question, entries in lists.items()}


def _recall(pairs: Mapping[str, set[str]], lists: Mapping[str, list[str]]) -> Recall:
    return {question: len(chunks & set(lists.get(question, ()))) / len(chunks) for question, chunks in pairs.items()}


def _step(name: str, recall: Recall, before: Recall | None = None, *,
          weights: Mapping[str, float] | None = None) -> dict[str, Any]:
    weight = {question: (weights or {}).get(question, 1.0) for question in recall}
    total = sum(weight.values())
    value = sum(weight[question] * share for question, share in recall.items()) / total if total else None
    differ = 0 if before is None else sum(abs(share - before.get(question, -1.0)) > 1e-12
                                          for question, share in recall.items())
    return {"step": name, "value": value, "questions": len(recall), "differ": differ}
