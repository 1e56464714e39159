"""recall_deep: by hand, null where nobody looked, and in a model whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from goldset.formats.sets import LabelledSet
from goldset.metrics import score
from goldset.stats.recall import unseen_below_variance

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]

POSITIVE, REJECTION = "deep_positive", "deep_rejection"


def _probe(positive: tuple[int, int, float | None], rejection: tuple[int, int, float | None]) -> dict[str, Any]:
    strata = [{"stratum": name, "size": read, "stands_for": 0.0, "read": read, "found": found, "weight": weight}
              for name, (read, found, weight) in ((POSITIVE, positive), (REJECTION, rejection))]
    return {"strata": strata}


def _row(labelled: LabelledSet, run: pa.Table, measure: str, k: int = 5) -> dict[str, Any]:
    rows = score(labelled, {"s": run}, ks=[k]).to_pylist()
    return next(row for row in rows if row["measure"] == measure and row["slice"] == "all")


def test_finds_from_below_join_the_gold_by_weight(make_set: Maker, make_run: RunMaker) -> None:
    # q1: a and b confirmed, a delivered; q2: c confirmed and delivered, m a find among the rejections (weight 4, not
    # delivered); q3: d confirmed and delivered. From below: y of q1 stands for 6, z of q4 for 3.
    pairs = {"q1": {"a": True, "b": True, "y": True}, "q2": {"c": True, "m": True}, "q3": {"d": True},
             "q4": {"z": True}}
    labelled = make_set(pairs, weights={("q2", "m"): 4.0, ("q1", "y"): 6.0, ("q4", "z"): 3.0}, kind="published",
                        strata={("q1", "y"): POSITIVE, ("q4", "z"): REJECTION},
                        manifest={"sampling": {"rejections": 40, "sampled": 10},
                                  "deep": _probe((2, 1, 6.0), (2, 1, 3.0))})
    run = make_run({"q1": ["a"], "q2": ["c"], "q3": ["d"], "q4": ["x"]})
    deep, micro, recall = (_row(labelled, run, name) for name in ("recall_deep", "recall_micro", "recall"))
    # Delivered 3 of 4 + 4 in the pool; below it stand 9 more, none of them delivered: 3 / (8 + 9).
    assert micro["value"] == pytest.approx(3 / 8)
    assert deep["value"] == pytest.approx(3 / 17)
    assert (micro["n"], deep["n"]) == (3, 4)
    # What stands below changes no number that is relative to the pool: q4 has no gold there.
    assert (recall["value"], recall["n"]) == (pytest.approx((0.5 + 1 + 1) / 3), 3)
    # A run that serves y delivers what y stands for.
    served = make_run({"q1": ["a", "y"], "q2": ["c"], "q3": ["d"], "q4": ["x"]})
    assert _row(labelled, served, "recall_deep")["value"] == pytest.approx((3 + 6) / 17)
    assert _row(labelled, served, "recall_micro")["value"] == pytest.approx(3 / 8)
    # Read whole, a pair from below stands for itself and is still outside the pool.
    whole = make_set(pairs, weights={("q2", "m"): 4.0}, kind="published",
                     strata={("q1", "y"): POSITIVE, ("q4", "z"): REJECTION},
                     manifest={"sampling": {"rejections": 40, "sampled": 10}, "deep": _probe((2, 1, 1.0), (2, 1, 1.0))})
    assert _row(whole, run, "recall")["value"] == pytest.approx((0.5 + 1 + 1) / 3)
    assert _row(whole, run, "recall_deep")["value"] == pytest.approx(3 / 10)


def test_where_nobody_looked_it_is_null_with_its_reason(make_set: Maker, make_run: RunMaker) -> None:
    pairs, run = {"q1": {"a": True}, "q2": {"b": True}}, make_run({"q1": ["a"], "q2": ["x"]})
    for kind, manifest, reason in (("beir", {}, "no_deep_probe"), ("published", {"deep": None}, "no_deep_probe"),
                                   ("published", {"deep": _probe((0, 0, None), (1, 0, 4.0))}, "deep_probe_unread")):
        row = _row(make_set(pairs, kind=kind, manifest=manifest), run, "recall_deep")
        assert (row["value"], row["low"], row["high"], row["reason"]) == (None, None, None, reason)


def test_a_probe_without_finds_lowers_only_the_lower_end(make_set: Maker, make_run: RunMaker) -> None:
    pairs = {f"q{i}": {f"d{i}": True} for i in range(40)}
    run = make_run({f"q{i}": [f"d{i}" if i % 2 else "x"] for i in range(40)})
    ends = {}
    for weight in (1.0, 10.0):
        labelled = make_set(pairs, kind="published", manifest={"deep": _probe((5, 0, 1.0), (15, 0, weight))})
        row = _row(labelled, run, "recall_deep")
        assert row["value"] == pytest.approx(0.5)
        ends[weight] = row["low"]
        assert row["high"] == pytest.approx(_row(labelled, run, "recall_micro")["high"])
    assert ends[10.0] < ends[1.0] < _row(labelled, run, "recall_micro")["low"]
    # Half an event of weight 10 under theta = .5, of forty questions: .75 x 100 x .25 / 1600. Over two strata of which
    # 5 and 15 were read it is split .125 and .375; the first has a find, so .375 x 1.375 of weight 10 are left.
    one, two = (np.array(part) for part in ([20.0], [5.0, 15.0]))
    told: dict[str, Any] = {"draws": np.ones(40), "den": np.ones(40), "theta": 0.5}
    alone = unseen_below_variance(**told, read=one, found=np.array([0.0]), weight=np.array([10.0]))
    assert alone == pytest.approx(0.75 * 100 * 0.25 / 1600)
    part = unseen_below_variance(**told, read=two, found=np.array([1.0, 0.0]), weight=np.array([1.0, 10.0]))
    assert part == pytest.approx(0.375 * 1.375 * 100 * 0.25 / 1600)


QUESTIONS, DEPTH, BOTTOM, EACH, SHARE = 150, 50, 200, 20, 0.1
SENSITIVITY, SPECIFICITY = 0.85, 0.9
REPEATS = 90


def _world(rng: np.random.Generator) -> tuple[Any, ...]:
    """Three relevant spans a question in METHODS 4's model: log ranks of two lists are normal, correlated at .5."""
    owner = np.repeat(np.arange(QUESTIONS), 3)
    ease = np.repeat(rng.normal(0, 0.4, QUESTIONS), 3)
    first = rng.standard_normal(len(owner))
    second = 0.5 * first + np.sqrt(0.75) * rng.standard_normal(len(owner))
    ranks = [np.ceil(np.exp(np.log(50) - 1.083 * 1.8 + ease + 1.8 * part)) for part in (first, second)]
    return owner, np.minimum(*ranks), ranks[0]


