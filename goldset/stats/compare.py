"""Paired comparisons: sign flips, bootstrap, McNemar, and what a sample can detect (METHODS 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goldset.stats.intervals import LEVEL, Z95, Floats, Interval, clopper_pearson, z_value

EXACT_UP_TO = 15
DETECT = Z95 + 0.8416212335729143  # normal quantiles of 0.975 and 0.8
"""2.80: standard errors that a difference must have to be seen in 80 % of samples."""


@dataclass(frozen=True)
class Units:
    """Numerators and denominators of independent units, each distinct pair once, ascending, and how many units have it.

    The order of the units is forgotten, so that they may come part by part; ``joined`` adds the units of another part.
    """

    num: Floats
    den: Floats
    times: npt.NDArray[np.int64]

    @classmethod
    def of(cls, num: Floats, den: Floats, times: npt.NDArray[np.int64] | None = None) -> Units:
        """One entry a unit, or ``times`` units an entry."""
        order = np.lexsort((den, num))
        num, den = num[order], den[order]
        each = np.ones(len(num), np.int64) if times is None else times[order]
        if not len(num):
            return cls(num, den, each)
        first = np.flatnonzero(np.r_[True, (num[1:] != num[:-1]) | (den[1:] != den[:-1])])
        return cls(num[first], den[first], np.add.reduceat(each, first))

    def joined(self, other: Units) -> Units:
        """The units of both."""
        return Units.of(np.r_[self.num, other.num], np.r_[self.den, other.den], np.r_[self.times, other.times])

    def without(self, some: Units) -> Units:
        """These units, some of them left out."""
        left = Units.of(np.r_[self.num, some.num], np.r_[self.den, some.den], np.r_[self.times, -some.times])
        kept = left.times > 0
        return Units(left.num[kept], left.den[kept], left.times[kept])

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.times.sum())

    @property
    def ratio(self) -> float | None:
        """Sum of numerators over sum of denominators; None where the latter is 0."""
        whole = float(self.den @ self.times)
        return float(self.num @ self.times) / whole if whole else None

    def deviation(self, ratio: float) -> float | None:
        """Standard deviation over units of num - ratio x den, in mean denominators; None below two units.

        With one draw a unit, that of the differences themselves.
        """
        count = self.count
        if count < 2:
            return None
        rest = (self.num - ratio * self.den) / (float(self.den @ self.times) / count)
        rest = rest - float(rest @ self.times) / count
        return math.sqrt(float(rest**2 @ self.times) / (count - 1))

    @property
    def moved(self) -> int:
        """Number of units whose numerator is not 0."""
        return int(self.times[self.num != 0].sum())


def sign_flip(units: Units, *, seed: int = 0, draws: int = 10_000) -> float | None:
    """Two-sided permutation p of a mean paired difference; all 2^m patterns for m <= 15 non-zero, else seeded draws.

    None without a pair. Zero differences do not change the sum and are left out.
    """
    if not len(units.num):
        return None
    if not units.moved:
        return 1.0
    observed = abs(float(units.num @ units.times)) - 1e-9
    # Equal sizes flip alike: a binomial a distinct size replaces a coin a question.
    values, codes = np.unique(np.abs(units.num), return_inverse=True)
    counts = np.bincount(codes, units.times).astype(np.int64)
    values, counts = values[values > 0], counts[values > 0]
    if units.moved <= EXACT_UP_TO:
        size = np.repeat(values, counts)
        patterns = (np.arange(2 ** len(size))[:, None] >> np.arange(len(size))) & 1
        return float((np.abs((2 * patterns - 1) @ size) >= observed).mean())
    plus = np.random.default_rng(seed).binomial(counts, 0.5, size=(draws, len(counts)))
    extreme = int((np.abs((2 * plus - counts) @ values) >= observed).sum())
    return (extreme + 1) / (draws + 1)


def sign_flip_method(units: Units) -> str:
    """How ``sign_flip`` comes to its p."""
    return "sign flips, exact" if units.moved <= EXACT_UP_TO else "sign flips, 10000 draws"


def group_difference(inside: Units, outside: Units, *, seed: int = 0, draws: int = 10_000) -> float | None:
    """Two-sided permutation p of (sum num / sum den) inside against outside; units change groups at random.

    None where a group has no unit. Equal units are drawn together, which is the same distribution.
    """
    there, elsewhere = inside.ratio, outside.ratio
    if there is None or elsewhere is None:
        return None
    units = inside.joined(outside)
    pairs = np.column_stack([units.num, units.den])
    total = units.times @ pairs
    chosen = np.random.default_rng(seed).multivariate_hypergeometric(units.times, inside.count, size=draws,
                                                                     method="marginals") @ pairs
    rest = total - chosen
    kept = (chosen[:, 1] > 0) & (rest[:, 1] > 0)
    moved = chosen[kept, 0] / chosen[kept, 1] - rest[kept, 0] / rest[kept, 1]
    observed = abs(there - elsewhere) - 1e-9
    return (int((np.abs(moved) >= observed).sum()) + 1) / (int(kept.sum()) + 1)


def panel_difference(old: tuple[Floats, Floats], new: tuple[Floats, Floats], *, seed: int = 0,
                     draws: int = 10_000) -> float | None:
    """Two-sided permutation p of sum num / sum den, new against old, over units that are in one of them or in both.

    A unit in both changes sides with itself, as in ``sign_flip``; the units in one only are dealt again, as in
    ``group_difference``. ``old`` and ``new`` are (numerators, denominators) over the same units, 0 where a unit is not
    in. None where a side is empty.
    """
    (num_a, den_a), (num_b, den_b) = old, new
    if not den_a.sum() or not den_b.sum():
        return None
    in_both = (den_a > 0) & (den_b > 0)
    singles = (den_a > 0) ^ (den_b > 0)
    swap = np.column_stack([num_b - num_a, den_b - den_a])[in_both]
    kept = np.array([num_a[in_both].sum(), den_a[in_both].sum()])
    alone = np.column_stack([num_a + num_b, den_a + den_b])[singles]
    count = int((den_b[singles] > 0).sum())
    total = np.array([(num_a + num_b).sum(), (den_a + den_b).sum()])
    observed = abs(num_b.sum() / den_b.sum() - num_a.sum() / den_a.sum()) - 1e-9
    generator = np.random.default_rng(seed)
    extreme = used = 0
    step = max(1, min(draws, 5_000_000 // max(len(den_a), 1)))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        flips = generator.random((size, len(swap))) < 0.5
        side = kept + flips @ swap
        if len(alone):
            dealt = generator.permuted(np.tile(np.arange(len(alone)) < count, (size, 1)), axis=1)
            side = side + dealt @ alone
        rest = total - side
        whole = (side[:, 1] > 0) & (rest[:, 1] > 0)
        moved = np.abs(side[whole, 0] / side[whole, 1] - rest[whole, 0] / rest[whole, 1])
        extreme, used = extreme + int((moved >= observed).sum()), used + int(whole.sum())
    return (extreme + 1) / (used + 1)


def holm(values: Sequence[float]) -> list[float]:
    """P values of one family -> adjusted p values, in the same order. Source: Holm (1979)."""
    adjusted = [0.0] * len(values)
    worst = 0.0
    for place, number in enumerate(sorted(range(len(values)), key=lambda number: values[number])):
        worst = max(worst, min(1.0, (len(values) - place) * values[number]))
        adjusted[number] = worst
    return adjusted


def bootstrap_ratio(units: Units, *, seed: int = 0, draws: int = 10_000, level: float = LEVEL) -> Interval | None:
    """Percentile bootstrap of sum num / sum den over units (questions or clusters); None below two units.

    Equal units are drawn together by one multinomial, which is the same distribution as drawing units one by one.
    """
    if units.count < 2 or units.den @ units.times <= 0:
        return None
    pairs = np.column_stack([units.num, units.den])
    generator = np.random.default_rng(seed)
    total = units.count
    ratios = []
    for part in range(0, draws, 1000):
        times = generator.multinomial(total, units.times / total, size=min(1000, draws - part))
        sums = times @ pairs
        kept = sums[:, 1] > 0
        ratios.append(sums[kept, 0] / sums[kept, 1])
    low, high = np.quantile(np.concatenate(ratios), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def paired_ends(units: Units, *, seed: int = 0) -> Interval | None:
    """95 % interval of a mean of differences in [-1, 1]: the bootstrap, and where no unit differs from another, more.

    Then every resample is the same, yet others could differ: of ``n`` alike, a share of up to 1 - .025^(1/n) is not
    (Clopper-Pearson of 0 of n), and may lie anywhere in [-1, 1].
    """
    found = bootstrap_ratio(units, seed=seed)
    if found is None or found.high - found.low > 1e-12:
        return found
    value, other = found.low, clopper_pearson(0, units.count)
    assert other is not None, "there are units"
    return Interval(value - other.high * (1 + value), value + other.high * (1 - value))


def mcnemar(b: int, c: int) -> float | None:
    """Exact two-sided McNemar p of ``b`` against ``c`` discordant pairs; None where none is discordant."""
    if b + c == 0:
        return None
    from scipy import special

    return min(1.0, 2 * float(special.bdtr(min(b, c), b + c, 0.5)))


def detectable(sd: float, n: int) -> float:
    """Smallest mean paired difference seen with 80 % power: 2.80 sd / sqrt(n)."""
    return DETECT * sd / math.sqrt(n)


def half_width(sd: float, n: int) -> float:
    """Half-width of the 95 % interval of a mean of ``n``: 1.96 sd / sqrt(n)."""
    return z_value() * sd / math.sqrt(n)


def questions_to_detect(sd: float, difference: float) -> int:
    """Questions needed to see a mean paired difference with 80 % power."""
    return math.ceil((DETECT * sd / difference) ** 2 - 1e-9)


def questions_for_width(sd: float, half: float) -> int:
    """Questions needed for a 95 % interval of this half-width."""
    return math.ceil((z_value() * sd / half) ** 2 - 1e-9)
