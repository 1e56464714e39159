"""Earlier decisions on documents that have changed since: yes whose evidence still stands, at its new place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.gold.reanchor import Anchor, reanchor
from goldset.schemas import from_rows
from goldset.text import content_hash, count_words

Pair = tuple[str, str]


@dataclass(frozen=True)
class Followed:
    """What became of some yes in documents that changed.

    Attributes:
        decisions: table ``decisions``: the given ones; yes whose text stands elsewhere are about a span of their own.
        changed: table ``decisions``: yes whose text was changed between its old neighbours, likewise.
        origin: pair of ``changed`` -> the given one.
        spans: table ``spans``: the stretches of the new documents that both are about; no chunk need hold them.
    """

    decisions: pa.Table
    changed: pa.Table
    origin: dict[Pair, Pair]
    spans: pa.Table


def follow_edits(*, decisions: pa.Table, spans: pa.Table, documents: pa.Table, pairs: Iterable[Pair],
                 name: str = "moved") -> Followed:
    """Decisions with the spans they were made on, documents as they are now -> where the yes in ``pairs`` stand.

    The rules are those of ``reanchor``. Documents that did not change take no part: what stands in them stood there
    before. A yes with ranges in several documents now, or with one that is gone, stays as it is.

    Args:
        decisions: table ``decisions``.
        spans: table ``spans`` that the decisions name.
        documents: table ``documents`` as read now; without text nothing is found.
        pairs: the yes to look for.
        name: begins the ids of the new spans.
    """
    wanted = set(pairs)
    before, now = _versions(spans, "doc_sha256"), _versions(documents, "sha256")
    same = {*before} & {*now}
    old = spans.filter(pa.array([version not in same for version in before], pa.bool_()))
    new = documents.filter(pa.array([version not in same for version in now], pa.bool_()))
    known = set(old.column("span_id").to_pylist())
    rows = [row for row in decisions.to_pylist() if (row["question_id"], row["span_id"]) in wanted and row["relevant"]]
    places: dict[Pair, list[Anchor]] = {}
    gold = pa.Table.from_pylist([{key: row[key] for key in ("question_id", "span_id", "evidence")} for row in rows
                                 if row["span_id"] in known], schema=decisions.select(
                                     ["question_id", "span_id", "evidence"]).schema)
    for anchor in reanchor(gold=gold, spans=old, documents=new) if len(gold) else ():
        places.setdefault((anchor.question_id, anchor.span_id), []).append(anchor)
    texts = {row["doc_id"]: row for row in new.to_pylist()}
    moved: dict[Pair, dict[str, Any]] = {}
    changed: list[dict[str, Any]] = []
    origin: dict[Pair, Pair] = {}
    made: list[dict[str, Any]] = []
    for row in rows:
        pair = (row["question_id"], row["span_id"])
        anchors = places.get(pair, [])
        docs = {anchor.new_doc_id for anchor in anchors}
        if len(docs) != 1 or None in docs:
            continue
        span = _stretch(f"{name} {pair[0]} {pair[1]}", texts[anchors[0].new_doc_id or ""], anchors)
        made.append(span)
        there = {**row, "span_id": span["span_id"], "evidence": [
            {"start": anchor.new_start, "end": anchor.new_end} for anchor in anchors] if row["evidence"] else []}
        if all(anchor.similarity == 1.0 for anchor in anchors):
            moved[pair] = there
        else:
            changed.append(there)
            origin[pair[0], span["span_id"]] = pair
    kept = [moved.get((row["question_id"], row["span_id"]), row) for row in decisions.to_pylist()]
    return Followed(from_rows("decisions", kept), from_rows("decisions", changed), origin, from_rows("spans", made))


def _versions(table: pa.Table, sha: str) -> list[tuple[str, str | None]]:
    """Document and hash of its text, row by row."""
    return list(zip(table.column("doc_id").to_pylist(), table.column(sha).to_pylist(), strict=True))


def _stretch(span_id: str, document: dict[str, Any], anchors: list[Anchor]) -> dict[str, Any]:
    start, end = min(anchor.new_start or 0 for anchor in anchors), max(anchor.new_end or 0 for anchor in anchors)
    text = document["text"][start:end]
    return {"span_id": span_id, "doc_id": document["doc_id"], "start": start, "end": end, "text": text, "heading": None,
            "doc_sha256": document["sha256"], "text_hash": content_hash(text), "twin_group": span_id,
            "words": count_words(text), "offsets": "verified"}
