"""What must be held of a gold span, and when a list of chunks holds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.spans.neartwins import aligned
from goldset.spans.sentences import ink_counts, is_table_row
from goldset.text import twin_key

if TYPE_CHECKING:
    import pandas as pd

HALF = 0.5
_SLACK = 1e-9  # 0.9 * 10 must not ask for more than nine

Range = tuple[int, int]


@dataclass(frozen=True)
class Target:
    """Ranges of a document that must be held, each with its share; ink counts non-space code points from ``origin``.

    Without evidence the one range is the whole span and ``lenient`` asks for the second reading too.
    """

    ranges: tuple[tuple[int, int, float], ...]
    ink: Any
    origin: int
    lenient: bool

    def _count(self, low: int, high: int) -> int:
        return int(self.ink[high - self.origin] - self.ink[low - self.origin]) if high > low else 0

    def decide(self, served: list[tuple[int, int, int, int]]) -> tuple[int, int]:
        """(rank, first, last, size) of chunks by rank -> (strict rank, lenient rank); 0 for never.

        ``first`` and ``last`` are the part of the document that the chunk holds, ``size`` its own ink.
        """
        strict = 0
        for low, high, share in self.ranges:
            reached = self._reached(low, high, share, served)
            if not reached:
                strict = 0
                break
            strict = max(strict, reached)
        if not self.lenient:
            return strict, strict
        low, high, _ = self.ranges[0]
        whole = self._count(low, high)
        for rank, first, last, size in served:
            if strict and rank >= strict:
                break
            shared = self._count(max(first, low), min(last, high))
            if shared and shared >= HALF * min(whole, size) - _SLACK:
                return strict, rank
        return strict, strict

    def _reached(self, low: int, high: int, share: float, served: list[tuple[int, int, int, int]]) -> int:
        """Smallest rank down to which the union of the chunks holds the share of the range; 0 for never."""
        need = share * self._count(low, high) - _SLACK
        held: list[Range] = []
        for rank, first, last, _ in served:
            first, last = max(first, low), min(last, high)
            if first >= last:
                continue
            held = _joined(held, first, last)
            if sum(self._count(*part) for part in held) >= need:
                return rank
        return 0


def _joined(parts: list[Range], low: int, high: int) -> list[Range]:
    """Disjoint ranges and one more -> disjoint ranges."""
    rest = []
    for start, end in parts:
        if start <= high and low <= end:
            low, high = min(low, start), max(high, end)
        else:
            rest.append((start, end))
    return [*rest, (low, high)]


def targets(
    *, rows: pd.DataFrame, evidence: pa.ChunkedArray, spans: pa.Table, chunks: pa.Table, threshold: float
) -> tuple[dict[int, Target], pd.DataFrame]:
    """Gold rows to measure -> target by gold number, and the chunks that hold a part of it.

    Args:
        rows: gold, question_id, span_id.
        evidence: the column of the whole table ``gold``.
        spans: table ``spans``.
        chunks: chunks of the run.
        threshold: share of each evidence range that must be held.

    Returns:
        Targets (none for a span without offsets) and a frame gold, question_id, chunk_id, first, last, size.
    """
    import pandas as pd

    places = _Places(rows, spans, chunks)
    found: dict[int, Target] = {}
    owner: list[int] = []
    question: list[str] = []
    parts: list[tuple[str, int, int, int]] = []
    for number, question_id, span_id in zip(rows["gold"].tolist(), rows["question_id"], rows["span_id"], strict=True):
        span = places.spans[span_id]
        if span.start is None:
            continue
        ranges = [(part["start"], part["end"]) for part in evidence[number].as_py()]
        target = span.target(ranges, threshold)
        found[number] = target
        low, high = min(part[0] for part in target.ranges), max(part[1] for part in target.ranges)
        holding = [part for part in places.holding(span) if part[1] < high and low < part[2]]
        if low < span.start or high > span.end:
            holding = places.chunks_in(span.doc_id, low, high)
        # Only the second reading asks how long a chunk is.
        size_of = places.size if target.lenient else _no_size
        parts.extend((places.ids[row], first, last, size_of(row)) for row, first, last in holding)
        owner.extend([number] * len(holding))
        question.extend([question_id] * len(holding))
    ids, first, last, size = zip(*parts, strict=True) if parts else ((), (), (), ())
    frame = pd.DataFrame(
        {
            "gold": np.array(owner, np.int64),
            "question_id": pd.Series(question, dtype="str"),
            "chunk_id": pd.Series(list(ids), dtype="str"),
            "first": np.array(first, np.int64),
            "last": np.array(last, np.int64),
            "size": np.array(size, np.int64),
        }
    )
    return found, frame


class _Span:
    """A span with the ink of its text."""

    def __init__(self, span_id: str, doc_id: str, start: int | None, end: int | None, text: str) -> None:
        self.span_id, self.doc_id, self.text = span_id, doc_id, text
        self.start, self.end = start, end or 0
        length = self.end - (start or 0)
        # Where the text does not fit its offsets (mismatched), every code point of the range counts alike.
        self.fits = len(text) == length
        self.ink = ink_counts(text) if self.fits else np.arange(length + 1)
        self._blocks: dict[str, list[tuple[int, int, int]]] = {}  # near twin -> what both have

    def target(self, evidence: list[Range], threshold: float) -> Target:
        """What must be held: the evidence ranges, or the span."""
        assert self.start is not None
        low = min([self.start, *(start for start, _ in evidence)])
        high = max([self.end, *(end for _, end in evidence)])
        ink, origin = self.ink, self.start
        if low < self.start or high > self.end:  # text outside the span is not known here: all of it counts
            before, after = self.start - low, high - self.end
            ink = np.concatenate([np.arange(before), before + ink, before + ink[-1] + 1 + np.arange(after)])
            origin = low
        target = Target((), ink, origin, lenient=False)
        ranges = tuple(
            (start, end, 1.0 if self._is_row(start, end) else threshold)
            for start, end in evidence
            if target._count(start, end)
        )
        if ranges:
            return Target(ranges, ink, origin, lenient=False)
        return Target(((self.start, self.end, HALF),), ink, origin, lenient=True)

    def _is_row(self, start: int, end: int) -> bool:
        assert self.start is not None
        text = self.text[start - self.start : end - self.start] if self.fits and start >= self.start else ""
        return "\n" not in text and is_table_row(text)

    def mapped(self, twin: _Span, low: int, high: int) -> list[Range]:
        """The range ``[low, high)`` of a twin's document -> where the same text stands in this span's document."""
        assert self.start is not None
        assert twin.start is not None
        if self.text == twin.text:
            return [(low - twin.start + self.start, high - twin.start + self.start)]
        if self.key != twin.key and self.fits and twin.fits:
            return self._aligned(twin, low, high)
        # White space or composition differs: the k-th visible character of one is the k-th of the other.
        scale = self.ink[-1] / max(twin.ink[-1], 1)
        before, upto = (int(twin.ink[at - twin.start]) * scale for at in (low, high))
        first = int(np.searchsorted(self.ink, round(before), side="right")) - 1
        last = int(np.searchsorted(self.ink, round(upto), side="left"))
        return [(self.start + first, self.start + last)]

    @cached_property
    def key(self) -> str:
        """What exact twins share."""
        return twin_key(self.text)

    def _aligned(self, twin: _Span, low: int, high: int) -> list[Range]:
        """A merged near twin delivers what it has word for word."""
        assert self.start is not None
        assert twin.start is not None
        if twin.span_id not in self._blocks:
            self._blocks[twin.span_id] = aligned(self.text, twin.text)
        found: list[Range] = []
        for ours, theirs, size in self._blocks[twin.span_id]:
            first, last = max(low - twin.start, theirs), min(high - twin.start, theirs + size)
            if first < last:
                start, end = self.start + ours + first - theirs, self.start + ours + last - theirs
                if found and found[-1][1] == start:
                    start = found.pop()[0]
                found.append((start, end))
        return found


class _Places:
    """Where the text of a gold span stands, in its own document and in those of its twins, and in which chunks."""

    def __init__(self, rows: pd.DataFrame, spans: pa.Table, chunks: pa.Table) -> None:
        wanted = pa.array(rows["span_id"].unique(), pa.string())
        columns = ["span_id", "doc_id", "start", "end", "text"]
        mine = spans.filter(pc.is_in(spans.column("span_id"), value_set=wanted))
        groups = pc.unique(mine.column("twin_group"))
        near = spans.filter(pc.is_in(spans.column("twin_group"), value_set=groups))
        self.spans: dict[str, _Span] = {}
        self._group: dict[str, list[_Span]] = {}
        self._group_of: dict[str, str] = {}
        values = (near.column(name).to_pylist() for name in (*columns, "twin_group"))
        for span_id, doc_id, start, end, text, group in zip(*values, strict=True):
            span = _Span(span_id, doc_id, start, end, text)
            self.spans[span_id] = span
            self._group_of[span_id] = group
            self._group.setdefault(group, []).append(span)
        docs = pc.unique(near.column("doc_id"))
        held = chunks.filter(
            pc.and_(pc.is_in(chunks.column("doc_id"), value_set=docs), pc.is_valid(chunks.column("start")))
        )
        self.ids = held.column("chunk_id").to_pylist()
        self._start = held.column("start").to_numpy()
        self._end = held.column("end").to_numpy()
        self._text, self._body = held.column("text"), held.column("body_start").to_numpy()
        self._untrue = set(np.flatnonzero(pc.equal(held.column("offsets"), "mismatched").to_numpy()).tolist())
        self._rows = held.column("doc_id").to_pandas().groupby(held.column("doc_id").to_pandas()).indices
        self._holding: dict[str, list[tuple[int, int, int]]] = {}
        self._sizes: dict[int, int] = {}

    def holding(self, span: _Span) -> list[tuple[int, int, int]]:
        """Chunks with a part of the span or of a twin: (row, first, last), in the span's document."""
        if span.span_id not in self._holding:
            assert span.start is not None
            found = self._parts(span)
            for twin in self._group[self._group_of[span.span_id]]:
                if twin is not span and twin.start is not None:
                    for row, low, high in self._parts(twin):
                        found.extend((row, *part) for part in span.mapped(twin, low, high))
            self._holding[span.span_id] = found
        return self._holding[span.span_id]

    def _parts(self, span: _Span) -> list[tuple[int, int, int]]:
        """Chunks with a part of this span, twins aside.

        A chunk whose offsets do not fit its text (mismatched) holds what of the span stands in it word for word.
        """
        assert span.start is not None
        found: list[tuple[int, int, int]] = []
        for row, low, high in self.chunks_in(span.doc_id, span.start, span.end):
            if row in self._untrue and span.fits:
                found.extend((row, span.start + ours, span.start + ours + size)
                             for ours, _, size in aligned(span.text, self.body(row)))
            else:
                found.append((row, low, high))
        return found

    def chunks_in(self, doc_id: str, low: int, high: int) -> list[tuple[int, int, int]]:
        """Chunks that share code points with ``[low, high)``: (row, first shared, one past the last)."""
        rows = self._rows.get(doc_id)
        if rows is None:
            return []
        start, end = self._start[rows], self._end[rows]
        here = (start < high) & (end > low)
        return list(
            zip(
                rows[here].tolist(),
                np.maximum(start[here], low).tolist(),
                np.minimum(end[here], high).tolist(),
                strict=True,
            )
        )

    def size(self, row: int) -> int:
        """Non-space code points of a chunk's body."""
        if row not in self._sizes:
            self._sizes[row] = int(ink_counts(self.body(row))[-1])
        return self._sizes[row]

    def body(self, row: int) -> str:
        """A chunk's text without its header."""
        text: str = self._text[row].as_py()
        return text[self._body[row] :]


def _no_size(row: int) -> int:
    return 0
