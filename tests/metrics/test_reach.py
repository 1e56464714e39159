"""How far recall could move: ties at the cut, gold outside the corpus, questions that the run lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from goldset.formats.sets import Corpus, LabelledSet
from goldset.metrics import score
from goldset.pipeline.scores import warnings
from goldset.schemas import from_rows
from tests.metrics.test_score import _corpus

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _scored(lists: dict[str, list[tuple[str, float | None]]]) -> pa.Table:
    return from_rows("run", [
        {"system": "s", "family": "s", "question_id": question, "rank": rank, "chunk_id": chunk, "score": value}
        for question, results in lists.items() for rank, (chunk, value) in enumerate(results, 1)])


def _values(table: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["measure"]: {**row, "excluded": {item["reason"]: item["count"] for item in row["excluded"]}}
            for row in table.to_pylist() if row["slice"] == "all"}


def test_equal_scores_at_the_cut_give_a_range(make_set: Maker) -> None:
    # k = 2; q1: b, c, d share rank 2's score, gold d: not served, could be. q2: gold a above the tie: nothing moves
    # but gold c, which is served, could fall out. q3 has no tie at the cut.
    labelled = make_set({"q1": {"d": True}, "q2": {"a": True, "c": True}, "q3": {"e": True}})
    run = _scored({"q1": [("a", 3.0), ("b", 2.0), ("c", 2.0), ("d", 2.0), ("x", 1.0)],
                   "q2": [("a", 3.0), ("c", 2.0), ("b", 2.0)], "q3": [("e", 2.0), ("a", 2.0), ("b", 1.0)]})
    found = _values(score(labelled, {"s": run}, ks=[2]))
    assert found["recall"]["value"] == pytest.approx((0 + 1 + 1) / 3)
    assert found["recall_ties_low"]["value"] == pytest.approx((0 + 0.5 + 1) / 3)
    assert found["recall_ties_high"]["value"] == pytest.approx((1 + 1 + 1) / 3)
    assert found["recall_ties_high"]["excluded"]["counted_tied"] == 2
    shuffled = run.take(pa.array([7, 3, 0, 9, 5, 1, 10, 4, 6, 2, 8]))
    assert _values(score(labelled, {"s": shuffled}, ks=[2])) == found
    assert warnings(score(labelled, {"s": run}, ks=[2]))[0] == (
        "s: equal scores straddle the cut at 2, 2 questions; see recall_ties_low and recall_ties_high")


def test_no_range_without_a_tie_that_matters(make_set: Maker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": True}})
    # no gold in the tie; no score at all; the tie ends at the cut; the cut is beyond the list
    cases: list[list[tuple[str, float | None]]] = [
        [("a", 3.0), ("x", 2.0), ("y", 2.0)], [("x", None), ("y", None), ("a", None)],
        [("x", 2.0), ("a", 2.0), ("y", 1.0)]]
    for results in cases:
        found = _values(score(labelled, {"s": _scored({"q1": results, "q2": [("b", 1.0)]})}, ks=[2]))
        assert "recall_ties_low" not in found
    assert "recall_ties_low" not in _values(score(labelled, {"s": _scored({"q1": [("a", 1.0)]})}, ks=[9]))


def test_a_tie_of_nothing_but_gold_moves_nothing(make_set: Maker) -> None:
    labelled = make_set({"q1": {"a": True, "b": True}})
    run = _scored({"q1": [("a", 2.0), ("b", 2.0)]})  # whichever comes first, one of two
    assert "recall_ties_low" not in _values(score(labelled, {"s": run}, ks=[1]))


def test_older_scores_of_a_reranked_list_are_no_tie_with_what_stands_elsewhere(make_set: Maker) -> None:
    # ranks 1 and 3 share a score, but not with their neighbours at the cut
    labelled = make_set({"q1": {"c": True}})
    run = _scored({"q1": [("a", 1.0), ("b", 5.0), ("c", 1.0), ("d", 1.0)]})
    assert "recall_ties_low" not in _values(score(labelled, {"s": run}, ks=[1, 2]))


def test_ties_of_chunks_that_hold_evidence(make_set: Maker) -> None:
    # a published version: evidence of a, served by id of its span; x ties with it
    corpus = _corpus("ax", text="one two three four")
    labelled = make_set({"q1": {"a": True}}, kind="published", corpus=corpus,
                        evidence={("q1", "a"): [{"start": 0, "end": 7}]})
    found = _values(score(labelled, {"s": _scored({"q1": [("x", 1.0), ("a", 1.0)]})}, ks=[1]))
    assert [found[name]["value"] for name in ("recall_ties_low", "recall", "recall_ties_high")] == [0.0, 0.0, 1.0]


def test_gold_outside_the_corpus_and_missing_questions_put_a_ceiling(make_set: Maker, make_run: RunMaker) -> None:
    # q1 has gold a (there) and gone (not); q3 is not in the run: (1/2 + 1 + 0)/3
    corpus: Corpus = _corpus("abc")
    labelled = make_set({"q1": {"a": True, "gone": True}, "q2": {"b": True}, "q3": {"c": True}}, corpus=corpus)
    table = score(labelled, {"s": make_run({"q1": ["a"], "q2": ["b"]})}, ks=[5, 10])
    found = _values(table)
    assert found["recall_ceiling"]["value"] == pytest.approx(0.5)
    assert found["recall_ceiling"]["k"] is None
    assert found["recall_ceiling"]["excluded"] == {"counted_gold_outside": 1, "counted_missing": 1}
    assert warnings(table) == ["s: recall cannot exceed 0.500 (gold is not in the corpus: 1 question; not in the run: "
                               "1 question)"]
    whole = make_set({"q1": {"a": True}}, corpus=corpus)
    assert "recall_ceiling" not in _values(score(whole, {"s": make_run({"q1": ["b"]})}, ks=[1]))


def test_unjudged_passages_are_warned_of(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True, **dict.fromkeys("bcdefghi", False)}})
    nine = [*"abcdefghi"]
    assert warnings(score(labelled, {"s": make_run({"q1": nine})}, ks=[9])) == []
    table = score(labelled, {"s": make_run({"q1": [*nine[:8], "x", "y"]})}, ks=[10])
    assert warnings(table) == ["s: nobody judged 20.0% of what it serves in its first 10 (more than 10%); gold among "
                               "it is not counted"]