def _set(rng: np.random.Generator, make_set: Maker, owner: Any, best: Any) -> tuple[LabelledSet, Any, Any]:
    """A pool whose labels are complete, and a deep probe by the book: its window's spans, two draws, their weights."""
    pairs: dict[str, dict[str, bool]] = {f"q{question}": {} for question in range(QUESTIONS)}
    pool, window = best <= DEPTH, (best > DEPTH) & (best <= BOTTOM)
    for row in np.flatnonzero(pool):
        pairs[f"q{owner[row]}"][f"d{row}"] = True
    first: dict[str, dict[tuple[str, str, bool], float]] = {POSITIVE: {}, REJECTION: {}}
    for question in range(QUESTIONS):
        relevant = np.flatnonzero(window & (owner == question))
        size = int(rng.integers(180, 260))  # ranks 51 to 200 of two lists, what they share folded
        for place in rng.choice(size, EACH, replace=False):
            true = place < len(relevant)
            said = rng.random() < (SENSITIVITY if true else 1 - SPECIFICITY)
            span = f"d{relevant[place]}" if true else f"n{question}-{place}"
            first[POSITIVE if said else REJECTION][f"q{question}", span, bool(true)] = size / EACH
    weights, strata, told = {}, {}, {}
    for name, drawn in first.items():
        keys = sorted(drawn)
        count = len(keys) if name == POSITIVE else int(np.ceil(SHARE * len(keys)))
        read = [keys[place] for place in rng.choice(len(keys), count, replace=False)]
        for question, span, true in read:
            if true:
                pairs[question][span] = True
                weights[question, span] = drawn[question, span, true] * len(keys) / count
                strata[question, span] = name
        told[name] = (count, sum(true for *_, true in read), sum(drawn.values()) / count)
    manifest = {"deep": _probe(told[POSITIVE], told[REJECTION])}
    return make_set(pairs, weights=weights, strata=strata, kind="published", manifest=manifest), pool, window


def test_the_interval_holds_the_truth_of_its_window(make_set: Maker, make_run: RunMaker) -> None:
    rng = np.random.default_rng(11)
    held, above, excess, bias = 0, 0, [], []
    for _ in range(REPEATS):
        owner, best, served = _world(rng)
        labelled, pool, window = _set(rng, make_set, owner, best)
        lists: dict[str, list[str]] = {f"q{question}": ["x"] for question in range(QUESTIONS)}
        for row in np.flatnonzero(served <= 20):
            lists[f"q{owner[row]}"].append(f"d{row}")
        rows = {row["measure"]: row for row in score(labelled, {"s": make_run(lists)}, ks=[20]).to_pylist()}
        delivered = int((served <= 20).sum())
        truth, truth_window = delivered / len(owner), delivered / int((pool | window).sum())
        deep, relative = rows["recall_deep"], rows["recall_micro"]["value"]
        held += deep["low"] <= truth_window <= deep["high"]
        above += relative > truth
        excess.append(relative - truth)
        bias.append(deep["value"] - truth_window)
    # The pool never held what both lists miss, so recall relative to it always flatters.
    assert above == REPEATS
    assert np.mean(excess) > 0.02
    # Horvitz-Thompson: no bias beyond what chance leaves of so many repeats.
    assert abs(np.mean(bias)) < 3 * np.std(bias) / np.sqrt(REPEATS) + 0.01
    assert held >= 0.9 * REPEATS
