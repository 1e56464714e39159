"""questions, spans, documents -> what a reviewer reads: the question, the passage, a sentence of context either side.

Browsers count UTF-16 code units, everything else here counts Unicode code points. ``units`` and ``points`` convert,
and only the page's edge calls them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from goldset.errors import DataError
from goldset.spans import context, sentences

WINDOW = 600  # code points of a neighbouring span in which its nearest sentence is looked for


@dataclass(frozen=True)
class Asked:
    """A question as the reviewer sees it."""

    question_id: str
    text: str
    turns: tuple[tuple[str, str], ...] = ()  # (role, text), oldest first
    need: str | None = None


@dataclass(frozen=True)
class Passage:
    """A span as the reviewer sees it; ``sentences`` are half-open code point ranges of ``text``."""

    span_id: str
    doc_id: str
    text: str
    text_hash: str
    start: int | None  # of the text in the document; null where offsets are absent
    title: str | None
    heading: str | None
    before: str
    after: str
    sentences: tuple[tuple[int, int], ...]

    def in_document(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges of the text -> ranges of the document; none where the passage has no place in it."""
        return [] if self.start is None else [(self.start + start, self.start + end) for start, end in ranges]


class Passages:
    """Passages by span, made when asked for; ``representative`` is the span that stands for its twins."""

    def __init__(self, *, spans: pa.Table, documents: pa.Table | None = None, language: str = "en") -> None:
        self._spans = spans
        self._language = language
        ids = spans.column("span_id").to_pylist()
        self._row = {span: row for row, span in enumerate(ids)}
        self._twin = dict(zip(ids, spans.column("twin_group").to_pylist(), strict=True))
        places: dict[str, list[tuple[int, int]]] = {}
        starts = spans.column("start").to_pylist()
        for row, (doc, start) in enumerate(zip(spans.column("doc_id").to_pylist(), starts, strict=True)):
            if start is not None:
                places.setdefault(doc, []).append((start, row))
        self._places = {doc: sorted(rows) for doc, rows in places.items()}
        self._documents = documents
        self._document = {} if documents is None else {
            doc: row for row, doc in enumerate(documents.column("doc_id").to_pylist())}

    def __contains__(self, span_id: str) -> bool:
        return span_id in self._row

    def representative(self, span_id: str) -> str:
        """The span under which the text is judged."""
        twin: str = self._twin[span_id]
        return twin if twin in self._row else span_id

    def passage(self, span_id: str) -> Passage:
        """The passage of a span; DataError for one that the corpus does not have."""
        if span_id not in self._row:
            raise DataError(f"span '{span_id}' is in the queue but not in the table 'spans'; "
                            "rebuild the queue from this corpus")
        row = self._spans.slice(self._row[span_id], 1).to_pylist()[0]
        text = row["text"]
        # Where the text is not known to stand at its offsets, nobody can say where its sentences are.
        placed = row["start"] is not None and row["end"] - row["start"] == len(text) and row["offsets"] != "mismatched"
        start = row["start"] if placed else None
        document = self._document_row(row["doc_id"])
        before, after = self._around(row, start, document.get("text"))
        return Passage(span_id=span_id, doc_id=row["doc_id"], text=text, text_hash=row["text_hash"], start=start,
                       title=document.get("title"), heading=row["heading"], before=before, after=after,
                       sentences=tuple(sentences(text, self._language)))

    def _document_row(self, doc_id: str) -> dict[str, Any]:
        if self._documents is None or doc_id not in self._document:
            return {}
        row: dict[str, Any] = self._documents.slice(self._document[doc_id], 1).to_pylist()[0]
        return row

    def _around(self, row: dict[str, Any], start: int | None, text: str | None) -> tuple[str, str]:
        if start is None:
            return "", ""
        if text is not None:
            return context(row, {row["doc_id"]: text})
        before, after = self._neighbours(row)
        first, last = sentences(before, self._language), sentences(after, self._language)
        return before[first[-1][0] : first[-1][1]] if first else "", after[: last[0][1]].strip() if last else ""

    def _neighbours(self, row: dict[str, Any]) -> tuple[str, str]:
        """Where only chunks exist: the ends of the spans next to it, if they touch it."""
        places = self._places[row["doc_id"]]
        at = bisect_left(places, (row["start"], self._row[row["span_id"]]))
        before = self._spans.slice(places[at - 1][1], 1).to_pylist()[0] if at else None
        after = self._spans.slice(places[at + 1][1], 1).to_pylist()[0] if at + 1 < len(places) else None
        return (before["text"][-WINDOW:] if before and before["end"] == row["start"] else "",
                after["text"][:WINDOW] if after and after["start"] == row["end"] else "")


def asked(questions: pa.Table) -> dict[str, Asked]:
    """Table questions -> question_id -> what the reviewer sees of it."""
    rows = questions.select(["question_id", "text", "context", "need"]).to_pylist()
    return {row["question_id"]: Asked(row["question_id"], row["text"],
                                      tuple((turn["role"], turn["text"]) for turn in row["context"] or ()),
                                      row["need"]) for row in rows}


def units(text: str, point: int) -> int:
    """Code points -> UTF-16 code units: where position ``point`` of ``text`` lies for a browser."""
    return point + sum(character > "\uffff" for character in text[:point])


def points(text: str, unit: int) -> int | None:
    """UTF-16 code units -> code points; None inside a character or outside the text."""
    seen = 0
    for point, character in enumerate(text):
        if seen >= unit:
            return point if seen == unit else None
        seen += 2 if character > "\uffff" else 1
    return len(text) if seen == unit else None


def to_plain(passage: Passage) -> dict[str, Any]:
    """A passage as JSON-like values, for the database."""
    return asdict(passage)


def from_plain(value: dict[str, Any]) -> Passage:
    """The inverse of ``to_plain``."""
    return replace(Passage(**value), sentences=tuple((start, end) for start, end in value["sentences"]))
