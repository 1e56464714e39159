"""Where recall differs from trec_eval's tools on purpose: the difference is shown, with the reason."""

from __future__ import annotations

from collections.abc import Callable

import ir_measures
import pyarrow as pa
import pytest
import pytrec_eval

from goldset.formats.sets import LabelledSet
from goldset.metrics import per_question, score
from goldset.schemas import from_rows

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]
R2 = ir_measures.R @ 2


def _recall(labelled: LabelledSet, run: pa.Table, k: int) -> float | None:
    value: float | None = next(row["value"] for row in score(labelled, {"s": run}, ks=[k]).to_pylist()
                               if row["measure"] == "recall")
    return value


def test_a_question_without_gold_is_left_out_and_not_a_zero(make_set: Maker, make_run: RunMaker) -> None:
    # METHODS 13, 32: q1 {a, b}, q2 {c: 0}, q3 {d}; the run has nothing for q3.
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"c": 0}, "q3": {"d": 1}}
    ranked = {"q1": {"a": 2.0, "x": 1.0}, "q2": {"c": 1.0}}
    labelled = make_set({"q1": {"a": True, "b": True}, "q2": {"c": False}, "q3": {"d": True}})
    run = make_run({"q1": ["a", "x"], "q2": ["c"]})
    # ir-measures: (1/2 + 0 + 0)/3. Ours: (1/2 + 0)/2; q2 has nothing to find, so it can say nothing of a retriever.
    assert ir_measures.calc_aggregate([R2], qrels, ranked)[R2] == pytest.approx(1 / 6)
    assert _recall(labelled, run, 2) == pytest.approx(1 / 4)
    rows = {row["question_id"]: row for row in per_question(labelled, run, 2).to_pylist()}
    assert rows["q2"]["recall"] is None
    told = {row["measure"]: row for row in score(labelled, {"s": run}, ks=[2]).to_pylist()}
    assert told["recall"]["n"] == 2
    assert told["answerable"]["value"] == pytest.approx(2 / 3)


def test_a_question_without_results_counts_as_nothing_found(make_set: Maker, make_run: RunMaker) -> None:
    # pytrec-eval has no row for q2, so a mean over its rows is 1: silence on hard questions would pay.
    found = pytrec_eval.RelevanceEvaluator({"q1": {"a": 1}, "q2": {"b": 1}}, {"recall.2"}).evaluate({"q1": {"a": 1.0}})
    assert {question: row["recall_2"] for question, row in found.items()} == {"q1": 1.0}
    assert _recall(make_set({"q1": {"a": True}, "q2": {"b": True}}), make_run({"q1": ["a"]}), 2) == 0.5


def test_the_rank_column_decides_and_not_the_score(make_set: Maker) -> None:
    # A reranked list keeps the first stage's scores: trec_eval sorts them back and finds nothing at 1.
    run = from_rows("run", [
        {"system": "s", "family": "s", "question_id": "q1", "rank": rank, "chunk_id": chunk, "score": value}
        for rank, chunk, value in ((1, "a", 1.0), (2, "x", 2.0))])
    one = ir_measures.R @ 1
    assert ir_measures.calc_aggregate([one], {"q1": {"a": 1}}, {"q1": {"a": 1.0, "x": 2.0}})[one] == 0.0
    assert _recall(make_set({"q1": {"a": True}}), run, 1) == 1.0


def test_equal_scores_keep_the_order_that_was_served(make_set: Maker, make_run: RunMaker) -> None:
    # trec_eval puts the larger id first among equal scores: z before a.
    one = ir_measures.R @ 1
    assert ir_measures.calc_aggregate([one], {"q1": {"a": 1}}, {"q1": {"a": 1.0, "z": 1.0}})[one] == 0.0
    assert _recall(make_set({"q1": {"a": True}}), make_run({"q1": ["a", "z"]}), 1) == 1.0


def test_an_unjudged_pair_is_no_zero_in_the_gold(make_set: Maker, make_run: RunMaker) -> None:
    # -1 is pooled and not judged. Both tools take it for not relevant; so do we in recall, and count it.
    labelled = make_set({"q1": {"a": True, "b": None}, "q2": {"c": None}})
    rows = {(row["measure"], row["k"]): row for row in
            score(labelled, {"s": make_run({"q1": ["b", "a"], "q2": ["c"]})}, ks=[2]).to_pylist()}
    assert rows["recall", 2]["value"] == 1.0
    assert {item["reason"]: item["count"] for item in rows["recall", 2]["excluded"]} == {"not_labelled": 1}
    assert rows["unjudged", 2]["value"] == 0.5
