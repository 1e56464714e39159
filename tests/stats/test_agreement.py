"""Agreement: values of METHODS 13 and other libraries as a second opinion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from goldset.stats.agreement import (
    Counts,
    agreement,
    alpha,
    kappa_se,
    pass_rate_mover,
    pass_rate_se,
    predictive_rate,
    rogan_gladen,
    sample_intervals,
    weighted,
    weighted_intervals,
)

CHAPTER = Counts(17, 1, 9, 13)


def test_in_the_sample() -> None:
    found = agreement(*CHAPTER)
    assert found.agreement == pytest.approx(0.75)
    assert found.p_e == pytest.approx(0.485)
    assert found.kappa == pytest.approx(0.514563, abs=1e-6)
    assert found.sensitivity == pytest.approx(0.653846, abs=1e-6)
    assert found.specificity == pytest.approx(0.928571, abs=1e-6)
    assert found.false_alarm == pytest.approx(0.346154, abs=1e-6)
    assert found.miss == pytest.approx(0.071429, abs=1e-6)
    assert found.ac1 == pytest.approx(0.504950, abs=1e-6)
    assert kappa_se(CHAPTER) == pytest.approx(0.122753, abs=1e-6)
    assert alpha(CHAPTER) == pytest.approx(0.501263, abs=1e-6)


def test_weighted_back() -> None:
    found = weighted(CHAPTER, 0.55)
    assert found is not None
    # shares: .55 x 17/18, .55 x 1/18, .45 x 9/22, .45 x 13/22
    shares = [0.55 * 17 / 18, 0.55 / 18, 0.45 * 9 / 22, 0.45 * 13 / 22]
    assert shares == pytest.approx([0.519444, 0.030556, 0.184091, 0.265909], abs=1e-6)
    assert found.pass_rate == pytest.approx(0.703535, abs=1e-6)
    assert found.agreement == pytest.approx(0.785354, abs=1e-6)
    assert found.p_e == pytest.approx(0.520354, abs=1e-6)
    assert found.kappa == pytest.approx(0.552490, abs=1e-6)
    assert found.sensitivity == pytest.approx(0.738335, abs=1e-6)
    assert found.specificity == pytest.approx(0.896934, abs=1e-6)
    assert found.bias == pytest.approx(-0.153535, abs=1e-6)


def test_standard_error_and_closed_interval_of_the_pass_rate() -> None:
    assert pass_rate_se(CHAPTER, 0.55) == pytest.approx(0.055739, abs=1e-6)
    assert pass_rate_se(CHAPTER, 0.55, 400) == pytest.approx(0.057308, abs=1e-6)
    assert pass_rate_se(CHAPTER, 0.55, 200) == pytest.approx(0.058835, abs=1e-6)
    assert pass_rate_mover(CHAPTER, 0.55) == pytest.approx((0.566948, 0.798521), abs=1e-6)


def test_monte_carlo_intervals() -> None:
    found = weighted_intervals(CHAPTER, 0.55, draws=100_000)
    assert found["pass_rate"] == pytest.approx((0.577, 0.798), abs=0.004)
    assert found["kappa"] == pytest.approx((0.275, 0.735), abs=0.004)
    assert found["bias"] == pytest.approx((-0.248, -0.027), abs=0.004)
    sampled = weighted_intervals(CHAPTER, 0.55, judged=400, draws=100_000)
    assert sampled["pass_rate"] == pytest.approx((0.574, 0.800), abs=0.004)
    assert weighted_intervals(CHAPTER, 0.55) == weighted_intervals(CHAPTER, 0.55)


def test_rogan_gladen() -> None:
    back = weighted(CHAPTER, 0.55)
    assert back is not None
    assert back.sensitivity is not None
    assert back.specificity is not None
    found = rogan_gladen(0.55, back.sensitivity, back.specificity)
    assert found is not None
    assert found[0] == pytest.approx(0.703535, abs=1e-6)
    assert not found[1]
    unweighted = rogan_gladen(0.55, 17 / 26, 13 / 14)
    assert unweighted is not None
    assert unweighted[0] == pytest.approx(0.821698, abs=1e-6)
    assert rogan_gladen(0.5, 0.6, 0.6) is None  # 0.6 + 0.6 - 1 < 0.3
    assert rogan_gladen(0.99, 0.7, 0.9) == (1.0, True)


def test_a_shift_of_prevalence() -> None:
    back = weighted(CHAPTER, 0.55)
    assert back is not None
    assert back.sensitivity is not None
    assert back.specificity is not None
    share = 0.85 * back.sensitivity + 0.15 * (1 - back.specificity)
    assert share == pytest.approx(0.643044, abs=1e-6)
    assert predictive_rate(share, 17 / 18, 9 / 22) == pytest.approx(0.753, abs=5e-4)
    shifted = rogan_gladen(share, back.sensitivity, back.specificity)
    assert shifted is not None
    assert shifted[0] == pytest.approx(0.850)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [((18, 0, 10, 12), 0.519231), ((23, 1, 3, 13), 0.787234), ((23, 1, 0, 13), 0.941732), ((88, 12, 0, 0), 0.0)],
)
def test_kappa(counts: tuple[int, int, int, int], kappa: float) -> None:
    assert agreement(*counts).kappa == pytest.approx(kappa, abs=1e-6)


def test_no_judge_fail_leaves_its_rates_unknown() -> None:
    found = agreement(88, 12, 0, 0)
    assert (found.agreement, found.miss, found.npv, found.for_rate) == (0.88, 1.0, None, None)
    assert weighted(Counts(88, 12, 0, 0), 0.9) is None
    assert weighted(Counts(88, 12, 0, 0), 1.0) is not None
    assert weighted_intervals(Counts(88, 12, 0, 0), 0.9) == {}


def test_one_class_has_no_kappa() -> None:
    found = agreement(5, 0, 0, 0)
    assert found.agreement == 1
    assert found.kappa is None
    assert found.ac1 == 1
    assert alpha(Counts(5, 0, 0, 0)) is None
    assert agreement(0, 0, 0, 0).agreement is None


def test_two_raters() -> None:
    found = agreement(24, 1, 2, 13)
    assert found.kappa == pytest.approx(0.837838, abs=1e-6)
    assert found.ac1 == pytest.approx(0.860546, abs=1e-6)
    assert alpha(Counts(24, 1, 2, 13)) == pytest.approx(0.839757, abs=1e-6)
    assert found.positive_agreement == pytest.approx(48 / 51)


@given(st.tuples(*[st.integers(1, 40)] * 4))
def test_other_libraries_agree(cells: tuple[int, int, int, int]) -> None:
    counts = Counts(*cells)
    first = np.repeat([1, 1, 0, 0], cells)
    second = np.repeat([1, 0, 1, 0], cells)
    assert agreement(*counts).kappa == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)
    oracle = cohens_kappa(np.array([[cells[0], cells[1]], [cells[2], cells[3]]]))
    assert kappa_se(counts) == pytest.approx(oracle.std_kappa, abs=1e-9)


def test_coverage_of_kappa_in_the_sample() -> None:
    # METHODS 10: the nominal .95 within .02; Monte Carlo error .01 (one SD) at 400 runs.
    cells = np.array([0.08, 0.02, 0.03, 0.87])
    truth = agreement(*cells).kappa
    assert truth is not None
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        low, high = sample_intervals(Counts(*generator.multinomial(100, cells)), draws=2000)["kappa"]
        hits += low <= truth <= high
    assert 0.92 <= hits / 400 <= 0.98
