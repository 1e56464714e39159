"""Estimators of recall from confirmed gold and from gold found in a sample of the rejections (METHODS 3.1, 3.2).

G: confirmed gold of each question; A: those of them that were delivered. A find is a relevant pair from the sample of
rejections: number of its question, weight 1 / inclusion probability, and x = 1 where it was delivered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from goldset.stats.intervals import Estimate, Floats, Interval

UNRELIABLE_BELOW = 0.8
"""Completeness below which the linearised macro estimate over-corrects."""

TRAFFIC_LEAST = 30.0
"""Kish's effective number of questions below which a sample of distinct questions says nothing of the traffic."""


@dataclass(frozen=True)
class Finds:
    """Relevant pairs from the sampled rejections, one entry a pair."""

    question: npt.NDArray[np.int64]
    weight: Floats
    x: Floats

    @classmethod
    def none(cls) -> Finds:
        """Nothing was found, or nothing was sampled."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def __add__(self, other: Finds) -> Finds:
        """Both together."""
        return Finds(np.r_[self.question, other.question], np.r_[self.weight, other.weight], np.r_[self.x, other.x])


@dataclass(frozen=True)
class Parts:
    """Numerator and denominator of each question; the estimate is sum num / sum den."""

    num: Floats
    den: Floats

    @property
    def value(self) -> float | None:
        """The estimate, not clipped; None where the denominator is 0."""
        total = float(self.den.sum())
        return float(self.num.sum()) / total if total > 0 else None


def _share(delivered: Floats, gold: Floats) -> Floats:
    result: Floats = np.divide(delivered, gold, out=np.zeros(len(gold)), where=gold > 0)
    return result


def macro_naive(delivered: Floats, gold: Floats) -> Parts:
    """Mean of A/G over questions with confirmed gold; biased up where gold was missed."""
    return Parts(_share(delivered, gold), (gold > 0).astype(np.float64))


def micro_naive(delivered: Floats, gold: Floats) -> Parts:
    """Sum A / sum G."""
    return Parts(delivered.astype(np.float64), gold.astype(np.float64))


def micro_ht(delivered: Floats, gold: Floats, finds: Finds) -> Parts:
    """(sum A + sum w x) / (sum G + sum w): consistent at any completeness."""
    count = len(gold)
    return Parts(delivered + np.bincount(finds.question, finds.weight * finds.x, count),
                 gold + np.bincount(finds.question, finds.weight, count))


def macro_ht(delivered: Floats, gold: Floats, finds: Finds) -> Parts:
    """Linearised Horvitz-Thompson mean of recalls.

    num = 1[G>0] A/G + sum w d, d = (x - A/G)/(G+1) where G > 0, else x; den = 1[G>0] + sum w of finds where G = 0.
    Exact in expectation where a question misses at most one passage; over-corrects below ``UNRELIABLE_BELOW``.
    """
    count = len(gold)
    share = _share(delivered, gold)
    owner = finds.question
    has_gold = gold[owner] > 0
    step = np.where(has_gold, (finds.x - share[owner]) / (gold[owner] + 1), finds.x)
    return Parts(share + np.bincount(owner, finds.weight * step, count),
                 (gold > 0).astype(np.float64) + np.bincount(owner, finds.weight * ~has_gold, count))


def completeness(gold: Floats, finds: Finds) -> float | None:
    """Confirmed gold over estimated gold; None where there is neither."""
    total = float(gold.sum() + finds.weight.sum())
    return float(gold.sum()) / total if total > 0 else None


def unseen_variance(delivered: Floats, gold: Floats, den: Floats, *, theta: float, rejections: int, sampled: int,
                    read_in_full: npt.NDArray[np.bool_], micro: bool) -> float:
    """Variance of missed gold that the sample did not show: 0.75 (N/n_s)^2 mean(e) / (sum den)^2 (METHODS 3.2).

    Macro: e = ((1-r)^2 + r^2) / (2 (G+1)^2) where G > 0, theta (1 - theta) otherwise. Micro: one more passage moves
    the numerator by x and the denominator by 1, so e = theta (1 - theta). Questions read in full: 0.
    """
    if sampled == 0 or not len(gold):
        return 0.0
    share = _share(delivered, gold)
    flat = np.full(len(gold), theta * (1 - theta))
    each = flat if micro else np.where(gold > 0, ((1 - share) ** 2 + share**2) / (2 * (gold + 1) ** 2), flat)
    each = np.where(read_in_full, 0.0, each)
    return 0.75 * (rejections / sampled) ** 2 * float(each.mean()) / float(den.sum()) ** 2


def unseen_below_variance(draws: Floats, den: Floats, *, theta: float, read: Floats, found: Floats,
                          weight: Floats) -> float:
    """Variance of gold outside the pool that the deep probe did not show, in its strata without a find.

    One Jeffreys half-event is split over the strata by what people read, c = 0.5 read / all read (METHODS 2.3);
    unseen gold of a stratum is weight x Gamma(c), with second moment c (1 + c) weight^2 (0.75 weight^2 for one stratum,
    as in 3.2). It moves the denominator only, by its question's draws: e = (theta draws)^2, V = moment mean(e) /
    (sum den)^2.

    Args:
        draws: of each labelled question.
        den: denominator of each, draws in it.
        theta: the estimate.
        read: pairs that people read, a stratum each.
        found: of them, relevant.
        weight: what a pair that was read stands for.
    """
    if not len(draws) or not read.sum():
        return 0.0
    share = 0.5 * read / read.sum()
    moment = float(np.sum(np.where(found > 0, 0.0, share * (1 + share) * weight**2)))
    return moment * float(np.mean((theta * draws) ** 2)) / float(den.sum()) ** 2


def one_sided(estimate: Estimate, lower: Estimate) -> Estimate:
    """An estimate with the lower end of another: for a part of the variance that can only lower it."""
    if estimate.interval is None or lower.interval is None:
        return estimate
    return replace(estimate, interval=Interval(lower.interval.low, estimate.interval.high))
