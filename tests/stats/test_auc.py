"""AUC with DeLong's interval: values of METHODS 13, scikit-learn, and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from goldset.stats.auc import auc, stratified_auc

VALUES = st.lists(st.integers(0, 8), min_size=1, max_size=12)


def test_known_value() -> None:
    found = auc(np.array([3.0, 4, 5]), np.array([1.0, 2, 3]))
    assert found is not None
    assert found.value == pytest.approx(0.944444, abs=1e-6)
    assert found.se == pytest.approx(0.078567, abs=1e-6)
    assert found.delta == pytest.approx(0.888889, abs=1e-6)


@given(VALUES, VALUES)
def test_definition_and_scikit_learn(first: list[int], second: list[int]) -> None:
    found = auc(np.array(first, float), np.array(second, float))
    assert found is not None
    wins = np.mean([(a > b) + 0.5 * (a == b) for a in first for b in second])
    assert found.value == pytest.approx(wins)
    truth = [1] * len(first) + [0] * len(second)
    assert found.value == pytest.approx(roc_auc_score(truth, first + second))


def test_no_interval_without_information() -> None:
    assert auc(np.array([]), np.array([1.0])) is None
    one = auc(np.array([2.0]), np.array([1.0, 3.0]))
    assert one is not None
    assert one.interval is None
    flat = auc(np.ones(5), np.ones(5))
    assert flat is not None
    assert (flat.value, flat.interval) == (0.5, None)


def test_separated_sides_are_not_certainty() -> None:
    found = auc(np.arange(10.0) + 100, np.arange(30.0))
    assert found is not None
    assert found.interval is not None
    # no miss in 10: the lower end is 0.025^(1/10) = 0.6915
    assert found.interval == pytest.approx((0.691503, 1.0), abs=1e-6)


def test_bands_remove_a_difference_of_length() -> None:
    # Within each band the sides are alike; the longer side only has more of the high band.
    low, high = np.array([1.0, 2, 3, 4]), np.array([11.0, 12, 13, 14])
    first = np.concatenate([low, high, high, high])
    second = np.concatenate([low, low, low, high])
    first_band, second_band = (first > 10).astype(np.int64), (second > 10).astype(np.int64)
    plain = auc(first, second)
    banded = stratified_auc(first, second, first_band=first_band, second_band=second_band)
    assert plain is not None
    assert banded is not None
    assert plain.value > 0.7
    assert banded.value == pytest.approx(0.5)
    assert stratified_auc(low, high, first_band=np.zeros(4, np.int64), second_band=np.ones(4, np.int64)) is None


def test_coverage() -> None:
    # normal(1) against normal(0): AUC = Phi(1 / sqrt 2) = 0.7602
    generator = np.random.default_rng(8)
    hits = 0
    for _ in range(400):
        found = auc(generator.normal(1, 1, 60), generator.normal(0, 1, 60))
        assert found is not None
        assert found.interval is not None
        hits += found.interval.low <= 0.760250 <= found.interval.high
    assert 0.92 <= hits / 400 <= 0.98
