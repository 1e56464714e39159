"""Intervals for proportions and ratios. All are 95 % two-sided unless a level or side is given.

An interval that cannot be formed (one unit, nothing observed) is None, never zero width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from goldset.stats.exact import total, total_of_products

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
Z95 = 1.959963984540054
"""Two-sided standard normal quantile for LEVEL, so that the usual interval needs no scipy (a fifth of a second)."""
_LARGE = 1000


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


def z_value(level: float = LEVEL) -> float:
    """Two-sided standard normal quantile: 1.96 for 0.95."""
    if level == LEVEL:
        return Z95
    from scipy import special

    return float(special.ndtri(0.5 + level / 2))


def t_value(df: float, level: float = LEVEL) -> float:
    """Two-sided quantile of Student's t; from 1,000 degrees of freedom by Abramowitz and Stegun (1964), 26.7.5."""
    if df >= _LARGE:
        z = z_value(level)
        terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
        return z + sum(term / df**power for power, term in enumerate(terms, 1))
    from scipy import special

    return float(special.stdtrit(df, 0.5 + level / 2))


def chi2_quantile(p: float, df: float) -> float:
    """Lower-tail quantile of chi-square."""
    from scipy import special

    return float(2 * special.gammaincinv(df / 2, p))


def wilson(p: float, n: float, *, level: float = LEVEL) -> Interval | None:
    """Wilson score interval for a share ``p`` of ``n`` units; ``n`` may be an effective, fractional number.

    Source: Wilson (1927). None without units.
    """
    if n <= 0:
        return None
    z2 = z_value(level) ** 2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(0.0 if p == 0 else max(0.0, centre - half), 1.0 if p == 1 else min(1.0, centre + half))


def clopper_pearson(x: int, n: int, *, level: float = LEVEL) -> Interval | None:
    """Exact interval for ``x`` of ``n``. Source: Clopper and Pearson (1934). None without units."""
    if n <= 0:
        return None
    tail = (1 - level) / 2
    return Interval(_lower(x, n, tail), _upper(x, n, tail))


def _lower(x: int, n: int, tail: float) -> float:
    """The share of which ``x`` or more of ``n`` have the chance ``tail``; all of n: p^n = tail."""
    if x in (0, n):
        return 0.0 if x == 0 else float(tail ** (1 / n))
    from scipy import special

    return float(special.betaincinv(x, n - x + 1, tail))


def _upper(x: int, n: int, tail: float) -> float:
    """The share of which ``x`` or fewer of ``n`` have the chance ``tail``."""
    return 1.0 - _lower(n - x, n, tail)


def clopper_upper(x: int, n: int, *, level: float = LEVEL) -> float | None:
    """Exact one-sided upper bound for ``x`` of ``n``; for 0 of n it is 1 - 0.05^(1/n)."""
    if n <= 0:
        return None
    return _upper(x, n, 1 - level)


def clopper_lower(x: int, n: int, *, level: float = LEVEL) -> float | None:
    """Exact one-sided lower bound for ``x`` of ``n``."""
    if n <= 0:
        return None
    return _lower(x, n, 1 - level)


def t_interval(mean: float, se: float, n: int, *, level: float = LEVEL) -> Interval | None:
    """Student's interval for a mean; may leave [0, 1]. None below two units."""
    if n < 2:
        return None
    half = t_value(n - 1, level) * se
    return Interval(mean - half, mean + half)


def mover(shares: Floats, weights: Floats, counts: Floats, *, level: float = LEVEL) -> Interval | None:
    """Interval for a weighted sum of independent shares, from a Wilson interval each (METHODS 1).

    Source: method of variance estimates recovery, Zou and Donner (2008). None if a stratum has no unit.
    """
    low_gap = high_gap = 0.0
    for share, weight, count in zip(shares, weights, counts, strict=True):
        part = wilson(float(share), float(count), level=level)
        if part is None:
            return None
        low_gap += (weight * (share - part.low)) ** 2
        high_gap += (weight * (part.high - share)) ** 2
    total = float(np.dot(shares, weights))
    return Interval(total - math.sqrt(low_gap), total + math.sqrt(high_gap))


