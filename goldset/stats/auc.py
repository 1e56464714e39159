"""Area under the curve of one group's values against another's, with DeLong's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from goldset.stats.intervals import LEVEL, Floats, Interval, z_value

_SMALL = 10


@dataclass(frozen=True)
class Auc:
    """P(value of the first group > value of the second) + half the ties.

    ``se`` and ``interval`` are None below two values a side; ``delta`` is Cliff's delta, 2 auc - 1.
    """

    value: float
    se: float | None
    interval: Interval | None
    n_first: int
    n_second: int

    @property
    def delta(self) -> float:
        """Cliff's delta."""
        return 2 * self.value - 1


def auc(first: Floats, second: Floats, *, level: float = LEVEL) -> Auc | None:
    """AUC of ``first`` over ``second``; None if a side is empty.

    Source: DeLong, DeLong and Clarke-Pearson (1988): variance of the placements of each side. Where the sides do not
    overlap that variance is 0; the inner end is then the exact bound for no miss in min(m, n) trials.
    """
    m, n = len(first), len(second)
    if m == 0 or n == 0:
        return None
    ordered_first, ordered_second = np.sort(first), np.sort(second)
    below = (np.searchsorted(ordered_second, first, "left") + np.searchsorted(ordered_second, first, "right")) / (2 * n)
    above = 1 - (np.searchsorted(ordered_first, second, "left")
                 + np.searchsorted(ordered_first, second, "right")) / (2 * m)
    value = float(below.mean())
    if m < 2 or n < 2:
        return Auc(value, None, None, m, n)
    se = math.sqrt(float(below.var(ddof=1)) / m + float(above.var(ddof=1)) / n)
    if se > 0:
        half = z_value(level) * se
        return Auc(value, se, Interval(max(0.0, value - half), min(1.0, value + half)), m, n)
    inner = ((1 - level) / 2) ** (1 / min(m, n))
    if value == 1:
        return Auc(value, se, Interval(inner, 1.0), m, n)
    if value == 0:
        return Auc(value, se, Interval(0.0, 1 - inner), m, n)
    # All values equal on both sides: nothing can be said about the order.
    return Auc(value, None, None, m, n)


def stratified_auc(first: Floats, second: Floats, *, first_band: npt.NDArray[np.int64],
                   second_band: npt.NDArray[np.int64], level: float = LEVEL) -> Auc | None:
    """Mean AUC within bands (e.g. of question length), weighted by m n / (m + n); None where no band holds both sides.

    Bands in which a side has fewer than two values are left out; ``n_first`` and ``n_second`` count what is used.
    """
    total = value = variance = 0.0
    used_first = used_second = 0
    for band in np.intersect1d(first_band, second_band):
        part = auc(first[first_band == band], second[second_band == band])
        if part is None or part.n_first < 2 or part.n_second < 2:
            continue
        weight = part.n_first * part.n_second / (part.n_first + part.n_second)
        total += weight
        value += weight * part.value
        # DeLong's variance vanishes by chance in small bands; there the variance of the null is the least it can be.
        least = math.sqrt((part.n_first + part.n_second + 1) / (12 * part.n_first * part.n_second))
        small = min(part.n_first, part.n_second) < _SMALL
        variance += (weight * max(part.se or 0.0, least if small else 0.0)) ** 2
        used_first += part.n_first
        used_second += part.n_second
    if total == 0:
        return None
    se = math.sqrt(variance) / total
    mean = value / total
    if se == 0:
        return Auc(mean, None, None, used_first, used_second)
    half = z_value(level) * se
    return Auc(mean, se, Interval(max(0.0, mean - half), min(1.0, mean + half)), used_first, used_second)
