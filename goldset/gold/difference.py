"""What changed between two versions of a set."""

from __future__ import annotations

from typing import Any

from goldset.formats.sets import LabelledSet


def diff_versions(old: LabelledSet, new: LabelledSet) -> dict[str, Any]:
    """Two sets -> counts: questions and gold added, removed, kept; judgments that turned; both labels' counts."""
    before, after = _questions(old), _questions(new)
    gold_before, gold_after = _pairs(old), _pairs(new)
    judged_before, judged_after = _judged(old), _judged(new)
    turned = [pair for pair in judged_before.keys() & judged_after.keys()
              if judged_before[pair] is not judged_after[pair]]
    return {"schema": "goldset.diff/1", "old": old.label, "new": new.label,
            "questions": _change(before, after), "gold": _change(gold_before, gold_after),
            "judgments_turned": len(turned),
            "turned": [{"question_id": q, "span_id": s, "old": judged_before[q, s], "new": judged_after[q, s]}
                       for q, s in sorted(turned)[:20]]}


def _questions(labelled: LabelledSet) -> set[Any]:
    return set(labelled.judgments.column("question_id").to_pylist()
               if labelled.questions is None else labelled.questions.column("question_id").to_pylist())


def _pairs(labelled: LabelledSet) -> set[Any]:
    return {(row["question_id"], row["span_id"])
            for row in labelled.gold.select(["question_id", "span_id"]).to_pylist()}


def _judged(labelled: LabelledSet) -> dict[tuple[str, str], bool | None]:
    return {(row["question_id"], row["span_id"]): row["relevant"]
            for row in labelled.judgments.select(["question_id", "span_id", "relevant"]).to_pylist()}


def _change(before: set[Any], after: set[Any]) -> dict[str, int]:
    return {"old": len(before), "new": len(after), "added": len(after - before), "removed": len(before - after),
            "kept": len(before & after)}
