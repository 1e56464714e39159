"""Measures on sets small enough to score by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from goldset.errors import DataError, UsageError
from goldset.formats.sets import Corpus, LabelledSet
from goldset.metrics import EXCLUDED, MEASURES, REASONS, score
from goldset.pipeline.scores import warnings
from goldset.schemas import conform, from_rows

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _values(table: pa.Table, part: str = "all") -> dict[tuple[str, int | None], dict[str, Any]]:
    return {(row["measure"], row["k"]): {**row, "excluded": {e["reason"]: e["count"] for e in row["excluded"]}}
            for row in table.to_pylist() if row["slice"] == part}


def test_questions_without_gold_and_without_results(make_set: Maker, make_run: RunMaker) -> None:
    # METHODS 13, 32: q1 {a, b}, q2 {c: no}, q3 {d}; R@2: (1/2 + 0)/2 = .25 over 2 of 3 questions.
    labelled = make_set({"q1": {"a": True, "b": True}, "q2": {"c": False}, "q3": {"d": True}})
    found = _values(score(labelled, {"s": make_run({"q1": ["a", "x"], "q2": ["c"]})}, ks=[2]))
    recall = found["recall", 2]
    assert (recall["value"], recall["n"]) == (0.25, 2)
    assert recall["excluded"] == {"no_gold": 1, "counted_missing": 1}
    assert found["answerable", None]["value"] == pytest.approx(2 / 3)
    # floor: (1/2 + 0 + 0)/3
    assert found["recall_floor", 2]["value"] == pytest.approx(1 / 6)
    assert found["recall_micro", 2]["value"] == pytest.approx(1 / 3)
    # x was never judged: half of q1's two slots, none of q2's; q3 has no results
    assert found["unjudged", 2]["value"] == pytest.approx(0.25)
    assert found["unjudged", 2]["excluded"] == {"no_results": 1}


def test_no_known_relevant_passage_is_left_out(make_set: Maker, make_run: RunMaker) -> None:
    # The order of questions must not matter.
    for order in (["q1", "q2", "q3"], ["q2", "q3", "q1"]):
        pairs = {"q1": {"a": True}, "q2": {"z": False}, "q3": {"b": True}}
        labelled = make_set({q: pairs[q] for q in order})
        run = make_run({q: {"q1": ["a"], "q2": ["y"], "q3": ["b"]}[q] for q in order})
        recall = _values(score(labelled, {"s": run}, ks=[5]))["recall", 5]
        assert (recall["value"], recall["n"], recall["excluded"]) == (1.0, 2, {"no_gold": 1})


def test_nothing_returned_counts_as_nothing_delivered(make_set: Maker, make_run: RunMaker) -> None:
    # Hits for q1 and q2, an empty list for q3, q4 absent, q9 is not of this set.
    labelled = make_set({q: {f"g{q}": True} for q in ("q1", "q2", "q3", "q4")})
    status = from_rows("run_status", [
        {"system": "s", "question_id": "q3", "status": "empty", "returned": 0, "detail": None}])
    run = make_run({"q1": ["gq1"], "q2": ["gq2"], "q9": ["gq1"]})
    recall = _values(score(labelled, {"s": run}, ks=[3], status={"s": status}))["recall", 3]
    assert (recall["value"], recall["n"]) == (0.5, 4)
    assert recall["excluded"] == {"counted_empty": 1, "counted_missing": 1, "not_in_set": 1}


def test_three_denominators(make_set: Maker, make_run: RunMaker) -> None:
    # 7 relevant, k = 3, all 3 relevant.
    labelled = make_set({"q": {f"d{i}": True for i in range(7)}})
    found = _values(score(labelled, {"s": make_run({"q": ["d0", "d1", "d2"]})}, ks=[3]))
    assert found["recall", 3]["value"] == pytest.approx(3 / 7)
    assert found["recall", 3]["excluded"] == {"counted_more_gold_than_k": 1}
    assert found["recall_capped", 3]["value"] == 1.0
    assert found["hit", 3]["value"] == 1.0
    # One question has no interval
    assert found["recall", 3]["low"] is None
    assert found["recall", 3]["method"] == "none: one unit"


def test_a_document_may_be_called_like_its_question(make_set: Maker, make_run: RunMaker) -> None:
    # Another tool drops such results and scores a perfect run .90: beir-cellar/beir#187.
    labelled = make_set({"0": {str(i): True for i in range(10)}})
    run = make_run({"0": [str(i) for i in range(10)]})
    assert _values(score(labelled, {"s": run}, ks=[10]))["recall", 10]["value"] == 1.0


def test_the_list_is_cut_before_it_is_counted(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True, "b": True}, "q2": {"c": True}})
    run = make_run({"q1": ["x", "a", "b"], "q2": ["y", "z", "w", "c"]})
    found = _values(score(labelled, {"s": run}, ks=[1, 2, 3, 4]))
    assert [found["recall", k]["value"] for k in (1, 2, 3, 4)] == [0.0, 0.25, 0.5, 1.0]
    # mrr@4: q1 first at 2, q2 at 4: (1/2 + 1/4)/2
    assert found["mrr", 4]["value"] == pytest.approx(0.375)
    assert found["mrr", 3]["value"] == pytest.approx(0.25)
    # ndcg@3: q1 (1/log2 3 + 1/log2 4)/(1 + 1/log2 3) = .693426, q2 0
    assert found["ndcg", 3]["value"] == pytest.approx(0.693426 / 2, abs=1e-6)


def test_perfect_scores_are_not_certain(make_set: Maker, make_run: RunMaker) -> None:
    # 20 of 20 -> .83 to 1; 7 of 13 -> about .26 to .79
    twenty = make_set({f"q{i}": {f"d{i}": True} for i in range(20)})
    recall = _values(score(twenty, {"s": make_run({f"q{i}": [f"d{i}"] for i in range(20)})}, ks=[1]))["recall", 1]
    assert (recall["low"], recall["high"]) == (pytest.approx(0.831567, abs=1e-6), 1.0)
    thirteen = make_set({f"q{i}": {f"d{i}": True} for i in range(13)})
    run = make_run({f"q{i}": [f"d{i}" if i < 7 else "d99"] for i in range(13)})
    recall = _values(score(thirteen, {"s": run}, ks=[1]))["recall", 1]
    assert (recall["low"], recall["high"]) == (pytest.approx(0.26, abs=0.01), pytest.approx(0.79, abs=0.01))


def test_finds_enter_by_weight(make_set: Maker, make_run: RunMaker) -> None:
    # METHODS 13, 16: A = (1,1,2), G = (2,1,2), one find with weight 4 in q2 that is not delivered.
    labelled = make_set(
        {"q1": {"a": True, "b": True}, "q2": {"c": True, "m": True}, "q3": {"d": True, "e": True}},
        weights={("q2", "m"): 4.0}, kind="published", manifest={"sampling": {"rejections": 40, "sampled": 10}},
        corpus=_corpus("abcdemx"))
    found = _values(score(labelled, {"s": make_run({"q1": ["a"], "q2": ["c"], "q3": ["d", "e"]})}, ks=[5]))
    assert found["recall", 5]["value"] == pytest.approx(5 / 6)
    assert found["recall_micro_naive", 5]["value"] == pytest.approx(4 / 5)
    assert found["recall_micro", 5]["value"] == pytest.approx(4 / 9)
    # completeness 5/9 is below .8
    assert (found["recall_macro_ht", 5]["value"], found["recall_macro_ht", 5]["reason"]) == (None, "macro_unreliable")


def test_a_question_with_sampled_gold_only(make_set: Maker, make_run: RunMaker) -> None:
    # METHODS 13, 17: G = (2,1,0,3), finds of weight 10 in q3 and q4, none delivered.
    pairs = {"q1": {"a": True, "b": True}, "q2": {"c": True}, "q3": {"m": True},
             "q4": {"d": True, "e": True, "f": True, "n": True}}
    labelled = make_set(pairs, weights={("q3", "m"): 10.0, ("q4", "n"): 10.0}, kind="published",
                        corpus=_corpus("abcdefmn"))
    run = make_run({"q1": ["a"], "q2": ["c"], "q3": ["a"], "q4": ["d", "e", "f"]})
    found = _values(score(labelled, {"s": run}, ks=[5]))
    assert found["recall", 5]["value"] == pytest.approx(5 / 6)
    assert found["recall", 5]["excluded"] == {"only_sampled_gold": 1}
    assert found["recall_micro", 5]["value"] == pytest.approx(5 / 26)
    # 13/4 of the questions would be answerable: clipped, and said
    assert found["answerable", None]["value"] == 1.0
    assert "clipped" in found["answerable", None]["method"]
    # The sum may be far off, but three of four have gold that was read: n_eff 3 (1.96/3.182446)^2 = 1.137868, Wilson.
    assert found["answerable", None]["low"] == pytest.approx(0.1307, abs=1e-4)
    assert found["answerable", None]["high"] == 1.0
    assert warnings(score(labelled, {"s": run}, ks=[5]), "")[-1].startswith("s: answerable came out beyond 1 and was")


def test_nothing_found_in_a_thin_sample_is_not_nothing_missed(make_set: Maker, make_run: RunMaker) -> None:
    # 120 confirmed, 1,000 rejections, 100 of them read, none relevant. 96 of the 120 are delivered.
    labelled = make_set({f"q{i}": {f"d{i}": True} for i in range(120)}, kind="published",
                        corpus=_corpus([f"d{i}" for i in range(120)]),
                        manifest={"sampling": {"rejections": 1000, "sampled": 100}})
    run = make_run({f"q{i}": [f"d{i}" if i < 96 else "d0"] for i in range(120)})
    found = _values(score(labelled, {"s": run}, ks=[1]))
    # Plain: V = 19.2 / (119 x 120). Unseen: .75 x 10^2 x .16 / 120^2 more. n_eff = .16 / V x (1.959964/1.980100)^2 is
    # 116.59 and 71.98, and Wilson's ends of .8 are these; exact bounds of the sample allow up to 34 missed.
    assert found["recall", 1]["value"] == found["recall_micro", 1]["value"] == pytest.approx(0.8)
    ends = {name: (found[name, 1]["low"], found[name, 1]["high"]) for name in ("recall", "recall_micro")}
    assert ends["recall"] == pytest.approx((0.71835, 0.86251), abs=2e-5)
    assert ends["recall_micro"] == pytest.approx((0.69349, 0.87611), abs=2e-5)


def test_a_sample_without_finds_widens_the_corrected_interval(make_set: Maker, make_run: RunMaker) -> None:
    pairs = {f"q{i}": {f"d{i}": True} for i in range(30)}
    run = make_run({f"q{i}": [f"d{i}" if i % 3 else "d0"] for i in range(30)})
    corpus = _corpus([f"d{i}" for i in range(30)])
    width = {}
    for sampled in (100, 1000):
        labelled = make_set(pairs, kind="published", manifest={"sampling": {"rejections": 1000, "sampled": sampled}},
                            corpus=corpus)
        found = _values(score(labelled, {"s": run}, ks=[1]))
        assert found["recall_micro", 1]["value"] == found["recall", 1]["value"]
        width[sampled] = found["recall_micro", 1]["high"] - found["recall_micro", 1]["low"]
        plain = found["recall", 1]["high"] - found["recall", 1]["low"]
    assert width[1000] == pytest.approx(plain)
    assert width[100] > 1.2 * plain


def test_draws_and_clusters(make_set: Maker, make_run: RunMaker) -> None:
    # drawn 3, 1, 1 times: (3 x 1 + 0 + 0)/5
    pairs = {"q1": {"a": True}, "q2": {"b": True}, "q3": {"c": True}}
    run = make_run({"q1": ["a"], "q2": ["x"], "q3": ["x"]})
    questions = {"q1": {"draws": 3}, "q2": {}, "q3": {}}
    found = _values(score(make_set(pairs, questions=questions), {"s": run}, ks=[1]))["recall", 1]
    assert found["value"] == pytest.approx(0.6)
    assert found["weighting"] == "events"
    distinct = make_set(pairs, questions=questions, manifest={"unit": "distinct"})
    found = _values(score(distinct, {"s": run}, ks=[1]))["recall", 1]
    assert (found["value"], found["weighting"]) == (pytest.approx(1 / 3), "none")
    together = make_set(pairs, questions={q: {"cluster_id": "one"} for q in pairs})
    assert _values(score(together, {"s": run}, ks=[1]))["recall", 1]["low"] is None


def test_slices(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": True}, "q3": {"c": True}},
                        questions={"q1": {"language": "de"}, "q2": {}, "q3": {}})
    table = score(labelled, {"s": make_run({"q1": ["a"], "q2": ["b"]})}, ks=[1], by=["language"])
    assert conform(table, "measurements").equals(table)
    assert _values(table, "language=de")["recall", 1]["value"] == 1.0
    assert _values(table, "language=en")["recall", 1]["value"] == 0.5
    assert _values(table)["recall", 1]["value"] == pytest.approx(2 / 3)
    with pytest.raises(DataError, match=r"--by langage: .*did you mean 'language'"):
        score(labelled, {"s": make_run({"q1": ["a"]})}, ks=[1], by=["langage"])


def test_questions_not_yet_labelled(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q3": {"b": None}}, questions={"q1": {}, "q2": {}, "q3": {}})
    found = _values(score(labelled, {"s": make_run({"q1": ["a"], "q2": ["a"]})}, ks=[1]))
    assert found["recall", 1]["excluded"] == {"not_labelled": 2}
    assert (found["answerable", None]["value"], found["answerable", None]["n"]) == (1.0, 1)


def test_no_gold_at_all(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({f"q{i}": {"a": False} for i in range(10)})
    found = _values(score(labelled, {"s": make_run({"q1": ["a"]})}, ks=[1]))
    assert (found["recall", 1]["value"], found["recall", 1]["reason"]) == (None, "no_gold")
    assert found["recall_micro", 1]["reason"] == "no_gold"
    answerable = found["answerable", None]
    # 1 - .05^(1/10) = .2589
    assert (answerable["value"], answerable["high"]) == (0.0, pytest.approx(0.258866, abs=1e-6))


def test_facets(make_set: Maker, make_run: RunMaker) -> None:
    # two passages of one facet and one of its own: 1 of 2 facets, 1 of 3 passages
    labelled = make_set({"q": {"a": True, "b": True, "c": True}, "r": {"d": True}},
                        facets={("q", "a"): "price", ("q", "b"): "price"})
    found = _values(score(labelled, {"s": make_run({"q": ["b"], "r": ["d"]})}, ks=[1]))
    assert found["facet_recall", 1]["value"] == pytest.approx(0.75)
    assert found["recall", 1]["value"] == pytest.approx(2 / 3)
    plain = make_set({"q": {"a": True}})
    assert ("facet_recall", 1) not in _values(score(plain, {"s": make_run({"q": ["a"]})}, ks=[1]))


@pytest.mark.parametrize(
    ("lists", "message"),
    [({"q1": ["x1", "x2"]}, r"run 's': 0 of 2 chunk ids resolve; the first is 'x1', the set has ids like '007'"),
     ({"z1": ["007"]}, r"run 's': 0 of 1 question ids resolve; the first is 'z1'"),
     ({"q1": ["7", "d1"]}, r"run 's': 0 of 2 chunk ids resolve, but 2 would if case, white space, leading zeros"),
     ({"Q1": ["007"]}, r"run 's': 0 of 1 question ids resolve, but 1 would")],
)
def test_ids_that_do_not_join_are_an_error(make_set: Maker, make_run: RunMaker, lists: dict[str, list[str]],
                                           message: str) -> None:
    labelled = make_set({"q1": {"007": True, "D1": True}})
    with pytest.raises(DataError, match=message):
        score(labelled, {"s": make_run(lists)}, ks=[1])


def test_ids_known_to_the_corpus_alone_are_recall_zero(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"a": True}}, corpus=_corpus("ax"))
    assert _values(score(labelled, {"s": make_run({"q1": ["x"]})}, ks=[1]))["recall", 1]["value"] == 0.0


def test_unknown_chunks_are_counted(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": True}}, kind="published", corpus=_corpus("ab"))
    found = _values(score(labelled, {"s": make_run({"q1": ["a", "gone"], "q2": ["b"]})}, ks=[2]))
    assert found["recall", 2]["value"] == 1.0
    assert found["unjudged", 2]["value"] == pytest.approx(0.25)
    assert found["unjudged", 2]["excluded"] == {"counted_unknown_chunk": 1}


def test_missing_evidence_gives_two_readings(make_set: Maker, make_run: RunMaker) -> None:
    # A span of 200 letters, cut by another chunking into 60 + 140: the short chunk alone is less than half of the
    # span (strict no) and lies in it whole (lenient yes).
    corpus = _corpus(["s"], text="x" * 200)
    chunks = from_rows("chunks", [
        {"chunk_id": name, "doc_id": "s", "start": start, "end": end, "text": "x" * (end - start), "body_start": 0,
         "offsets": "verified"} for name, start, end in (("c1", 0, 60), ("c2", 60, 200))])
    labelled = make_set({"q1": {"s": True}}, kind="published", corpus=corpus)
    found = _values(score(labelled, {"s": make_run({"q1": ["c1", "c2"]})}, ks=[1, 2], chunks=chunks))
    assert (found["recall", 1]["value"], found["recall", 1]["reason"]) == (None, "evidence_missing")
    assert found["recall_low", 1]["value"] == 0.0
    assert found["recall_high", 1]["value"] == 1.0
    assert found["recall", 2]["value"] == 1.0
    assert found["unjudged", 2]["reason"] == "texts_missing"


def test_a_budget_of_words(make_set: Maker, make_run: RunMaker) -> None:
    # texts of 4 words: a budget of 11 holds two chunks
    labelled = make_set({"q1": {"c": True}, "q2": {"a": True}}, corpus=_corpus("abc", text="one two three four"))
    run = make_run({"q1": ["a", "b", "c"], "q2": ["b", "a"]})
    assert _values(score(labelled, {"s": run}, budget=11))["recall", None]["value"] == 0.5
    assert _values(score(labelled, {"s": run}, budget=12))["recall", None]["value"] == 1.0
    with pytest.raises(DataError, match="no texts to count words in"):
        score(make_set({"q1": {"c": True}}), {"s": run}, budget=5)


def test_usage(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}})
    with pytest.raises(UsageError, match="no cutoff"):
        score(labelled, {"s": make_run({"q1": ["a"]})})
    with pytest.raises(UsageError, match="--k 0"):
        score(labelled, {"s": make_run({"q1": ["a"]})}, ks=[0])


def test_every_name_in_the_output_is_documented(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": False}}, questions={"q1": {}, "q2": {}, "q3": {}})
    rows = score(labelled, {"s": make_run({"q1": ["a"], "q9": ["x"]})}, ks=[1]).to_pylist()
    assert {row["measure"] for row in rows} <= set(MEASURES)
    assert {row["reason"] for row in rows if row["reason"]} <= set(REASONS)
    assert {entry["reason"] for row in rows for entry in row["excluded"]} <= set(EXCLUDED)


def _corpus(ids: str | list[str], text: str = "word") -> Corpus:
    end = len(text)
    return Corpus(
        chunks=from_rows("chunks", [{"chunk_id": i, "doc_id": i, "start": 0, "end": end, "text": text, "body_start": 0,
                                     "offsets": "verified"} for i in ids]),
        spans=from_rows("spans", [{"span_id": i, "doc_id": i, "start": 0, "end": end, "text": text, "heading": None,
                                   "doc_sha256": "x", "text_hash": i, "twin_group": i, "words": 1,
                                   "offsets": "verified"} for i in ids]),
        links=from_rows("span_links", [{"chunk_id": i, "span_id": i, "chunk_share": 1.0, "span_share": 1.0}
                                       for i in ids]))
