"""mtrag: 1,488 real passages with offsets and without documents."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from goldset.config import CorpusConfig
from goldset.corpus import CorpusTables, build_corpus
from goldset.formats.corpora import read_chunks
from goldset.spans import SpanTables, canonical_spans, main_span

CORPUS = Path(__file__).resolve().parents[2] / ".." / "shared" / "collections" / "mtrag" / "corpus.jsonl"
pytestmark = [
    pytest.mark.collections,
    pytest.mark.skipif(not CORPUS.exists(), reason=f"the collection is not there: {CORPUS}"),
]
CONFIG = CorpusConfig.model_validate(
    {
        "chunks": {
            "path": "corpus.jsonl",
            "id": "_id",
            "doc_id": "metadata.document",
            "start": "metadata.start",
            "end": "metadata.end",
        }
    }
)


@pytest.fixture(scope="module")
def corpus() -> CorpusTables:
    assert CONFIG.chunks is not None
    chunks, _ = read_chunks(CONFIG.chunks, CORPUS)
    return build_corpus(documents=None, raw_chunks=chunks, config=CONFIG)


@pytest.fixture(scope="module")
def spans(corpus: CorpusTables) -> SpanTables:
    return canonical_spans(documents=corpus.documents, chunks=corpus.chunks)


def test_every_passage_has_its_title_line_as_header(corpus: CorpusTables) -> None:
    raw = {row["_id"]: row for row in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())}
    assert (corpus.report["documents"], corpus.report["chunks"]) == (999, 1488)
    for row in corpus.chunks.to_pylist():
        title = raw[row["chunk_id"]]["title"]
        assert row["text"][: row["body_start"]].startswith(title + "\n")
        fits = len(row["text"]) - row["body_start"] == row["end"] - row["start"]
        assert (row["offsets"] == "declared") is fits
    # 95 texts are shorter than title line and offsets together (a few code points were lost on the way).
    assert corpus.report["offsets"] == {"declared": 1393, "mismatched": 95}


def test_the_shared_text_of_neighbours_is_there(corpus: CorpusTables) -> None:
    assert (corpus.report["overlapping_pairs"], corpus.report["pairs_agree"]) == (196, 195)


def test_nine_pairs_fold_and_no_character_lies_in_two_spans(spans: SpanTables) -> None:
    report = spans.report
    assert (report["pairs"], report["pairs_folded"], report["pairs_cut"]) == (196, 9, 187)
    assert report["cuts_at_sentence"] == report["cuts"] >= 187
    by_document: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in spans.spans.to_pylist():
        by_document[row["doc_id"]].append((row["start"], row["end"]))
    for ranges in by_document.values():
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(sorted(ranges)))


def test_the_spans_of_a_document_are_the_text_of_its_passages(corpus: CorpusTables, spans: SpanTables) -> None:
    bodies: dict[str, list[str]] = defaultdict(list)
    trusted = {row["doc_id"]: True for row in corpus.chunks.to_pylist()}
    for row in corpus.chunks.sort_by([("doc_id", "ascending"), ("start", "ascending")]).to_pylist():
        trusted[row["doc_id"]] &= row["offsets"] == "declared"
        bodies[row["doc_id"]].append(row["text"][row["body_start"] :])
    pieces: dict[str, list[str]] = defaultdict(list)
    for row in spans.spans.to_pylist():
        pieces[row["doc_id"]].append(row["text"])
    for doc_id, texts in pieces.items():
        if trusted[doc_id]:
            whole = "".join("".join(texts).split())
            # Each body is a stretch of the spans put end to end, white space aside: nothing lost, nothing twice.
            assert all("".join(body.split()) in whole for body in bodies[doc_id])


def test_repeated_passages_are_twins(corpus: CorpusTables, spans: SpanTables) -> None:
    group = dict(zip(spans.spans["span_id"].to_pylist(), spans.spans["twin_group"].to_pylist(), strict=True))
    alone = {row["chunk_id"] for row in spans.links.to_pylist() if row["chunk_share"] == row["span_share"] == 1.0}
    main = main_span(spans.links)
    same: dict[str, list[str]] = defaultdict(list)
    for row in corpus.chunks.to_pylist():
        same[row["text"]].append(row["chunk_id"])
    repeats = [ids for ids in same.values() if len(ids) > 1]
    assert sum(len(ids) - 1 for ids in repeats) == 25
    for ids in repeats:
        whole = [chunk_id for chunk_id in ids if chunk_id in alone]
        assert len({group[main[chunk_id]] for chunk_id in whole}) <= 1
    assert sum(span_id != twin for span_id, twin in group.items()) == spans.report["twins"] == 25


def test_row_order_changes_nothing(corpus: CorpusTables, spans: SpanTables) -> None:
    backward = corpus.chunks.take(pa.array(range(len(corpus.chunks) - 1, -1, -1)))
    again = canonical_spans(documents=corpus.documents, chunks=backward)
    assert again.spans.equals(spans.spans)
    assert again.links.equals(spans.links)
