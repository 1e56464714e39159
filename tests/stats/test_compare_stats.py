"""Sign flips, bootstrap, McNemar, power: values of METHODS 13 and section 9, scipy.stats as a second opinion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test

from goldset.stats.compare import (
    Units,
    bootstrap_ratio,
    detectable,
    half_width,
    mcnemar,
    paired_ends,
    questions_for_width,
    questions_to_detect,
    sign_flip,
)


def alike(differences: Any) -> Units:
    """Differences of questions that count once each."""
    return Units.of(np.asarray(differences, np.float64), np.ones(len(differences)))


def test_sign_flip_exact() -> None:
    differences = np.array([0.5, 0.5, 0, 1, -0.5, 0.5, 0, 0.5])
    assert differences.mean() == pytest.approx(0.3125)
    assert sign_flip(alike(differences)) == pytest.approx(0.1875)


def test_sign_flip_drawn_is_near_the_exact_value() -> None:
    # 16 non-zero differences: one more than is enumerated. 12 up, 4 down: the exact binomial p is .076813.
    differences = np.array([1.0] * 12 + [-1.0] * 4)
    assert sign_flip(alike(differences), draws=100_000) == pytest.approx(0.076813, abs=0.004)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=8))
def test_scipy_agrees(values: list[float]) -> None:
    differences = np.array(values)
    oracle = permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    if np.any(differences):
        assert sign_flip(alike(differences)) == pytest.approx(oracle.pvalue)
    else:
        assert sign_flip(alike(differences)) == 1


@pytest.mark.parametrize(("b", "c", "p"), [(12, 4, 0.076813), (0, 6, 0.031250)])
def test_mcnemar(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c) == pytest.approx(p, abs=1e-6)
    assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c).pvalue)


def test_no_discordant_pair_has_no_p() -> None:
    assert mcnemar(0, 0) is None
    assert sign_flip(alike([])) is None


@pytest.mark.parametrize(
    ("sd", "n", "smallest"),
    [(0.15, 50, 0.059), (0.25, 180, 0.052), (0.30, 180, 0.063), (0.35, 1000, 0.031)],
)
def test_what_can_be_detected(sd: float, n: int, smallest: float) -> None:
    assert detectable(sd, n) == pytest.approx(smallest, abs=6e-4)


def test_questions_needed() -> None:
    # METHODS 9: (1.96 sd/.03)^2 = 266.8 and (2.80 sd/.03)^2 = 545.1 for sd .25
    assert questions_for_width(0.25, 0.03) == pytest.approx(267, abs=1)
    assert questions_to_detect(0.25, 0.03) == pytest.approx(546, abs=1)
    assert half_width(0.35, 180) == pytest.approx(0.0511, abs=1e-4)


def test_bootstrap_is_seeded_and_like_resampling_questions() -> None:
    values = np.array([0.0, 0.5, 1.0, 1.0, -0.5, 0.0, 0.5, 0.25])
    found = bootstrap_ratio(alike(values), seed=4)
    assert found == bootstrap_ratio(alike(values), seed=4)
    assert found is not None
    picks = np.random.default_rng(1).integers(0, 8, size=(20_000, 8))
    plain = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    assert found == pytest.approx(tuple(plain), abs=0.02)
    assert bootstrap_ratio(alike([1.0])) is None


@pytest.mark.parametrize(("value", "low", "high"), [(0.0, -0.168433, 0.168433), (1.0, 1 - 2 * 0.168433, 1.0),
                                                    (-0.5, -0.5 - 0.168433 / 2, -0.5 + 1.5 * 0.168433)])
def test_twenty_equal_differences_are_no_certainty(value: float, low: float, high: float) -> None:
    # Up to .168433 of all may differ from 20 alike (Clopper-Pearson of 0 of 20), by as much as the range allows.
    assert paired_ends(alike([value] * 20)) == pytest.approx((low, high), abs=1e-6)
    unlike = alike([value] * 19 + [0.25])
    assert paired_ends(unlike) == bootstrap_ratio(unlike)
    assert paired_ends(alike([value])) is None
