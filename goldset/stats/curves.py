"""Recall as a curve over k: the k at which a headline is true (METHODS 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goldset.stats.intervals import Floats


@dataclass(frozen=True)
class KStar:
    """Smallest k whose recall reaches the headline; ``k`` is None where even the deepest falls short."""

    k: int | None
    deepest: int

    def __str__(self) -> str:
        return f"> {self.deepest}" if self.k is None else str(self.k)


def k_star(curve: Mapping[int, float], headline: float) -> KStar:
    """K -> recall, headline -> the k at which the headline is true."""
    deepest = max(curve)
    # The last bit of a mean must not push the answer to the next k.
    reached = [k for k in sorted(curve) if curve[k] >= headline - 1e-12]
    return KStar(reached[0] if reached else None, deepest)


def k_star_ends(num: Floats, den: Floats, headline: float, *, seed: int = 0, draws: int = 1000) -> tuple[KStar, KStar]:
    """95 % ends of k* from the bootstrapped curve (METHODS 7): units are drawn, the curve is made again each time.

    Args:
        num: units by k (k = 1, 2, …): numerator of recall at each k.
        den: denominator of each unit.
        headline: the recall to reach.
        seed: of the draws.
        draws: resamples.
    """
    units, deepest = num.shape
    times = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), draws)
    curves = (times @ num) / np.maximum(times @ den, 1e-300)[:, None]
    reached = curves >= headline - 1e-12
    places = np.sort(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, deepest + 1))
    low, high = (int(places[at]) for at in (round(0.025 * draws), round(0.975 * draws) - 1))
    return KStar(None if low > deepest else low, deepest), KStar(None if high > deepest else high, deepest)