@dataclass(frozen=True)
class Moments:
    """Numerators and denominators of many units: their number, sums, and sums of squares and products, all exact.

    All that a ratio's interval needs, so that units may come in any order and part by part.
    """

    units: int
    num: Fraction
    den: Fraction
    nn: Fraction
    nd: Fraction
    dd: Fraction

    @classmethod
    def of(cls, num: Floats, den: Floats) -> Moments:
        """One entry a unit."""
        if (den == 1).all():  # the mean of one number a unit, by far the most frequent case
            one, count = total(num), Fraction(len(num))
            return cls(len(num), one, count, total_of_products(num, num), one, count)
        return cls(len(num), total(num), total(den), total_of_products(num, num), total_of_products(num, den),
                   total_of_products(den, den))

    def joined(self, other: Moments) -> Moments:
        """The units of both."""
        return Moments(self.units + other.units, self.num + other.num, self.den + other.den, self.nn + other.nn,
                       self.nd + other.nd, self.dd + other.dd)

    def ratio(self, *, extra_variance: float = 0.0, level: float = LEVEL) -> Estimate:
        """What ``ratio`` says of these units."""
        if not self.units or self.den <= 0:
            return Estimate(None, None, "none", self.units, moments=self)
        raw = float(self.num / self.den)
        theta = Fraction(raw)
        square = float(self.nn - 2 * theta * self.nd + theta * theta * self.dd)
        return _estimate(raw, square, self, extra_variance, level)


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval.

    ``units`` counts the independent units (clusters) behind it, ``n_eff`` the binomial sample size that has the same
    variance. ``value`` is None where the denominator is 0. ``clipped`` says that the ratio left [0, 1].
    """

    value: float | None
    interval: Interval | None
    method: str
    units: int
    se: float | None = None
    n_eff: float | None = None
    clipped: bool = False
    moments: Moments | None = None


def ratio(num: Floats, den: Floats, *, weight: Floats | None = None, cluster: npt.NDArray[np.int64] | None = None,
          extra_variance: float = 0.0, level: float = LEVEL) -> Estimate:
    """Sum num / sum den over questions, with the linearised variance turned into a Wilson interval (METHODS 3.2).

    theta = sum num / sum den; u = num - theta den, summed within clusters; V = n/(n-1) sum u^2 / (sum den)^2;
    n_eff = theta (1 - theta) / V (z/t)^2; interval = Wilson(theta, n_eff). At theta 0 or 1, or where V is 0,
    Clopper-Pearson(round(theta n), n). A mean of recalls is the case den = 1.

    Args:
        num: numerator of each question.
        den: denominator of each question; questions with 0 in both do not count as units.
        weight: multiplicity of each question (draws); default 1.
        cluster: number of the near-duplicate cluster of each question, the unit of variance; default each its own.
        extra_variance: added to V (missed gold that the sample did not show).
        level: two-sided coverage.
    """
    scale = np.ones(len(num)) if weight is None else weight
    counted = (den != 0) | (num != 0)
    num, den = num[counted] * scale[counted], den[counted] * scale[counted]
    if cluster is not None:
        codes = np.unique(cluster[counted], return_inverse=True)[1]
        num, den = (np.bincount(codes, part).astype(np.float64) for part in (num, den))
    return Moments.of(num, den).ratio(extra_variance=extra_variance, level=level)


def _estimate(raw: float, square: float, moments: Moments, extra_variance: float, level: float) -> Estimate:
    """Ratio and sum of squared residuals of the units in ``moments`` -> value and interval."""
    units, total_den = moments.units, float(moments.den)
    value = min(1.0, max(0.0, raw))
    # Sums of fractions such as 1/3 + 2/3 may miss 1 by the last bit; the edge has its own interval.
    value = 1.0 if value > 1 - 1e-12 else 0.0 if value < 1e-12 else value
    clipped = not -1e-9 <= raw <= 1 + 1e-9
    if units < 2:
        return Estimate(value, None, "none: one unit", units, clipped=clipped, moments=moments)
    variance = units / (units - 1) * square / total_den**2 + extra_variance
    se = math.sqrt(variance)
    if value in (0.0, 1.0) or variance < 1e-18:
        exact = clopper_pearson(round(value * units), units, level=level)
        if not clipped or exact is None:
            return Estimate(value, exact, "clopper_pearson", units, se, None, clipped, moments)
        # What left [0, 1] is no count of units: the edge is as uncertain as the sum that went beyond it.
        half = t_value(units - 1, level) * se
        reach = Interval(max(0.0, min(exact.low, raw - half)), min(1.0, max(exact.high, raw + half)))
        return Estimate(value, reach, "student_t", units, se, None, clipped, moments)
    n_eff = value * (1 - value) / variance * (z_value(level) / t_value(units - 1, level)) ** 2
    return Estimate(value, wilson(value, n_eff, level=level), "wilson_n_eff", units, se, n_eff, clipped, moments)


def kish(weights: Floats) -> float:
    """Effective number of questions under unequal weights: (sum f)^2 / sum f^2 (METHODS 3.4)."""
    return float(weights.sum() ** 2 / np.dot(weights, weights))


def difference(new: Estimate, old: Estimate, *, covariance: float = 0.0) -> tuple[float, Interval] | None:
    """(standard error, interval) of ``new`` minus ``old``, two estimates that share some of their units, or none.

    se^2 = V_new + V_old - 2 covariance. The interval recovers the variances from the ends of the two (MOVER, Zou and
    Donner 2008, with their correlation), so that it has a width at the edge too. Simulated at 20 to 180 questions: it
    holds the truth in 94 % or more; value and standard error alone in as few as 19 %, where most recalls are 1.
    None where either has no interval.
    """
    if new.value is None or old.value is None or new.interval is None or old.interval is None:
        return None
    v_new, v_old = (new.se or 0.0) ** 2, (old.se or 0.0) ** 2
    r = covariance / math.sqrt(v_new * v_old) if v_new > 0 and v_old > 0 else 0.0

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(one**2 + other**2 - 2 * r * one * other, 0.0))

    d = new.value - old.value
    return math.sqrt(max(v_new + v_old - 2 * covariance, 0.0)), Interval(
        d - reach(new.value - new.interval.low, old.interval.high - old.value),
        d + reach(new.interval.high - new.value, old.value - old.interval.low))
