"""Intervals: values of METHODS 13, statsmodels as a second opinion, and coverage by seeded simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from statsmodels.stats.proportion import proportion_confint

from goldset.stats.compare import DETECT
from goldset.stats.intervals import (
    Estimate,
    clopper_lower,
    clopper_pearson,
    clopper_upper,
    difference,
    kish,
    ratio,
    t_interval,
    t_value,
    wilson,
    z_value,
)


@pytest.mark.parametrize(
    ("x", "n", "low", "high"),
    [(17, 18, 0.742427, 0.990125), (9, 22, 0.232558, 0.612652), (37, 40, 0.801358, 0.974164),
     (0, 180, 0.0, 0.020895), (25, 180, 0.095877, 0.196992)],
)
def test_wilson(x: int, n: int, low: float, high: float) -> None:
    assert wilson(x / n, n) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    ("x", "n", "low", "high"),
    [(17, 18, 0.727056, 0.998594), (0, 180, 0.0, 0.020285), (180, 180, 0.979715, 1.0)],
)
def test_clopper_pearson(x: int, n: int, low: float, high: float) -> None:
    assert clopper_pearson(x, n) == pytest.approx((low, high), abs=1e-6)


def test_one_sided_bounds() -> None:
    # 1 - 0.05^(1/180): the largest share under which 0 of 180 still has a chance of 5 %.
    assert clopper_upper(0, 180) == pytest.approx(1 - 0.05 ** (1 / 180), abs=1e-12)
    assert clopper_upper(0, 180) == pytest.approx(0.016505, abs=1e-6)
    assert clopper_lower(180, 180) == pytest.approx(0.05 ** (1 / 180), abs=1e-12)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_statsmodels_agrees(case: tuple[int, int]) -> None:
    x, n = case
    assert wilson(x / n, n) == pytest.approx(proportion_confint(x, n, method="wilson"), abs=1e-9)
    assert clopper_pearson(x, n) == pytest.approx(proportion_confint(x, n, method="beta"), abs=1e-9)


def test_nothing_observed_gives_no_interval() -> None:
    assert wilson(0.0, 0) is None
    assert clopper_pearson(0, 0) is None
    assert clopper_upper(0, 0) is None
    assert t_interval(0.5, 0.1, 1) is None


def test_mean_recall_by_effective_size() -> None:
    recalls = np.array([1, 1, 0.5, 0, 1, 1, 0.5, 1, 1, 0])
    found = ratio(recalls, np.ones(10))
    assert found.value == pytest.approx(0.7)
    assert found.se == pytest.approx(0.133333, abs=1e-6)
    assert found.n_eff == pytest.approx(8.867322, abs=1e-6)
    assert found.interval == pytest.approx((0.380450, 0.898643), abs=1e-6)
    assert t_interval(0.7, found.se or 0.0, 10) == pytest.approx((0.398379, 1.001621), abs=1e-6)


def test_twenty_perfect_questions_are_not_certainty() -> None:
    found = ratio(np.ones(20), np.ones(20))
    assert found.value == 1
    assert found.interval == pytest.approx((0.831567, 1.0), abs=1e-6)
    assert found.method == "clopper_pearson"


def test_seven_of_thirteen() -> None:
    # About 0.26 to 0.79.
    found = ratio(np.array([1.0] * 7 + [0.0] * 6), np.ones(13))
    assert found.interval == pytest.approx((0.26, 0.79), abs=0.01)


def test_one_question_has_no_interval_and_none_has_no_value() -> None:
    one = ratio(np.array([0.5]), np.ones(1))
    assert (one.value, one.interval, one.method) == (0.5, None, "none: one unit")
    none = ratio(np.zeros(3), np.zeros(3))
    assert (none.value, none.interval, none.units) == (None, None, 0)


def test_equal_recalls_below_one_keep_a_width() -> None:
    # V = 0 at 0.5: Clopper-Pearson of 2 in 4, whose ends 0.0676 and 0.9324 are in any table.
    found = ratio(np.full(4, 0.5), np.ones(4))
    assert found.interval == pytest.approx((0.067586, 0.932414), abs=1e-6)


@pytest.mark.parametrize(("weight", "n", "low"), [
    # One find stands for 10 of 8: 17/8, V = 8/7 x 70.875 / 64, se 9/8; 2.125 - 2.364624 x 1.125 is below 0.
    (10.0, 8, 0.0),
    # 3 of 20: 22/20, V = 20/19 x 3.8 / 400, se .1; 1.1 - 2.093024 x .1 = .8907, and 20 of 20 alone say .831567.
    (3.0, 20, 0.831567),
    # 6 of 20: 25/20, V = 20/19 x 23.75 / 400, se .25; 1.25 - 2.093024 x .25
    (6.0, 20, 1.25 - 0.25 * 2.093024)])
def test_what_is_clipped_is_as_uncertain_as_what_went_beyond(weight: float, n: int, low: float) -> None:
    found = ratio(np.array([1.0] * (n - 1) + [weight]), np.ones(n))
    assert (found.value, found.clipped, found.method) == (1.0, True, "student_t")
    assert found.interval == pytest.approx((low, 1.0), abs=1e-6)


def test_traffic_weights() -> None:
    recalls, traffic = np.array([1, 0.5, 0]), np.array([70.0, 20.0, 10.0])
    assert ratio(recalls, np.ones(3), weight=traffic).value == pytest.approx(0.80)
    assert kish(traffic) == pytest.approx(1.851852, abs=1e-6)


def test_copies_in_a_cluster_add_nothing() -> None:
    recalls = np.array([1.0, 0.0, 0.5, 1.0, 0.0])
    alone = ratio(recalls, np.ones(5))
    doubled = ratio(np.repeat(recalls, 2), np.ones(10), cluster=np.repeat(np.arange(5), 2))
    assert doubled.units == 5
    assert doubled.interval == pytest.approx(alone.interval)
    drawn_twice = ratio(recalls, np.ones(5), weight=np.full(5, 2.0))
    assert drawn_twice.interval == pytest.approx(alone.interval)
    naive = ratio(np.repeat(recalls, 2), np.ones(10))
    assert naive.interval is not None
    assert alone.interval is not None
    assert naive.interval.high - naive.interval.low < alone.interval.high - alone.interval.low


def test_unpaired_difference() -> None:
    # METHODS 13, 31: .94 and .79 of 180 questions each.
    old, new = (Estimate(p, wilson(p, 180), "", 180, math.sqrt(p * (1 - p) / 180)) for p in (0.94, 0.79))
    found = difference(old, new)
    assert found is not None
    se, interval = found
    assert se == pytest.approx(0.035143, abs=1e-6)
    assert (0.15 - 1.959964 * se, 0.15 + 1.959964 * se) == pytest.approx((0.081122, 0.218878), abs=1e-6)
    # Ours is Newcombe's, from the two Wilson intervals .895267-.966345 and .724752-.843129: a shade wider.
    assert interval == pytest.approx((0.15 - math.hypot(0.94 - 0.895267, 0.843129 - 0.79),
                                      0.15 + math.hypot(0.966345 - 0.94, 0.79 - 0.724752)), abs=1e-5)
    assert difference(Estimate(None, None, "none", 0), new) is None


@pytest.mark.parametrize(("n", "shared"), [(20, 0), (20, 16), (20, 20), (50, 40), (50, 50)])
@pytest.mark.parametrize(("at", "step", "kept"), [(1.2, 0.4, 0.7), (2.2, 0.2, 0.9), (0.3, 0.0, 0.5)])
def test_difference_of_two_panels_holds_the_truth(n: int, shared: int, at: float, step: float, kept: float) -> None:
    """Probit questions of sd .9 with one gold; the newer system repeats a share ``kept`` of the older's results.

    Mean recall is Phi(at / sqrt(1 + .81)), of new draws Phi((at + step) / sqrt(1.81)).
    """
    draw, size = np.random.default_rng(11), 2 * n - shared
    truth = (1 - kept) * float(np.diff(special.ndtr(np.array([at, at + step]) / math.sqrt(1.81)))[0])
    held = by_error = 0
    for _ in range(200):
        latent = 0.9 * draw.normal(size=size)
        a = (latent + draw.normal(size=size) < at).astype(float)
        b = np.where(draw.random(size) < kept, a, (latent + draw.normal(size=size) < at + step).astype(float))
        a, b = a[:n], b[size - n :]
        covariance = float((a - a.mean())[n - shared :] @ (b - b.mean())[:shared]) / n / (n - 1)
        found = difference(ratio(b, np.ones(n)), ratio(a, np.ones(n)), covariance=covariance)
        assert found is not None
        held += found[1].low <= truth <= found[1].high
        by_error += abs(b.mean() - a.mean() - truth) <= 1.96 * found[0]
    assert held >= 182  # 91 %: two standard errors below 94 %
    if (n, shared, kept) == (20, 20, 0.9):
        assert by_error < 100  # value and standard error alone hold it in less than half


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=2, max_size=30))
def test_the_interval_holds_the_value(pairs: list[tuple[int, int]]) -> None:
    gold = np.array([max(a, g) for a, g in pairs], float)
    found = ratio(np.array([a for a, _ in pairs], float) / gold, np.ones(len(pairs)))
    assert found.value is not None
    assert found.interval is not None
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
    assert found.interval.high - found.interval.low > 0.01


def test_coverage_of_mean_recall() -> None:
    # METHODS 3.2: Wilson by effective size covers .94-.96 at n = 20; Monte Carlo error .01 (one SD) at 600 runs.
    generator = np.random.default_rng(11)
    values, chances = np.array([0, 0.5, 1.0]), np.array([0.1, 0.2, 0.7])
    truth = float(values @ chances)
    hits = 0
    for _ in range(600):
        found = ratio(generator.choice(values, 20, p=chances), np.ones(20))
        assert found.interval is not None
        hits += found.interval.low <= truth <= found.interval.high
    assert 0.92 <= hits / 600 <= 0.985


def test_quantiles_without_scipy_are_those_of_scipy() -> None:
    assert z_value() == float(special.ndtri(0.975))
    assert pytest.approx(float(special.ndtri(0.975) + special.ndtri(0.8)), abs=1e-12) == DETECT
    for df in (1000, 1001, 5000, 10**6):
        assert t_value(df) == pytest.approx(float(special.stdtrit(df, 0.975)), abs=1e-9)
    assert t_value(999) == pytest.approx(float(special.stdtrit(999, 0.975)), abs=1e-12)
