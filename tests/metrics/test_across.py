"""Two versions of a set with overlapping panels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from goldset.formats.sets import LabelledSet
from goldset.metrics import compare, compare_versions
from goldset.stats.compare import panel_difference

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _version(make_set: Maker, make_run: RunMaker, recalls: dict[str, int],
             **given: dict[str, dict[str, object]]) -> tuple[LabelledSet, pa.Table]:
    """One gold a question, found at rank 1 or not at all."""
    labelled = make_set({question: {f"g-{question}": True} for question in recalls}, **given)
    return labelled, make_run({question: [f"g-{question}" if hit else "miss"] for question, hit in recalls.items()})


def test_half_an_overlap_by_hand(make_set: Maker, make_run: RunMaker) -> None:
    old, run_a = _version(make_set, make_run, {"q1": 0, "q2": 0, "q3": 1, "q4": 0})
    new, run_b = _version(make_set, make_run, {"q3": 1, "q4": 1, "q5": 1, "q6": 0})
    found = compare_versions(old, new, run_a, run_b, 1)
    assert (found["n_a"], found["n_b"], found["n_both"], found["discordant"]) == (4, 4, 2, 1)
    assert (found["recall_a"], found["recall_b"], found["difference"]) == (0.25, 0.75, 0.5)
    # Residuals: old -.25 -.25 .75 -.25, new .25 .25 .25 -.75. V = 4/3 x .75 / 16 = .0625 each; the shared q3 and q4
    # have products .1875 and -.0625, so the covariance is 4/3 x .125 / 16 = .0104167 and se^2 = .125 - .0208333.
    assert found["se"] == pytest.approx((0.125 - 0.0208333) ** 0.5, abs=1e-6)
    arm = max(found["high"] - 0.5, 0.5 - found["low"])
    assert found["detectable"] == pytest.approx(2.801585 / 1.959964 * arm, abs=1e-5)
    assert (found["paired"]["n"], found["paired"]["difference"], found["paired"]["p"]) == (2, 0.5, 1.0)
    assert (found["rest"]["n_a"], found["rest"]["n_b"], found["rest"]["difference"]) == (2, 2, 0.5)
    assert found["verdict"] == "too_few_to_tell"
    # As wide as the unpaired one at least where the covariance is negative, narrower where it is positive.
    apart, run_c = _version(make_set, make_run, {"r3": 1, "r4": 1, "r5": 1, "r6": 0})
    unpaired = compare_versions(old, apart, run_a, run_c, 1)
    assert (unpaired["n_both"], unpaired["se"]) == (0, pytest.approx(0.125**0.5))
    assert found["high"] - found["low"] < unpaired["high"] - unpaired["low"]


def test_p_by_enumeration() -> None:
    # Shared: one unit always found, one lost in old and found in new. Alone: two lost in old, two found in new.
    # |difference| reaches .75 only if the shared one and both found fall on the same side: 2 x 1/2 x 1/6 = 1/6.
    old = (np.array([1.0, 0, 0, 0, 0, 0]), np.array([1.0, 1, 1, 1, 0, 0]))
    new = (np.array([1.0, 1, 0, 0, 1, 1]), np.array([1.0, 1, 0, 0, 1, 1]))
    p = panel_difference(old, new)
    assert p == pytest.approx(1 / 6, abs=0.012)  # three standard errors of 10,000 draws
    assert panel_difference(old, new) == p
    assert panel_difference(old, (np.zeros(6), np.zeros(6))) is None


def test_the_same_panel_is_a_paired_comparison(make_set: Maker, make_run: RunMaker) -> None:
    before = {f"q{i}": int(i >= 20) for i in range(60)}
    after = {f"q{i}": int(not 20 <= i < 24) for i in range(60)}
    old, run_a = _version(make_set, make_run, before)
    new, run_b = _version(make_set, make_run, after)
    found, paired = compare_versions(old, new, run_a, run_b, 1), compare(new, run_a, run_b, 1)
    assert found["difference"] == pytest.approx(paired["difference"]) == pytest.approx(16 / 60)
    assert found["paired"]["p"] == paired["p"]
    assert found["p"] == pytest.approx(paired["p"], abs=0.002)
    # sd / sqrt(n): the covariance has made it a paired difference.
    assert found["se"] == pytest.approx(paired["sd"] / 60**0.5)
    assert (found["verdict"], found["rest"]["difference"]) == ("better", None)
    assert compare_versions(new, old, run_b, run_a, 1)["verdict"] == "worse"


def test_a_version_against_itself(make_set: Maker, make_run: RunMaker) -> None:
    old, run = _version(make_set, make_run, {f"q{i}": i % 2 for i in range(30)})
    found = compare_versions(old, old, run, run, 1)
    assert (found["difference"], found["p"], found["discordant"]) == (0.0, 1.0, 0)
    assert found["se"] == pytest.approx(0.0, abs=1e-8)
    assert found["verdict"] == "too_few_to_tell"
    assert found["warnings"] == []


def test_perfect_on_both_is_no_certainty(make_set: Maker, make_run: RunMaker) -> None:
    old, run_a = _version(make_set, make_run, {f"q{i}": 1 for i in range(20)})
    new, run_b = _version(make_set, make_run, {f"q{i}": 1 for i in range(10, 30)})
    found = compare_versions(old, new, run_a, run_b, 1)
    # 20 of 20: Clopper-Pearson from .831567 (METHODS 13, 20).
    assert (found["low"], found["high"]) == (pytest.approx(0.831567 - 1, abs=1e-6),
                                            pytest.approx(1 - 0.831567, abs=1e-6))
    assert found["verdict"] == "no_difference_shown"


def test_gold_that_changed_and_near_duplicates_in_either_version(make_set: Maker, make_run: RunMaker) -> None:
    old, run_a = _version(make_set, make_run, {"q1": 1, "q2": 0},
                          questions={"q1": {"cluster_id": "c"}, "q2": {"cluster_id": "c"}})
    new = make_set({"q2": {"g-q2": True, "more": True}, "q3": {"g-q3": True}, "q4": {"x": False}},
                   questions={"q2": {"cluster_id": "d"}, "q3": {"cluster_id": "d"}, "q4": {}})
    found = compare_versions(old, new, run_a, make_run({"q2": ["g-q2"], "q3": ["g-q3"]}), 1)
    # q1 and q2 are near-duplicates in old, q2 and q3 in new: one unit in all, so nothing has an interval.
    assert (found["low"], found["se"], found["difference"]) == (None, None, 0.75 - 0.5)
    assert (found["gold_changed"], found["excluded_b"]) == (1, {"no_gold": 1})
    assert found["warnings"] == ["the gold of 1 of the 1 questions in both versions is not the same, and part of the "
                                 "difference may be its"]


def test_multiplicity_counts_in_its_own_version(make_set: Maker, make_run: RunMaker) -> None:
    old, run_a = _version(make_set, make_run, {"q1": 1, "q2": 0}, questions={"q1": {"draws": 3}, "q2": {"draws": 1}})
    new, run_b = _version(make_set, make_run, {"q1": 1, "q2": 0}, questions={"q1": {"draws": 1}, "q2": {"draws": 1}})
    found = compare_versions(old, new, run_a, run_b, 1)
    assert (found["recall_a"], found["recall_b"], found["difference"]) == (0.75, 0.5, -0.25)
    assert (found["paired"]["difference"], found["discordant"]) == (0.0, 0)
