"""The pool: union at depth, folded onto spans; every pooled chunk is in some candidate."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.pool import pool_candidates
from goldset.schemas import from_rows

Link = tuple[str, str, float, float]  # chunk, span, share of the chunk, share of the span


def _run(*rows: tuple[str, str, str, int, str]) -> pa.Table:
    return from_rows(
        "run",
        [
            {
                "system": system,
                "family": family,
                "question_id": question,
                "rank": rank,
                "chunk_id": chunk,
                "score": None,
            }
            for system, family, question, rank, chunk in rows
        ],
    )


def _links(*rows: Link) -> pa.Table:
    return from_rows(
        "span_links",
        [
            {"chunk_id": chunk, "span_id": span, "chunk_share": of_chunk, "span_share": of_span}
            for chunk, span, of_chunk, of_span in rows
        ],
    )


def _spans(words: dict[str, int], twins: dict[str, str] | None = None) -> pa.Table:
    return from_rows(
        "spans",
        [
            {
                "span_id": span,
                "doc_id": "d",
                "start": None,
                "end": None,
                "text": "x",
                "heading": None,
                "doc_sha256": None,
                "text_hash": "h",
                "twin_group": (twins or {}).get(span, span),
                "words": count,
                "offsets": "absent",
            }
            for span, count in words.items()
        ],
    )


def _chunks(texts: dict[str, str]) -> pa.Table:
    return from_rows(
        "chunks",
        [
            {
                "chunk_id": chunk,
                "doc_id": "d",
                "start": None,
                "end": None,
                "text": text,
                "body_start": 0,
                "offsets": "absent",
            }
            for chunk, text in texts.items()
        ],
    )


# Chunk a lies in s1 (most) and covers half of s2; b lies in s2 and touches s1; c is s3, whose twin s9 is e's;
# d has no span.
LINKS = _links(
    ("a", "s1", 0.7, 0.9),
    ("a", "s2", 0.3, 0.5),
    ("b", "s2", 0.8, 0.9),
    ("b", "s1", 0.2, 0.1),
    ("c", "s3", 1.0, 1.0),
    ("e", "s9", 1.0, 1.0),
)
SPANS = _spans({"s1": 100, "s2": 60, "s3": 40, "s9": 40}, {"s9": "s3"})
RUN = _run(
    ("bm25", "lexical", "q1", 1, "b"),
    ("bm25", "lexical", "q1", 2, "c"),
    ("dense", "minilm", "q1", 1, "e"),
    ("dense", "minilm", "q1", 2, "b"),
    ("dense", "minilm", "q1", 3, "a"),
    ("hybrid", "lexical+minilm", "q1", 1, "b"),
    ("hybrid", "lexical+minilm", "q1", 2, "d"),
    ("grader", "other", "q1", 1, "a"),
    ("grader", "other", "q1", 2, "c"),
    ("bm25", "lexical", "q2", 1, "a"),
    ("grader", "other", "q3", 1, "a"),
)


def _pool(**changes: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    given: dict[str, Any] = {
        "run": RUN,
        "spans": SPANS,
        "links": LINKS,
        "depth": 2,
        "audit_only": frozenset({"grader"}),
    }
    pooled = pool_candidates(**{**given, **changes})
    return pooled.candidates.to_pylist(), pooled.report


def test_candidates_by_hand() -> None:
    rows, _ = _pool()
    # q1 at depth 2: b -> s2 (most; it covers a tenth of s1 only), c and e -> s3 (twins), d -> nothing.
    # q2: a -> s1 (most) and s2 (covers half of it). q3: only the grader, which feeds nothing.
    assert rows == [
        {
            "question_id": "q1",
            "span_id": "s2",
            "best_ranks": [
                {"system": "bm25", "rank": 1},
                {"system": "dense", "rank": 2},
                {"system": "hybrid", "rank": 1},
            ],
            "systems": ["bm25", "dense", "hybrid"],
            "families": ["lexical", "minilm"],
        },
        {
            "question_id": "q1",
            "span_id": "s3",
            "best_ranks": [{"system": "bm25", "rank": 2}, {"system": "dense", "rank": 1}],
            "systems": ["bm25", "dense"],
            "families": ["lexical", "minilm"],
        },
        {
            "question_id": "q2",
            "span_id": "s1",
            "best_ranks": [{"system": "bm25", "rank": 1}],
            "systems": ["bm25"],
            "families": ["lexical"],
        },
        {
            "question_id": "q2",
            "span_id": "s2",
            "best_ranks": [{"system": "bm25", "rank": 1}],
            "systems": ["bm25"],
            "families": ["lexical"],
        },
    ]


def test_the_depth_lets_more_in() -> None:
    rows, _ = _pool(depth=3)  # dense's third: a
    assert [(row["question_id"], row["span_id"]) for row in rows] == [
        ("q1", "s1"),
        ("q1", "s2"),
        ("q1", "s3"),
        ("q2", "s1"),
        ("q2", "s2"),
    ]
    assert rows[0]["best_ranks"] == [{"system": "dense", "rank": 3}]
    assert rows[1]["best_ranks"][1] == {"system": "dense", "rank": 2}  # b at 2, not a at 3


def test_the_report_by_hand() -> None:
    chunks = _chunks({"a": "one two three", "b": "one two", "c": "one", "d": "one two three four", "e": "one"})
    _, report = _pool(chunks=chunks)
    assert (report["depth"], report["questions"], report["candidates"]) == (2, 2, 4)
    assert report["systems"] == ["bm25", "dense", "hybrid"]
    assert report["chunks_per_question"] == 2.5  # q1: b c e d; q2: a
    assert report["chunk_words_per_question"] == 5.5  # q1: 2 + 1 + 1 + 4; q2: 3
    assert report["spans_per_question"] == 2.0
    assert report["words_per_question"] == 130.0  # q1: 60 + 40; q2: 100 + 60
    assert report["twins_folded"] == 1  # q1: s2, s3, s9 are two pairs
    assert report["unlinked_chunks"] == 1  # d
    # q1: b holds a tenth of s1 (100 words), which is no candidate there: 10 words; q2: none.
    assert report["words_in_no_candidate_per_question"] == pytest.approx(5.0)
    assert report["unique_by_system"] == {
        "bm25": {"candidates": 4, "unique": 2},
        "dense": {"candidates": 2, "unique": 0},
        "hybrid": {"candidates": 1, "unique": 0},
    }
    assert report["unique_by_family"] == {
        "lexical": {"candidates": 4, "unique": 2},
        "minilm": {"candidates": 2, "unique": 0},
    }
    assert report["overlap"] == {
        "bm25": {"bm25": 4, "dense": 2, "hybrid": 1},
        "dense": {"bm25": 2, "dense": 2, "hybrid": 1},
        "hybrid": {"bm25": 1, "dense": 1, "hybrid": 1},
    }
    # The grader's a, c for q1 are s1, s2, s3, of which the pool holds two; for q3 s1, s2, of which it holds none.
    assert report["audit_only"] == {"grader": {"candidates": 5, "in_pool": 2}}


def test_what_is_not_known_is_null() -> None:
    assert _pool()[1]["chunk_words_per_question"] is None
    rows, report = _pool(run=RUN.slice(0, 0))
    assert rows == []
    assert report["questions"] == 0
    assert report["spans_per_question"] is None
    assert report["words_per_question"] is None
    assert report["overlap"] == {}
    assert report["audit_only"] == {}


@st.composite
def _world(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, pa.Table]:
    """A document of words: disjoint spans, and chunks of any start and length over them."""
    cuts = sorted(draw(st.sets(st.integers(1, 59), min_size=1, max_size=8)))
    bounds = list(zip([0, *cuts], [*cuts, 60], strict=True))
    links: list[Link] = []
    chunks = draw(st.lists(st.tuples(st.integers(0, 55), st.integers(1, 40)), min_size=1, max_size=8))
    for number, (start, length) in enumerate(chunks):
        end = min(start + length, 60)
        for low, high in bounds:
            common = min(end, high) - max(start, low)
            if common > 0:
                links.append((f"c{number}", f"s{low:02d}", common / (end - start), common / (high - low)))
    twin = draw(st.booleans())
    names = [f"s{low:02d}" for low, _ in bounds]
    spans = _spans({f"s{low:02d}": high - low for low, high in bounds}, {names[-1]: names[0]} if twin else {})
    rows = []
    for system, family in (("a", "x"), ("b", "y"), ("h", "x+y")):
        for question in ("q1", "q2"):
            order = draw(st.permutations(range(len(chunks))))
            returned = order[: draw(st.integers(0, len(chunks)))]
            rows += [(system, family, question, rank, f"c{number}") for rank, number in enumerate(returned, 1)]
    return _run(*rows), spans, _links(*links)


@settings(max_examples=50, deadline=None)
@given(_world(), st.integers(1, 6), st.randoms())
def test_every_pooled_chunk_is_in_a_candidate(
    world: tuple[pa.Table, pa.Table, pa.Table], depth: int, rng: random.Random
) -> None:
    run, spans, links = world
    pooled = pool_candidates(run=run, spans=spans, links=links, depth=depth)
    held = {(row["question_id"], row["span_id"]): row for row in pooled.candidates.to_pylist()}
    twin = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    linked: dict[str, list[dict[str, Any]]] = {}
    for link in links.to_pylist():
        linked.setdefault(link["chunk_id"], []).append(link)
    wanted: dict[tuple[str, str], dict[str, int]] = {}
    for row in run.to_pylist():
        if row["rank"] > depth:
            continue
        mine = linked[row["chunk_id"]]
        most = min(mine, key=lambda link: (-link["chunk_share"], link["span_id"]))
        chosen = {link["span_id"] for link in mine if link["span_share"] >= 0.5} | {most["span_id"]}
        for span in chosen:
            ranks = wanted.setdefault((row["question_id"], twin[span]), {})
            ranks[row["system"]] = min(ranks.get(row["system"], row["rank"]), row["rank"])
        assert any((row["question_id"], twin[link["span_id"]]) in held for link in mine)
    assert {pair: {best["system"]: best["rank"] for best in row["best_ranks"]} for pair, row in held.items()} == wanted

    def mixed(table: pa.Table) -> pa.Table:
        order = list(range(len(table)))
        rng.shuffle(order)
        return table.take(pa.array(order, pa.int64()))

    again = pool_candidates(run=mixed(run), spans=mixed(spans), links=mixed(links), depth=depth)
    assert again.candidates.equals(pooled.candidates)
    assert again.report == pooled.report


def test_text_in_no_candidate_is_a_span_at_most() -> None:
    """Three chunks, each mostly in a span of its own, cover two fifths of s2 each: never a candidate, 60 words once."""
    links = _links(*(row for n in (1, 3, 4) for row in ((f"c{n}", f"s{n}", 0.8, 0.9), (f"c{n}", "s2", 0.2, 0.4))))
    spans = _spans({"s1": 100, "s2": 60, "s3": 40, "s4": 20})
    run = _run(*(("bm25", "lexical", "q1", rank, chunk) for rank, chunk in enumerate(("c1", "c3", "c4"), 1)))
    for depth, words in ((1, 24.0), (2, 48.0), (3, 60.0)):
        report = pool_candidates(run=run, spans=spans, links=links, depth=depth).report
        assert report["words_in_no_candidate_per_question"] == pytest.approx(words)


def test_an_old_set_is_a_system_without_a_rank() -> None:
    """It names c (s3) and d (no span) for q1, a (s1 and s2) for q4, which nobody else returned anything for."""
    old = pa.table({"system": ["old"] * 3, "family": ["lexical"] * 3, "question_id": ["q1", "q1", "q4"],
                    "chunk_id": ["c", "d", "a"]})
    rows, report = _pool(unranked=old)
    found = {(row["question_id"], row["span_id"]): row for row in rows}
    assert found["q1", "s3"]["best_ranks"] == [{"system": "bm25", "rank": 2}, {"system": "dense", "rank": 1}]
    assert found["q1", "s3"]["systems"] == ["bm25", "dense", "old"]
    assert found["q1", "s2"]["best_ranks"][1] == {"system": "dense", "rank": 2}
    for span in ("s1", "s2"):
        assert found["q4", span] == {"question_id": "q4", "span_id": span, "best_ranks": [], "systems": ["old"],
                                     "families": ["lexical"]}
    assert found["q2", "s1"]["best_ranks"] == [{"system": "bm25", "rank": 1}]
    assert report["questions"] == 3
    assert report["unique_by_system"]["old"] == {"candidates": 3, "unique": 2}
    assert report["unique_by_family"]["lexical"] == {"candidates": 6, "unique": 4}  # bm25's two of q2, and q4's
