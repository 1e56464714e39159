"""Missed gold: values of METHODS 13, and coverage by seeded simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from goldset.stats.missed import (
    false_negative_rate,
    fay_feuer,
    missed_interval,
    most_missed,
    sample_to_exclude,
    split_prior,
    stratified_total,
)


@pytest.mark.parametrize(
    ("x", "n", "total", "low", "high"),
    [(2, 667, 6670, 3, 69), (0, 667, 6670, 0, 34), (2, 40, 400, 3, 65), (0, 10, 10, 0, 0), (1, 10, 10, 1, 1),
     (0, 5, 100, 0, 51), (0, 100, 1000, 0, 34), (3, 100, 1000, 7, 82)],
)
def test_hypergeometric_inversion(x: int, n: int, total: int, low: int, high: int) -> None:
    assert missed_interval(x, n, total) == (low, high)


@given(st.integers(1, 60).flatmap(lambda total: st.integers(0, total).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n), st.just(total)))))
def test_inversion_by_search(case: tuple[int, int, int]) -> None:
    # The definition, by trying every M with scipy's distribution.
    x, n, total = case
    possible = range(x, total - (n - x) + 1)
    low = min(m for m in possible if hypergeom.sf(x - 1, total, m, n) > 0.025 + 1e-12)
    high = max(m for m in possible if hypergeom.cdf(x, total, m, n) > 0.025 + 1e-12)
    assert missed_interval(x, n, total) == (low, high)


def test_false_negative_rate() -> None:
    low, high = missed_interval(2, 667, 6670)
    assert false_negative_rate(20, 270) == pytest.approx(0.068966, abs=1e-6)
    assert false_negative_rate(low, 270) == pytest.approx(0.010989, abs=1e-6)
    assert false_negative_rate(high, 270) == pytest.approx(0.203540, abs=1e-6)
    assert false_negative_rate(0, 0) is None


@pytest.mark.parametrize(
    ("weights", "largest", "low", "high"),
    [([10, 10], 10, 2.422093, 72.246877), ([], 10, 0, 36.888795), ([10], 10, 0.253178, 55.716434),
     ([20, 2], 20, 0.936473, 113.029536)],
)
def test_fay_feuer(weights: list[float], largest: float, low: float, high: float) -> None:
    assert fay_feuer(np.array(weights, float), largest=largest) == pytest.approx((low, high), abs=1e-6)


def test_finds_of_one_question_widen_it() -> None:
    alone = fay_feuer(np.array([10.0, 10.0]), largest=10)
    together = fay_feuer(np.array([10.0, 10.0]), largest=10, clusters=np.array([4.0, 4.0]))
    assert together.low < alone.low
    assert together.high > alone.high


def test_two_strata() -> None:
    sizes, drawn, found = np.array([1300.0, 5300.0]), np.array([325.0, 331.0]), np.array([2.0, 0.0])
    assert stratified_total(sizes, drawn, found) == pytest.approx(8.0)
    assert split_prior(sizes, drawn, found, draws=200_000) == pytest.approx((1.9, 39.1), abs=0.3)
    # weight of each find 1300/325 = 4, the largest possible weight 5300/331
    assert fay_feuer(np.array([4.0, 4.0]), largest=5300 / 331) == pytest.approx((0.968837, 66.901857), abs=1e-6)


def test_a_stratum_read_whole_is_known() -> None:
    # 50 of 50 read, 3 relevant: exactly 3; nothing drawn from a stratum of none.
    assert split_prior(np.array([50.0]), np.array([50.0]), np.array([3.0])) == (3.0, 3.0)
    assert split_prior(np.array([50.0]), np.array([0.0]), np.array([0.0])) is None
    assert stratified_total(np.array([50.0]), np.array([0.0]), np.array([0.0])) is None


def test_sample_sizes() -> None:
    assert sample_to_exclude(6670, 30) == 749
    assert sample_to_exclude(6670, 14) == 1455
    assert [most_missed(270, rate) for rate in (0.2, 0.1, 0.05)] == [67, 30, 14]


def test_coverage_of_the_exact_interval() -> None:
    generator = np.random.default_rng(5)
    found = generator.hypergeometric(20, 1980, 200, 500)
    ends = {int(x): missed_interval(int(x), 200, 2000) for x in np.unique(found)}
    covered = np.mean([ends[int(x)].low <= 20 <= ends[int(x)].high for x in found])
    assert covered >= 0.95
