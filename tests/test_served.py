"""served(): evidence and the hit rule, on cases worked out by hand and against a slow account of the same rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.schemas import from_rows
from goldset.spans import SpanTables, canonical_spans, served
from goldset.text import text_sha256

Range = tuple[int, int]
Ranks = tuple[int | None, int | None, int | None, str]


def chunks_of(texts: dict[str, str], *cuts: tuple[str, int, int], prefix: str = "") -> pa.Table:
    """Chunks ``prefix + doc:start-end`` of documents."""
    return from_rows(
        "chunks",
        [
            {
                "chunk_id": f"{prefix}{doc}:{start}-{end}",
                "doc_id": doc,
                "start": start,
                "end": end,
                "text": texts[doc][start:end],
                "body_start": 0,
                "offsets": "verified",
            }
            for doc, start, end in cuts
        ],
    )


def spans_of(texts: dict[str, str], chunks: pa.Table) -> SpanTables:
    documents = from_rows(
        "documents",
        [
            {"doc_id": doc, "text": text, "title": None, "url": None, "sha256": text_sha256(text), "metadata": "{}"}
            for doc, text in texts.items()
        ],
    )
    return canonical_spans(documents=documents, chunks=chunks)


def gold_of(*rows: tuple[str, str, list[Range]]) -> pa.Table:
    return from_rows(
        "gold",
        [
            {
                "question_id": question,
                "span_id": span,
                "evidence": [{"start": start, "end": end} for start, end in evidence],
                "evidence_source": "selected" if evidence else None,
                "facet": None,
                "weight": 1.0,
                "twin_group": span,
            }
            for question, span, evidence in rows
        ],
    )


def run_of(**lists: list[str]) -> pa.Table:
    return from_rows(
        "run",
        [
            {"system": "s", "family": "f", "question_id": question, "rank": rank, "chunk_id": chunk, "score": None}
            for question, ids in lists.items()
            for rank, chunk in enumerate(ids, 1)
        ],
    )


def ranks(table: pa.Table) -> list[Ranks]:
    return [(row["rank"], row["rank_low"], row["rank_high"], row["basis"]) for row in table.to_pylist()]


def prose(size: int) -> str:
    """Visible text of this length, ten code points a word, without a sentence end."""
    return "".join(" " if i % 10 == 9 else chr(ord("a") + i // 10 % 26) for i in range(size))


DOC = {"d": prose(300)}


def test_gold_survives_a_new_chunking() -> None:
    # Gold span [100,200), evidence [100,160). v1: chunks of 100, the right one at rank 2.
    # v2: chunks of 70 every 50 under new ids: [100,170) at rank 3 holds all of it; [50,120) at rank 1 only [100,120).
    v1 = chunks_of(DOC, ("d", 0, 100), ("d", 100, 200), ("d", 200, 300))
    v2 = chunks_of(DOC, *(("d", start, start + 70) for start in (0, 50, 100, 150, 200)), prefix="v2-")
    spans = spans_of(DOC, v1)
    gold = gold_of(("q", "d#100-200", [(100, 160)]))
    old = run_of(q=["d:0-100", "d:100-200"])
    new = run_of(q=["v2-d:50-120", "v2-d:200-270", "v2-d:100-170"])
    assert ranks(served(gold=gold, run=old, spans=spans.spans, links=spans.links, chunks=v1)) == [(2, 2, 2, "evidence")]
    assert ranks(served(gold=gold, run=new, spans=spans.spans, links=spans.links, chunks=v2)) == [(3, 3, 3, "evidence")]
    with pytest.raises(DataError, match=r"0 of 3 chunk ids in the run resolve to spans \(the first is 'v2-d:50-120'"):
        served(gold=gold, run=new, spans=spans.spans, links=spans.links, chunks=v1)


def test_either_of_two_overlapping_chunks_delivers_one_fact_once() -> None:
    # Chunks [0,100) and [80,180), evidence [84,98): both hold it whole.
    text = {"d": prose(80) + "abc " + "x" * 13 + ". " + prose(81)}
    chunks = chunks_of(text, ("d", 0, 100), ("d", 80, 180))
    spans = spans_of(text, chunks)
    span_id = next(row["span_id"] for row in spans.spans.to_pylist() if row["start"] <= 84 and row["end"] >= 98)
    gold = gold_of(("q1", span_id, [(84, 98)]), ("q2", span_id, [(84, 98)]), ("q3", span_id, [(84, 98)]))
    run = run_of(q1=["d:0-100"], q2=["d:80-180", "d:0-100"], q4=["d:0-100"])
    found = served(gold=gold, run=run, spans=spans.spans, links=spans.links, chunks=chunks)
    assert ranks(found) == [(1, 1, 1, "evidence"), (1, 1, 1, "evidence"), (None, None, None, "evidence")]


def test_every_evidence_sentence_must_be_held_by_the_union() -> None:
    chunks = chunks_of(DOC, ("d", 0, 40), ("d", 30, 70), ("d", 60, 100))
    whole = spans_of(DOC, chunks_of(DOC, ("d", 0, 100)))
    run = run_of(q=["d:60-100", "d:0-40", "d:30-70"])
    cases = {((0, 40),): 2, ((60, 100),): 1, ((0, 40), (60, 100)): 2, ((20, 60),): 3, ((0, 100),): 3}
    for evidence, rank in cases.items():
        gold = gold_of(("q", "d#0-100", list(evidence)))
        found = served(gold=gold, run=run, spans=whole.spans, links=whole.links, chunks=chunks)
        assert ranks(found) == [(rank, rank, rank, "evidence")], evidence


def test_nine_tenths_of_the_visible_code_points() -> None:
    # 20 code points, 10 of them visible. [0,18) holds 9 of 10: delivered at 0.9, not at 1.0; [0,17) holds 9 too,
    # the tenth visible one is at 18; [0,16) holds 8.
    text = {"d": "a " * 10 + prose(80)}
    spans = spans_of(text, chunks_of(text, ("d", 0, 100)))
    gold = gold_of(("q", "d#0-100", [(0, 20)]))
    for end, threshold, expected in (
        (18, 0.9, 1),
        (18, 1.0, None),
        (17, 0.9, 1),
        (16, 0.9, None),
        (16, 0.8, 1),
        (19, 1.0, 1),
        (9, 0.5, 1),
        (8, 0.5, None),
    ):
        chunks = chunks_of(text, ("d", 0, end), ("d", 50, 100))
        found = served(
            gold=gold,
            run=run_of(q=[f"d:0-{end}"]),
            spans=spans.spans,
            links=spans.links,
            chunks=chunks,
            threshold=threshold,
        )
        assert found.column("rank").to_pylist() == [expected], (end, threshold)


def test_table_rows_count_whole() -> None:
    # The row is [0,30): a chunk that ends one visible code point early holds 96 %, enough for a sentence, not for it.
    text = {"d": "| aaaaaaaaaaa | bbbbbbbbbbbb |\n" + prose(69)}
    assert text["d"].index("\n") == 30
    spans = spans_of(text, chunks_of(text, ("d", 0, 100)))
    gold = gold_of(("q", "d#0-100", [(0, 30)]))
    chunks = chunks_of(text, ("d", 0, 29), ("d", 0, 30))
    run = run_of(q=["d:0-29", "d:0-30"])
    assert ranks(served(gold=gold, run=run, spans=spans.spans, links=spans.links, chunks=chunks)) == [
        (2, 2, 2, "evidence")
    ]


def test_a_duplicate_keeps_its_slot() -> None:
    # The chunk that answers stands at rank 3; the first two hold the same other text. Folding them would make it 2.
    text = {"d": prose(200), "e": prose(100)}
    chunks = chunks_of(text, ("d", 0, 100), ("d", 100, 200), ("e", 0, 100))
    spans = spans_of(text, chunks)
    assert spans.report["twins"] == 1
    found = served(
        gold=gold_of(("q", "d#100-200", [(100, 150)])),
        run=run_of(q=["d:0-100", "e:0-100", "d:100-200"]),
        spans=spans.spans,
        links=spans.links,
        chunks=chunks,
    )
    assert found.column("rank").to_pylist() == [3]


@pytest.mark.parametrize(
    "other", [prose(100), "  " + prose(100).replace(" ", "\n\n"), prose(100).replace(" ", " \n", 3)]
)
def test_a_twin_delivers_at_the_same_place_of_the_text(other: str) -> None:
    # Evidence is the visible code points 45..63 of [0,100) = positions [50,70). In the twin the same letters are found
    # by counting visible code points; a chunk of the twin that lacks them does not deliver.
    text = {"d": prose(100), "e": "zzz " + other}
    size = len(text["e"])
    at, end = text["e"].index("fffffffff"), text["e"].index("ggggggggg") + 9
    spans = spans_of(text, chunks_of(text, ("d", 0, 100), ("e", 0, 3), ("e", 4, size)))
    assert spans.report["twins"] == 1
    chunks = chunks_of(text, ("e", 4, end - 5), ("e", 4, at), ("e", at, size))
    gold = gold_of(("q1", "d#0-100", [(50, 69)]), ("q2", "d#0-100", [(50, 69)]), ("q3", "d#0-100", [(50, 69)]))
    run = run_of(q1=[f"e:4-{at}", f"e:{at}-{size}"], q2=[f"e:4-{end - 5}"], q3=[f"e:4-{end - 5}", f"e:{at}-{size}"])
    found = served(gold=gold, run=run, spans=spans.spans, links=spans.links, chunks=chunks)
    assert found.column("rank").to_pylist() == [2, None, 2]


def test_without_evidence_the_same_chunking_matches_by_id() -> None:
    chunks = chunks_of(DOC, ("d", 0, 100), ("d", 100, 200))
    spans = spans_of(DOC, chunks)
    gold = gold_of(("q", "d#100-200", []), ("q", "d#0-100", []))
    found = served(gold=gold, run=run_of(q=["d:100-200"]), spans=spans.spans, links=spans.links, chunks=chunks)
    assert ranks(found) == [(1, 1, 1, "id"), (None, None, None, "id")]


def test_sets_without_chunks_match_by_id() -> None:
    gold = gold_of(("q1", "7", []), ("q1", "07", []), ("q2", "7", []))
    found = served(gold=gold, run=run_of(q1=["07", "x", "7"]), spans=None, links=None, chunks=None)
    assert ranks(found) == [(3, 3, 3, "id"), (1, 1, 1, "id"), (None, None, None, "id")]
    # An id that equals the question's is nothing special.
    assert ranks(
        served(gold=gold_of(("7", "7", [])), run=run_of(**{"7": ["7"]}), spans=None, links=None, chunks=None)
    ) == [(1, 1, 1, "id")]


def test_without_evidence_another_chunking_gives_both_readings() -> None:
    # Span [0,100), 90 visible. [0,40) holds 36 = 40 %: strict no; it shares all of itself: lenient yes.
    # With [40,60) 54 are held = 60 %: strict at rank 2.
    old, new = chunks_of(DOC, ("d", 0, 100)), chunks_of(DOC, ("d", 0, 40), ("d", 40, 60), ("d", 0, 60), ("d", 95, 300))
    spans = spans_of(DOC, old)

    def of(*ids: str) -> list[Ranks]:
        return ranks(
            served(
                gold=gold_of(("q", "d#0-100", [])),
                run=run_of(q=list(ids)),
                spans=spans.spans,
                links=spans.links,
                chunks=new,
            )
        )

    assert of("d:0-40") == [(None, None, 1, "span_rule")]
    assert of("d:0-40", "d:40-60") == [(None, 2, 1, "span_rule")]
    assert of("d:95-300", "d:0-60") == [(2, 2, 2, "span_rule")]
    assert of("d:95-300") == [(None, None, None, "span_rule")]


def test_a_span_that_another_chunk_touches_is_not_matched_by_id() -> None:
    # [0,100) is the span; [20,90) folds into it. The folded chunk holds 70 %: both readings say it delivers.
    chunks = chunks_of(DOC, ("d", 0, 100), ("d", 20, 90))
    spans = spans_of(DOC, chunks)
    found = served(
        gold=gold_of(("q", "d#0-100", [])),
        run=run_of(q=["d:20-90", "d:0-100"]),
        spans=spans.spans,
        links=spans.links,
        chunks=chunks,
    )
    assert ranks(found) == [(1, 1, 1, "span_rule")]


def test_a_span_without_offsets_under_another_chunking_is_unknown() -> None:
    row: dict[str, Any] = {
        "chunk_id": "c",
        "doc_id": "d",
        "start": None,
        "end": None,
        "text": "text",
        "body_start": 0,
        "offsets": "absent",
    }
    spans = spans_of(DOC, from_rows("chunks", [row]))
    chunks = chunks_of(DOC, ("d", 0, 100))
    gold = gold_of(("q", "d#c", []), ("other", "d#c", []))
    found = served(gold=gold, run=run_of(q=["d:0-100"]), spans=spans.spans, links=spans.links, chunks=chunks)
    assert ranks(found) == [(None, None, 1, "span_rule"), (None, None, None, "span_rule")]


def test_a_chunk_whose_offsets_are_wrong_delivers_what_stands_in_it() -> None:
    # Both chunks say that they are [0,100) of the document. One lost its first fifty code points and so the evidence,
    # the words "bbbbbbbbb ccccccccc" at [10,29); the other lost [50,70) and still has it.
    text = {"d": prose(300)}
    own = chunks_of(text, ("d", 0, 100), ("d", 100, 300))
    made = spans_of(text, own)
    rows = [{"chunk_id": name, "doc_id": "d", "start": 0, "end": 100, "text": body, "body_start": 0,
             "offsets": "mismatched"} for name, body in (
                 ("lost", text["d"][50:100]), ("has", text["d"][:50] + text["d"][70:100]))]
    assert text["d"][10:29] == "bbbbbbbbb ccccccccc"
    gold = gold_of(("q", "d#0-100", [(10, 29)]), ("p", "d#0-100", [(50, 69)]))
    found = served(gold=gold, run=run_of(q=["lost", "has"], p=["has", "lost"]), spans=made.spans, links=made.links,
                   chunks=from_rows("chunks", rows))
    assert ranks(found) == [(2, 2, 2, "evidence"), (2, 2, 2, "evidence")]


def test_an_empty_run_delivers_nothing() -> None:
    chunks = chunks_of(DOC, ("d", 0, 100))
    spans = spans_of(DOC, chunks)
    gold = gold_of(("q", "d#0-100", [(0, 20)]))
    run = run_of()
    assert ranks(served(gold=gold, run=run, spans=spans.spans, links=spans.links, chunks=chunks)) == [
        (None, None, None, "evidence")
    ]


@settings(max_examples=200, deadline=None)
@given(
    cuts=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 60)), min_size=1, max_size=8, unique=True),
    evidence=st.lists(st.tuples(st.integers(0, 95), st.integers(2, 30)), max_size=3),
    threshold=st.sampled_from([0.5, 0.8, 0.9, 1.0]),
)
def test_agrees_with_counting_positions(cuts: list[Range], evidence: list[Range], threshold: float) -> None:
    text = prose(100)
    ranges = [(start, min(start + size, 100)) for start, size in cuts]
    wanted = [(start, min(start + size, 100)) for start, size in evidence]
    chunks = from_rows(
        "chunks",
        [
            {
                "chunk_id": str(i),
                "doc_id": "d",
                "start": start,
                "end": end,
                "text": text[start:end],
                "body_start": 0,
                "offsets": "verified",
            }
            for i, (start, end) in enumerate(ranges)
        ],
    )
    spans = spans_of({"d": text}, chunks_of({"d": text}, ("d", 0, 100)))
    run = run_of(q=[str(i) for i in range(len(ranges))])
    row = served(
        gold=gold_of(("q", "d#0-100", wanted)),
        run=run,
        spans=spans.spans,
        links=spans.links,
        chunks=chunks,
        threshold=threshold,
    ).to_pylist()[0]

    def ink(*parts: Range) -> set[int]:
        return {at for start, end in parts for at in range(start, end) if not text[at].isspace()}

    def first(share: float, parts: list[Range]) -> int | None:
        return next(
            (
                rank
                for rank in range(1, len(ranges) + 1)
                if all(len(ink(part) & ink(*ranges[:rank])) >= share * len(ink(part)) - 1e-9 for part in parts)
            ),
            None,
        )

    parts = [part for part in wanted if ink(part)]
    if parts:
        assert row["rank"] == row["rank_low"] == row["rank_high"] == first(threshold, parts)
        return
    strict = first(0.5, [(0, 100)])
    single = next(
        (
            rank
            for rank, part in enumerate(ranges, 1)
            if ink(part) and len(ink(part)) >= 0.5 * min(len(ink(part)), len(ink((0, 100))))
        ),
        None,
    )
    assert row["rank_low"] == strict
    assert row["rank_high"] == min((rank for rank in (strict, single) if rank), default=None)


def test_ten_thousand_questions_by_a_hundred() -> None:
    rng = np.random.default_rng(1)
    n, depth, documents = 10_000, 100, 50_000
    question = np.repeat([f"q{i}" for i in range(n)], depth)
    ids = rng.integers(0, documents, n * depth)
    run = pa.table(
        {
            "system": pa.array(["s"] * len(ids)),
            "family": pa.array(["f"] * len(ids)),
            "question_id": pa.array(question),
            "rank": pa.array(np.tile(np.arange(1, depth + 1), n), pa.int32()),
            "chunk_id": pa.array([f"d{i}" for i in ids]),
            "score": pa.nulls(len(ids), pa.float64()),
        }
    )
    gold = gold_of(*((f"q{i}", f"d{ids[i * depth + 7]}", []) for i in range(n)))
    found = served(gold=gold, run=run, spans=None, links=None, chunks=None)
    assert found.column("rank").null_count == 0
    assert max(found.column("rank").to_pylist()) == 8
