"""Documents and chunks -> canonical spans: the disjoint stretches of text that people judge."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.progress import progress
from goldset.schemas import HEADINGS, OFFSET_STATES, conform, schema_of
from goldset.spans.fold import Stretch, fold, links
from goldset.text import content_hash, count_words, twin_key

LEAST_SHARED = 16
"""Shorter agreement between the end of one chunk and the start of the next says nothing."""

_RANK = {state: rank for rank, state in enumerate(OFFSET_STATES)}


@dataclass(frozen=True)
class SpanTables:
    """Tables ``spans`` and ``span_links``, and what was counted on the way."""

    spans: pa.Table
    links: pa.Table
    report: dict[str, Any]


class _Chunk(NamedTuple):
    chunk_id: str
    start: int
    end: int
    body: str
    offsets: str


class _Document(NamedTuple):
    text: str | None
    sha256: str | None
    headings: list[tuple[int, int, str]]


def canonical_spans(*, documents: pa.Table, chunks: pa.Table, quiet: bool = True) -> SpanTables:
    """documents, chunks -> spans, span_links: disjoint pieces of each document that hold all chunk text.

    The rule is in ``fold``. A span depends on the chunks of its own document only, never on row order; chunks that
    overlap no other are their own spans; a chunk without offsets is its own span ``doc_id#chunk_id``. The offset state
    of a span is the weakest of its chunks. Rows come in order of document and start. Unless ``quiet``, a bar shows how
    far it is.

    Returns:
        SpanTables; the report counts chunks, spans, overlapping neighbours (pairs that fold into one anchor, pairs
        that are cut), cuts, cuts at a sentence boundary, spans with a twin.
    """
    builder = _Builder(_Documents(documents))
    with progress("folding chunks", len(chunks), quiet=quiet) as advance:
        for doc_id, group in _by_document(chunks):
            builder.add(doc_id, group)
            advance(len(group))
    return builder.finish(len(chunks))


class _Documents:
    """Texts by doc_id, read from the table when asked for."""

    def __init__(self, table: pa.Table) -> None:
        self._row = {doc_id: row for row, doc_id in enumerate(table.column("doc_id").to_pylist())}
        self._table = table.select(["text", "sha256", "metadata"]).combine_chunks()

    def get(self, doc_id: str) -> _Document:
        row = self._row.get(doc_id)
        if row is None:
            return _Document(None, None, [])
        text, sha256, metadata = (self._table.column(i)[row].as_py() for i in range(3))
        found = json.loads(metadata).get(HEADINGS, []) if HEADINGS in metadata else []
        return _Document(text, sha256, [(int(at), int(level), str(title)) for at, level, title in found])


def _by_document(
    chunks: pa.Table,
) -> Iterator[tuple[str, list[tuple[str, int | None, int | None, str, str]]]]:
    """(doc_id, its chunks as (chunk_id, start, end, body, offsets)), both in an order that rows do not decide."""
    order = pc.sort_indices(
        chunks,
        sort_keys=[
            ("doc_id", "ascending"),
            ("start", "ascending"),
            ("end", "descending"),
            ("chunk_id", "ascending"),
        ],
    )
    names = ["doc_id", "chunk_id", "start", "end", "text", "body_start", "offsets"]
    current: str | None = None
    group: list[tuple[str, int | None, int | None, str, str]] = []
    for at in range(0, len(order), 65536):
        part = chunks.select(names).take(order.slice(at, 65536))
        columns = [part.column(name).to_pylist() for name in names]
        for doc_id, chunk_id, start, end, text, body_start, offsets in zip(*columns, strict=True):
            if doc_id != current:
                if current is not None:
                    yield current, group
                current, group = doc_id, []
            group.append((chunk_id, start, end, text[body_start:], offsets))
    if current is not None:
        yield current, group


class _Builder:
    """Collects the columns of both tables."""

    def __init__(self, documents: _Documents) -> None:
        self._documents = documents
        self._spans: dict[str, list[Any]] = {
            name: []
            for name in (
                "span_id",
                "doc_id",
                "start",
                "end",
                "text",
                "heading",
                "doc_sha256",
                "text_hash",
                "words",
                "offsets",
            )
        }
        self._keys: list[bytes] = []
        self._links: dict[str, list[Any]] = {name: [] for name in ("chunk_id", "span_id", "chunk_share", "span_share")}
        self._counts = dict.fromkeys(("pairs", "pairs_folded", "pairs_cut", "cuts", "cuts_at_sentence"), 0)

    def add(self, doc_id: str, group: list[tuple[str, int | None, int | None, str, str]]) -> None:
        """All chunks of one document."""
        document = self._documents.get(doc_id)
        placed: list[_Chunk] = []
        for chunk_id, start, end, body, offsets in group:
            if start is None or end is None:
                span_id = self._span(f"{doc_id}#{chunk_id}", doc_id, None, None, body, document, offsets)
                self._link(chunk_id, span_id, 1.0, 1.0)
            else:
                placed.append(_Chunk(chunk_id, start, end, body, offsets))
        stretch: Stretch | None = None
        beyond = next((chunk for chunk in placed if document.text is not None and chunk.end > len(document.text)), None)
        if beyond is not None:
            raise DataError(
                f"chunk '{beyond.chunk_id}' ends at {beyond.end}, but its document '{doc_id}' has "
                f"{len(document.text or '')} code points; build the corpus again from matching files"
            )
        at = 0
        while at < len(placed):
            reach, to = placed[at].end, at + 1
            while to < len(placed) and placed[to].start < reach:
                reach = max(reach, placed[to].end)
                to += 1
            if to == at + 1:
                chunk = placed[at]
                span_id = self._span(
                    f"{doc_id}#{chunk.start}-{chunk.end}",
                    doc_id,
                    chunk.start,
                    chunk.end,
                    chunk.body,
                    document,
                    chunk.offsets,
                )
                self._link(chunk.chunk_id, span_id, 1.0, 1.0)
            else:
                if document.text is not None and stretch is None:
                    stretch = Stretch(document.text, 0)
                self._fold(doc_id, placed[at:to], document, stretch)
            at = to

    def _fold(self, doc_id: str, group: list[_Chunk], document: _Document, stretch: Stretch | None) -> None:
        texts = _Texts(group, document.text)
        stretch = stretch or Stretch(texts.canvas(), group[0].start)
        folded = fold([(chunk.start, chunk.end) for chunk in group], stretch)
        for left, right in itertools.pairwise(group):
            if right.start < left.end:
                half = 2 * (min(left.end, right.end) - right.start) >= min(
                    left.end - left.start, right.end - right.start
                )
                self._counts["pairs"] += 1
                self._counts["pairs_folded" if half else "pairs_cut"] += 1
        self._counts["cuts"] += folded.cuts
        self._counts["cuts_at_sentence"] += folded.at_sentence
        found = links([(chunk.start, chunk.end) for chunk in group], folded.pieces, stretch)
        weakest = [0] * len(folded.pieces)
        for number, piece, _, _ in found:
            weakest[piece] = max(weakest[piece], _RANK[group[number].offsets])
        ids = [
            self._span(
                f"{doc_id}#{start}-{end}",
                doc_id,
                start,
                end,
                texts.get(start, end),
                document,
                OFFSET_STATES[weakest[piece]],
            )
            for piece, (start, end) in enumerate(folded.pieces)
        ]
        for name, values in (("chunk_id", [group[number].chunk_id for number, _, _, _ in found]),
                             ("span_id", [ids[piece] for _, piece, _, _ in found]),
                             ("chunk_share", [min(share, 1.0) for _, _, share, _ in found]),
                             ("span_share", [min(share, 1.0) for _, _, _, share in found])):
            self._links[name] += values

    def _span(
        self,
        span_id: str,
        doc_id: str,
        start: int | None,
        end: int | None,
        text: str,
        document: _Document,
        offsets: str,
    ) -> str:
        key = twin_key(text)
        self._keys.append(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        words = len(text.split()) if text.isascii() else count_words(text)
        heading = _heading_path(document.headings, text, start)
        row = (
            span_id,
            doc_id,
            start,
            end,
            text,
            heading,
            document.sha256,
            content_hash(text),
            words,
            offsets,
        )
        for column, value in zip(self._spans.values(), row, strict=True):
            column.append(value)
        return span_id

    def _link(self, chunk_id: str, span_id: str, chunk_share: float, span_share: float) -> None:
        for column, value in zip(self._links.values(), (chunk_id, span_id, chunk_share, span_share), strict=True):
            column.append(value)

    def finish(self, chunks: int) -> SpanTables:
        """The tables and the report."""
        group: dict[bytes, str] = {}
        for key, span_id in zip(self._keys, self._spans["span_id"], strict=True):
            if key not in group or span_id < group[key]:
                group[key] = span_id
        twins = [group[key] for key in self._keys]
        spans = conform(pa.table({**_typed(self._spans, "spans"), "twin_group": pa.array(twins, pa.string())}), "spans")
        report = {
            "chunks": chunks,
            "spans": len(spans),
            **self._counts,
            "twins": len(spans) - len(group),
            "twin_groups": sum(count > 1 for count in _sizes(twins)),
        }
        return SpanTables(spans, conform(pa.table(_typed(self._links, "span_links")), "span_links"), report)


def _typed(columns: dict[str, list[Any]], name: str) -> dict[str, pa.Array]:
    schema = schema_of(name)
    return {column: pa.array(values, schema.field(column).type) for column, values in columns.items()}


def _sizes(values: Sequence[str]) -> list[int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return list(counts.values())


def _heading_path(headings: list[tuple[int, int, str]], text: str, start: int | None) -> str | None:
    """Titles of the headings in force where the span's first visible character stands, outermost first."""
    if not headings or start is None:
        return None
    at = start + len(text) - len(text.lstrip())
    path: list[tuple[int, str]] = []
    for _, level, title in headings[: bisect.bisect_right(headings, at, key=lambda heading: heading[0])]:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
    return " > ".join(title for _, title in path) or None


