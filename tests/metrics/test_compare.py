"""Paired comparison, power, hours, words."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from goldset.formats.sets import LabelledSet
from goldset.metrics import compare, cost, power, reading_hours, words_served

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _pair(make_set: Maker, make_run: RunMaker, gained: int, lost: int,
          same: int) -> tuple[LabelledSet, pa.Table, pa.Table]:
    """Questions that only B answers, only A answers, both answer."""
    n = gained + lost + same
    labelled = make_set({f"q{i}": {f"d{i}": True} for i in range(n)})
    a = make_run({f"q{i}": ["miss" if i < gained else f"d{i}"] for i in range(n)}, "a")
    b = make_run({f"q{i}": ["miss" if gained <= i < gained + lost else f"d{i}"] for i in range(n)}, "b")
    return labelled, a, b


def test_better_and_worse(make_set: Maker, make_run: RunMaker) -> None:
    labelled, a, b = _pair(make_set, make_run, 20, 4, 26)
    found = compare(labelled, a, b, 1, names=("a", "b"))
    assert found["difference"] == pytest.approx(16 / 50)
    assert (found["recall_a"], found["recall_b"]) == (pytest.approx(0.6), pytest.approx(0.92))
    assert (found["discordant"], found["up"], found["down"], found["n"]) == (24, 20, 4, 50)
    # exact McNemar of 20 against 4: 2 x P(Bin(24, 1/2) <= 4) = .001544
    assert found["hit"]["p"] == pytest.approx(0.001544, abs=1e-6)
    assert found["p"] == pytest.approx(0.001544, abs=0.002)
    assert found["low"] < 0.32 < found["high"]
    assert found["low"] > 0
    assert found["verdict"] == "better"
    assert compare(labelled, b, a, 1)["verdict"] == "worse"
    assert json.loads(json.dumps(found))["verdict"] == "better"


def test_no_difference_shown_and_too_few(make_set: Maker, make_run: RunMaker) -> None:
    assert compare(*_pair(make_set, make_run, 12, 10, 20), 1)["verdict"] == "no_difference_shown"
    few = compare(*_pair(make_set, make_run, 19, 0, 100), 1)
    assert few["verdict"] == "too_few_to_tell"
    same = compare(*_pair(make_set, make_run, 0, 0, 5), 1)
    assert (same["verdict"], same["difference"], same["discordant"], same["p"]) == ("too_few_to_tell", 0.0, 0, 1.0)


def test_sd_and_what_can_be_detected(make_set: Maker, make_run: RunMaker) -> None:
    # d = 1 twice, 0 twice: sd = sqrt(1/3); 2.80 x sd / 2
    found = compare(*_pair(make_set, make_run, 2, 0, 2), 1)
    assert found["sd"] == pytest.approx((1 / 3) ** 0.5)
    assert found["detectable"] == pytest.approx(2.8016 * (1 / 3) ** 0.5 / 2, abs=1e-4)
    # Where all are alike, no sd is seen, and no smallest difference can be named.
    alike = compare(*_pair(make_set, make_run, 0, 0, 4), 1)
    assert (alike["sd"], alike["detectable"]) == (0.0, None)
    assert alike["low"] < alike["high"]


def test_same_numbers_whatever_the_row_order(make_set: Maker, make_run: RunMaker) -> None:
    labelled, a, b = _pair(make_set, make_run, 15, 8, 10)
    shuffled = a.take(pa.array(list(reversed(range(len(a))))))
    assert compare(labelled, shuffled, b, 1) == compare(labelled, a, b, 1)


def test_questions_without_gold_are_counted_out(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": False}}, questions={"q1": {}, "q2": {}, "q3": {}})
    found = compare(labelled, make_run({"q1": ["a"]}), make_run({"q1": ["b"], "q9": ["a"]}), 1)
    assert found["n"] == 1
    assert found["excluded"] == {"no_gold": 1, "not_labelled": 1, "not_in_set": 1}
    assert (found["low"], found["sd"]) == (None, None)


def test_power() -> None:
    # METHODS 9: 2.80 sd/sqrt(180) is .052 for sd .25 and .063 for sd .30
    assert power(sd=0.25, n=180)["detectable"] == pytest.approx(0.052, abs=5e-4)
    assert power(sd=0.30, n=180)["detectable"] == pytest.approx(0.063, abs=5e-4)


def test_hours() -> None:
    # METHODS 13, 29
    found = cost(questions=180, spans=136 / 3, seconds=15, positive_share=0.183, review_share=0.1)
    assert found["pairs"] == pytest.approx(8160)
    assert found["full_hours"] == pytest.approx(34.0)
    assert found["hours"] == pytest.approx(8.9998, abs=1e-4)
    # 120 items of 6 s and 27,600 words at 230 a minute: 12 min + 120 min
    assert reading_hours(120, 27_600, seconds_base=6, words_per_minute=230) == pytest.approx(2.2)


def test_words_without_texts_are_unknown(make_set: Maker, make_run: RunMaker) -> None:
    rows = words_served(make_set({"q": {"a": True}}), {"s": make_run({"q": ["a"]})}, ks=[1])
    assert rows == [{"system": "s", "k": 1, "n": 1, "words": None, "unknown": None}]


def test_the_questions_that_differ_with_both_ranks(make_set: Maker, make_run: RunMaker) -> None:
    # q1: gold at 1 and 3 in A, at 1 and nowhere in B. q2: at 4 in A (not in the first 3), at 2 in B. q3: alike.
    labelled = make_set({"q1": {"a": True, "b": True}, "q2": {"c": True}, "q3": {"d": True}},
                        questions={"q1": {"text": "what is b"}, "q2": {}, "q3": {}})
    a = make_run({"q1": ["a", "x", "b"], "q2": ["x", "y", "z", "c"], "q3": ["d"]}, "a")
    b = make_run({"q1": ["a", "x"], "q2": ["x", "c"], "q3": ["x", "d"]}, "b")
    assert compare(labelled, a, b, 3)["changed"] == [
        {"question_id": "q2", "text": "q2", "change": 1.0, "gold": [{"span_id": "c", "rank_a": 4, "rank_b": 2}]},
        {"question_id": "q1", "text": "what is b", "change": -0.5,
         "gold": [{"span_id": "a", "rank_a": 1, "rank_b": 1}, {"span_id": "b", "rank_a": 3, "rank_b": None}]}]
