"""Recall as a curve over k: the k at which a headline is true (STATISTICS 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
