"""Every way to place a chunk, on real text: verified, located in order, stitched, declared, absent."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import CorpusConfig
from goldset.corpus import CorpusTables, build_corpus
from goldset.formats.corpora import RawChunk
from goldset.schemas import from_rows
from goldset.spans import canonical_spans, restored_texts
from goldset.text import text_sha256
from tests.benchmarks.survival import COLLECTION, Chunking, cut, load_documents
from tests.collections.test_mtrag_spans import CONFIG as MTRAG
from tests.collections.test_mtrag_spans import CORPUS

CHUNKS = CorpusConfig.model_validate({"chunks": "chunks.jsonl"})
pytestmark = [
    pytest.mark.collections,
    pytest.mark.skipif(not COLLECTION.exists(), reason=f"the collection is not there: {COLLECTION}"),
]
Row = dict[str, Any]


def raw(rows: list[Row], *, offsets: bool, title: str | None = None) -> list[RawChunk]:
    head = "" if title is None else title + "\n"
    return [RawChunk(line, row["chunk_id"], row["doc_id"], head + row["text"], title,
                     row["start"] if offsets else None, row["end"] if offsets else None, {})
            for line, row in enumerate(rows, 1)]


def place(rows: list[RawChunk], documents: pa.Table | None) -> CorpusTables:
    return build_corpus(documents=documents, raw_chunks=rows, config=CHUNKS)


def by_id(tables: CorpusTables) -> dict[str, Row]:
    return {row["chunk_id"]: row for row in tables.chunks.to_pylist()}


# --- chunk-spans: five long documents, with footers that repeat on every page ------------------------------------


@pytest.fixture(scope="module")
def documents() -> pa.Table:
    return load_documents()


@pytest.fixture(scope="module")
def windows(documents: pa.Table) -> list[Row]:
    """2,900 windows of 200 words by 100, in the order of the documents."""
    rows: list[Row] = cut(documents, Chunking("words", 200, 100)).to_pylist()
    return sorted(rows, key=lambda row: (row["doc_id"], row["start"]))


def test_chunk_spans_verified_under_a_title(documents: pa.Table, windows: list[Row]) -> None:
    found = place(raw(windows, offsets=True, title="Annual report"), documents)
    assert found.report["offsets"] == {"verified": len(windows)}
    assert {row["body_start"] for row in found.chunks.to_pylist()} == {len("Annual report\n")}


def test_chunk_spans_located_in_order(documents: pa.Table, windows: list[Row]) -> None:
    found = place(raw(windows, offsets=False), documents)
    assert found.report["offsets"] == {"located": len(windows)}
    places = by_id(found)
    assert all((places[row["chunk_id"]]["start"], places[row["chunk_id"]]["end"]) == (row["start"], row["end"])
               for row in windows)


def test_chunk_spans_stitched_without_documents(windows: list[Row]) -> None:
    found = place(raw(windows, offsets=False, title="Annual report"), None)
    assert found.report["offsets"] == {"stitched": len(windows)}
    places = by_id(found)
    for left, right in itertools.pairwise(windows):
        if left["doc_id"] == right["doc_id"]:
            assert (places[right["chunk_id"]]["start"] - places[left["chunk_id"]]["start"]
                    == right["start"] - left["start"])


def test_chunk_spans_foreign_text_is_absent_and_carries_nothing(documents: pa.Table, windows: list[Row]) -> None:
    rows = [{**row, "text": row["text"][::-1]} if at % 10 == 0 else row for at, row in enumerate(windows)]
    found = place(raw(rows, offsets=True), documents)
    assert found.report["offsets"] == {"verified": len(rows) - -(-len(rows) // 10), "absent": -(-len(rows) // 10)}
    spans = canonical_spans(documents=found.documents, chunks=found.chunks).spans.to_pylist()
    assert sum(row["start"] is None for row in spans) == -(-len(rows) // 10)
    assert all((row["start"] is None) == (row["offsets"] == "absent") for row in spans)


# --- mtrag: passages with offsets, and no documents --------------------------------------------------------------


@pytest.fixture(scope="module")
def passages() -> list[Row]:
    """Passages whose offsets agree with their length, with their header cut off, in the order of the documents."""
    from goldset.formats.corpora import read_chunks

    assert MTRAG.chunks is not None
    found = build_corpus(documents=None, raw_chunks=read_chunks(MTRAG.chunks, CORPUS)[0], config=MTRAG)
    rows = [{**row, "text": row["text"][row["body_start"] :]} for row in found.chunks.to_pylist()
            if row["offsets"] == "declared"]
    return sorted(rows, key=lambda row: (row["doc_id"], row["start"], row["end"]))


@pytest.fixture(scope="module")
def whole(passages: list[Row]) -> pa.Table:
    """The documents as far as the passages tell; what lies between them is blank."""
    made = place(raw(passages, offsets=True), None)
    spans = canonical_spans(documents=made.documents, chunks=made.chunks).spans
    texts = restored_texts(spans)
    return from_rows("documents", [{"doc_id": name, "text": text, "title": None, "url": None,
                                    "sha256": text_sha256(text), "metadata": "{}"} for name, text in texts.items()])


def test_mtrag_verified_and_located(passages: list[Row], whole: pa.Table) -> None:
    found = place(raw(passages, offsets=True), whole)
    assert found.report["offsets"] == {"verified": len(passages)}
    again = by_id(place(raw(passages, offsets=False), whole))
    assert Counter(row["offsets"] for row in again.values()) == {"located": len(passages)}
    texts = dict(zip(*(whole.column(name).to_pylist() for name in ("doc_id", "text")), strict=True))
    for row in passages:
        here = again[row["chunk_id"]]
        assert texts[row["doc_id"]][here["start"] : here["end"]] == row["text"][here["body_start"] :]
        if texts[row["doc_id"]].count(row["text"]) == 1 and not here["body_start"]:
            assert (here["start"], here["end"]) == (row["start"], row["end"])


def test_mtrag_without_offsets_is_stitched_or_absent(passages: list[Row]) -> None:
    found = place(raw(passages, offsets=False), None)
    states = Counter(row["offsets"] for row in found.chunks.to_pylist())
    assert set(states) == {"stitched", "absent"}
    assert found.report["offsets"] == states
    alone = Counter(row["doc_id"] for row in passages)
    places = by_id(found)
    assert all(places[row["chunk_id"]]["offsets"] == "absent" for row in passages if alone[row["doc_id"]] == 1)
    # 181 pairs overlap in truth, and all are stitched at their place. One more pair is 2,855 code points apart; the one
    # ends with the 153 code points of a footer with which the other begins. Without documents nobody can tell.
    agree, wrong = 0, 0
    for left, right in itertools.pairwise(passages):
        one, other = places[left["chunk_id"]], places[right["chunk_id"]]
        if left["doc_id"] == right["doc_id"] and one["offsets"] == other["offsets"] == "stitched" and (
                other["start"] < one["end"]):
            same = other["start"] - one["start"] == right["start"] - left["start"]
            agree, wrong = agree + same, wrong + (not same)
    assert (agree, wrong) == (181, 1)
