"""The panel: a simple random sample by permanent random numbers, of which a share rotates.

Permanent numbers make samples nest and rebuilds overlap; the rotating share is drawn from what is left by numbers
that are salted with the end of the window, so that the panel renews itself. Both steps are simple random, so every
unit is in the panel with the same chance n/N.
"""

from __future__ import annotations

from collections.abc import Sequence

from goldset.text import unit_hash


def panel_number(seed: int, kind: str, *names: str | int | None) -> float:
    """The random number in [0, 1) of an event or question: a function of the seed and its own names only."""
    return unit_hash(seed, "questions", kind, *names)


def draw(units: Sequence[tuple[float, float]], *, size: int, rotate: float) -> list[int]:
    """``(permanent number, rotating number)`` a unit -> positions of the panel, ascending.

    n = min(size, N) in all; ``round(rotate * n)`` of them by the rotating number among those that the permanent
    number did not take.
    """
    n = min(size, len(units))
    rotating = round(rotate * n)
    by_permanent = sorted(range(len(units)), key=lambda i: units[i])
    fixed, rest = by_permanent[: n - rotating], by_permanent[n - rotating :]
    rest.sort(key=lambda i: (units[i][1], units[i][0]))
    return sorted([*fixed, *rest[:rotating]])
