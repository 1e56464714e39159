"""Labels -> decisions: what people say of each pair, and the pairs that two people have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from goldset.schemas import from_rows
from goldset.stats.sampling import pairs_of

from .history import Answer, Pair, Range, answered_items, by_pair, standing
from .queue import PRIMARY

# Whole passages say nothing about where the answer lies; they count only where nobody pointed at sentences.
_SOURCES = ("selected", "quote", "imported", "whole_span")


def resolve(*, queue: pa.Table, labels: pa.Table) -> pa.Table:
    """queue, labels -> decisions: one row for each pair that was asked about or labelled, by question and span.

    * Equal answers decide; the evidence is the union of theirs.
    * Answers that differ (yes, no and can't tell are three answers) are a ``conflict`` with relevant null, until the
      answer to an adjudication item decides alone, whoever gave it. Its evidence joins that of the labels it confirms.
    * Can't tell is relevant null with status ``cant_tell``; a pair without an answer is ``open``.

    The basis is ``adjudicated``, ``searched`` (only found through the search box), ``imported`` (only imported without
    a queue item), else ``human``.
    """
    rows = queue.to_pylist()
    adjudications = {row["item_id"] for row in rows if row["reason"] == "adjudication"}
    answers = by_pair(answer for answer in standing(labels.to_pylist()) if answer.answers)
    pairs = sorted({*pairs_of(queue), *answers})
    return from_rows("decisions", [_decide(pair, answers.get(pair, []), adjudications) for pair in pairs])


def _decide(pair: Pair, answers: list[Answer], adjudications: set[str]) -> dict[str, Any]:
    settled = [answer for answer in answers if answer.item_id in adjudications]
    if settled:
        return _row(pair, answers, final=settled[-1], basis="adjudicated")
    said = {answer.relevant for answer in answers}
    if not answers:
        return _row(pair, [], status="open")
    if len(said) > 1:
        return _row(pair, answers, status="conflict")
    return _row(pair, answers, final=answers[-1], basis=_basis(answers))


def _basis(answers: list[Answer]) -> str:
    if all(answer.item_id is None for answer in answers):
        origins = {answer.origin for answer in answers}
        if origins == {"page"}:
            return "searched"
        if origins == {"import"}:
            return "imported"
    return "human"


def _row(pair: Pair, answers: list[Answer], *, final: Answer | None = None, status: str = "decided",
         basis: str = "human") -> dict[str, Any]:
    relevant = final.relevant if final else None
    ranges: list[Range] = []
    source = None
    if relevant:
        ranges, source = _evidence([answer for answer in answers if answer.relevant])
    if final and relevant is None:
        status = "cant_tell"
    return {"question_id": pair[0], "span_id": pair[1], "relevant": relevant, "status": status, "basis": basis,
            "evidence": [{"start": start, "end": end} for start, end in ranges], "evidence_source": source,
            "label_ids": sorted(label for answer in answers for label in answer.label_ids)}


def _evidence(answers: list[Answer]) -> tuple[list[Range], str | None]:
    """Union of the evidence that points most exactly, and how it was given."""
    for source in _SOURCES:
        chosen = [answer for answer in answers if answer.evidence_source == source and answer.evidence]
        if chosen:
            return merge(piece for answer in chosen for piece in answer.evidence), source
    return [], next((answer.evidence_source for answer in answers if answer.evidence_source), None)


def merge(ranges: Iterable[Range]) -> list[Range]:
    """Ranges -> their union: sorted, without overlaps; ranges that merely touch stay two sentences."""
    union: list[Range] = []
    for start, end in sorted(set(ranges)):
        if union and start < union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union


def paired_labels(*, queue: pa.Table, labels: pa.Table) -> pd.DataFrame:
    """queue, labels -> pairs that two people answered independently, for the agreement statistics.

    Columns: question_id, span_id, reason (of the first item), stratum, stratum_size, assessor_a, assessor_b,
    relevant_a, relevant_b (True, False, or None for can't tell). a answered the first item, b the second one; answers
    to adjudication items do not appear (METHODS 10: agreement uses the originals).
    """
    items: dict[Pair, dict[str, Mapping[str, Any]]] = {}
    for row in queue.to_pylist():
        kind = "first" if row["reason"] in PRIMARY else row["reason"]
        items.setdefault((row["question_id"], row["span_id"]), {}).setdefault(kind, row)
    given = answered_items(standing(labels.to_pylist()))
    found = []
    for pair in sorted(items):
        first, second = items[pair].get("first"), items[pair].get("second")
        a = given.get(first["item_id"], []) if first else []
        b = [answer for answer in given.get(second["item_id"], []) if not a or answer.assessor != a[0].assessor] \
            if second else []
        if first and a and b:
            found.append({"question_id": pair[0], "span_id": pair[1], "reason": first["reason"],
                          "stratum": first["stratum"], "stratum_size": first["stratum_size"],
                          "assessor_a": a[0].assessor, "assessor_b": b[0].assessor,
                          "relevant_a": a[0].relevant, "relevant_b": b[0].relevant})
    columns = ["question_id", "span_id", "reason", "stratum", "stratum_size", "assessor_a", "assessor_b",
               "relevant_a", "relevant_b"]
    frame = pd.DataFrame(found, columns=columns)
    return frame.astype({"relevant_a": object, "relevant_b": object})


def status(*, queue: pa.Table, labels: pa.Table) -> dict[str, Any]:
    """queue, labels -> how far the review is, for ``goldset review status``.

    Keys: items, answered, open, later, conflicts (pairs), waves, reasons {reason: {answered, open}}, carried {items,
    others} (answers from earlier rebuilds: to items, and to pairs that nobody is asked about now),
    assessors {name: {answered, seconds}}, seconds (of timed answers), seconds_per_item and hours_left (null until an
    answer was timed).
    """
    rows = queue.to_pylist()
    answers = standing(labels.to_pylist())
    given = answered_items(answers)
    reasons: dict[str, dict[str, int]] = {}
    for row in rows:
        count = reasons.setdefault(row["reason"], {"answered": 0, "open": 0})
        count["answered" if row["item_id"] in given else "open"] += 1
    people: dict[str, dict[str, float]] = {}
    for answer in answers:
        if answer.answers:
            person = people.setdefault(answer.assessor, {"answered": 0, "seconds": 0.0})
            person["answered"] += 1
            person["seconds"] += answer.seconds or 0.0
    carried = [answer.item_id for answer in answers if answer.origin == "carried"]
    timed = [answer.seconds for answer in answers if answer.answers and answer.seconds is not None]
    mean = sum(timed) / len(timed) if timed else None
    unanswered = sum(count["open"] for count in reasons.values())
    decisions = resolve(queue=queue, labels=labels).column("status").to_pylist()
    return {
        "items": len(rows), "answered": len(rows) - unanswered, "open": unanswered,
        "later": len({answer.item_id for answer in answers if answer.reason == "later" and answer.item_id}
                     - set(given)),
        "conflicts": decisions.count("conflict"), "waves": max((row["wave"] for row in rows), default=0),
        "reasons": reasons, "carried": {"items": len(set(carried) - {None}), "others": carried.count(None)},
        "assessors": people, "seconds": sum(timed), "seconds_per_item": mean,
        "hours_left": None if mean is None else unanswered * mean / 3600,
    }
