"""Estimators of recall: hand-derived cases, exactness over all samples, and bias by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from goldset.stats.recall import (
    Finds,
    completeness,
    macro_ht,
    macro_naive,
    micro_ht,
    micro_naive,
    unseen_variance,
)


def _finds(*rows: tuple[int, float, float]) -> Finds:
    question, weight, x = zip(*rows, strict=True)
    return Finds(np.array(question), np.array(weight), np.array(x))


def test_one_find() -> None:
    delivered, gold = np.array([1.0, 1, 2]), np.array([2.0, 1, 2])
    finds = _finds((1, 4.0, 0.0))
    assert macro_naive(delivered, gold).value == pytest.approx(5 / 6)
    # question 2: 1 + 4 (0 - 1)/2 = -1; (1/2 - 1 + 1) / 3 = 1/6
    assert macro_ht(delivered, gold, finds).value == pytest.approx(1 / 6)
    assert micro_naive(delivered, gold).value == pytest.approx(4 / 5)
    assert micro_ht(delivered, gold, finds).value == pytest.approx(4 / 9)


def test_a_find_in_a_question_without_gold() -> None:
    delivered, gold = np.array([1.0, 1, 0, 3]), np.array([2.0, 1, 0, 3])
    finds = _finds((2, 10.0, 0.0), (3, 10.0, 0.0))
    parts = macro_ht(delivered, gold, finds)
    assert float(parts.num.sum()) == pytest.approx(0.0)
    assert float(parts.den.sum()) == pytest.approx(13.0)
    assert parts.value == pytest.approx(0.0)
    assert float(parts.den.sum()) / 4 == pytest.approx(13 / 4)
    assert micro_ht(delivered, gold, finds).value == pytest.approx(5 / 26)


def test_without_finds_all_reduces_to_the_plain_estimates() -> None:
    delivered, gold = np.array([1.0, 0, 2]), np.array([2.0, 0, 2])
    assert macro_ht(delivered, gold, Finds.none()).value == macro_naive(delivered, gold).value
    assert micro_ht(delivered, gold, Finds.none()).value == micro_naive(delivered, gold).value
    assert completeness(gold, Finds.none()) == 1
    assert completeness(np.zeros(3), Finds.none()) is None


def test_linearised_is_exact_over_all_samples_with_one_missed_passage() -> None:
    # q1: A/G = 1/2 and a missed passage that is delivered: truth 2/3. q2: G = 0, one missed, not delivered: truth 0.
    # q3: 1 of 1. Each rejection is drawn or not with probability 1/2 (weight 2). Sums over all 4 samples: 1.667 and 3.
    delivered, gold = np.array([1.0, 0, 1]), np.array([2.0, 0, 1])
    num = den = 0.0
    for first, second in itertools.product([False, True], repeat=2):
        rows = [(0, 2.0, 1.0)] * first + [(1, 2.0, 0.0)] * second
        parts = macro_ht(delivered, gold, _finds(*rows) if rows else Finds.none())
        num += float(parts.num.sum()) / 4
        den += float(parts.den.sum()) / 4
    assert num == pytest.approx(2 / 3 + 0 + 1)
    assert den == pytest.approx(3.0)


def test_unseen_variance() -> None:
    delivered, gold = np.array([1.0, 0.0]), np.array([2.0, 0.0])
    den = np.array([1.0, 0.0])
    # macro: q1 (1/4 + 1/4) / (2 x 9) = 1/36, q2 theta(1 - theta) = 1/4; mean 5/36; .75 x 10^2 x 5/36 / 1
    full = np.array([False, False])
    value = unseen_variance(delivered, gold, den, theta=0.5, rejections=100, sampled=10, read_in_full=full, micro=False)
    assert value == pytest.approx(75 * 5 / 36)
    full = np.array([False, True])
    value = unseen_variance(delivered, gold, den, theta=0.5, rejections=100, sampled=10, read_in_full=full, micro=False)
    assert value == pytest.approx(75 / 72)
    none = unseen_variance(delivered, gold, den, theta=0.5, rejections=0, sampled=0, read_in_full=full, micro=True)
    assert none == 0


def test_missed_passages_flatter_the_naive_number_and_not_the_corrected_one() -> None:
    # 400 questions with 2 relevant passages; the judge misses 8 % of the delivered and 20 % of the others.
    generator = np.random.default_rng(21)
    naive: list[float] = []
    corrected: list[float] = []
    truth: list[float] = []
    for _ in range(60):
        served = generator.random((400, 2)) < 0.8
        missed = generator.random((400, 2)) < np.where(served, 0.05, 0.2)
        delivered, gold = (served & ~missed).sum(1).astype(float), (~missed).sum(1).astype(float)
        drawn = missed & (generator.random((400, 2)) < 0.25)
        owner, place = np.nonzero(drawn)
        finds = Finds(owner, np.full(len(owner), 4.0), served[owner, place].astype(float))
        naive.append(micro_naive(delivered, gold).value or 0.0)
        corrected.append(micro_ht(delivered, gold, finds).value or 0.0)
        truth.append(float(served.mean()))
    assert np.mean(naive) - np.mean(truth) > 0.02
    assert abs(np.mean(corrected) - np.mean(truth)) < 0.006