class _Texts:
    """Text of any stretch that a group of overlapping chunks holds.

    Where the document is known it is the document's. Where it is not, it comes from the chunks, and a chunk whose
    length disagrees with its offsets is mapped piecewise: its ends, and what it shares with its neighbours, are fixed.
    """

    def __init__(self, group: list[_Chunk], document: str | None) -> None:
        self._group = group
        self._document = document
        self._fixed: dict[int, list[tuple[int, int]]] = {}

    def get(self, start: int, end: int) -> str:
        """Text of ``[start, end)``."""
        if self._document is not None:
            return self._document[start:end]
        holders = [i for i, chunk in enumerate(self._group) if chunk.start <= start and end <= chunk.end]
        if holders:
            best = min(holders, key=lambda i: (_RANK[self._group[i].offsets], i))
            return self._slice(best, start, end)
        return self.canvas()[start - self._group[0].start : end - self._group[0].start]

    def canvas(self) -> str:
        """One code point for each position, from the first start to the last end."""
        parts: list[str] = []
        at = self._group[0].start
        # Trusted chunks first: a mismatched one fills only what no other holds.
        for start, end, i in self._cover():
            piece = self._slice(i, start, end)
            parts.append(piece[: end - start].ljust(end - start))
            at = end
        assert at == max(chunk.end for chunk in self._group)
        return "".join(parts)

    def _cover(self) -> list[tuple[int, int, int]]:
        """Consecutive stretches with the chunk that is trusted most for each."""
        marks = sorted({mark for chunk in self._group for mark in (chunk.start, chunk.end)})
        cover: list[tuple[int, int, int]] = []
        active: list[int] = []
        entering = 0
        for low, high in itertools.pairwise(marks):
            active = [i for i in active if self._group[i].end > low]
            while entering < len(self._group) and self._group[entering].start <= low:
                active.append(entering)
                entering += 1
            best = min(active, key=lambda i: (_RANK[self._group[i].offsets], i))
            if cover and cover[-1][2] == best:
                cover[-1] = (cover[-1][0], high, best)
            else:
                cover.append((low, high, best))
        return cover

    def _slice(self, i: int, start: int, end: int) -> str:
        chunk = self._group[i]
        if len(chunk.body) == chunk.end - chunk.start:
            return chunk.body[start - chunk.start : end - chunk.start]
        places, indexes = zip(*self._anchors(i), strict=True)
        low, high = np.interp([start, end], list(places), list(indexes))
        return chunk.body[round(low) : round(high)]

    def _anchors(self, i: int) -> list[tuple[int, int]]:
        """(position in the document, position in the body) pairs that are known for a mismatched chunk."""
        if i not in self._fixed:
            chunk = self._group[i]
            fixed = {chunk.start: 0, chunk.end: len(chunk.body)}
            for other in self._group:
                if other.start < chunk.start < other.end < chunk.end:
                    if shared := shared_length(other.body, chunk.body):
                        fixed[other.end] = shared
                elif chunk.start < other.start < chunk.end < other.end and (
                    shared := shared_length(chunk.body, other.body)
                ):
                    fixed[other.start] = len(chunk.body) - shared
            rising: list[tuple[int, int]] = []
            for place, index in sorted(fixed.items()):
                if not rising or (index > rising[-1][1] and index < len(chunk.body)) or place == chunk.end:
                    rising.append((place, index))
            self._fixed[i] = rising
        return self._fixed[i]


def shared_length(left: str, right: str, least: int = LEAST_SHARED) -> int:
    """Length of the longest suffix of ``left`` that is a prefix of ``right``; 0 if it is shorter than ``least``."""
    probe = right[: max(least, 1)]
    at = left.find(probe, max(0, len(left) - len(right)))
    while at >= 0:
        if right.startswith(left[at:]):
            return len(left) - at
        at = left.find(probe, at + 1)
    return 0
