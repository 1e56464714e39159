"""What lies outside a pool, and whether gold was cut at a rank (METHODS 4 and 5)."""

from __future__ import annotations

from scipy import special

CLIFF_RANKS = (5, 10, 15, 20, 25, 30, 50, 100)
"""Ranks at which a drop is looked for; Bonferroni is over all of them."""


def chapman(first: int, second: int, both: int) -> float:
    """Total from two lists: (n1 + 1)(n2 + 1)/(m + 1) - 1. Source: Chapman (1951). A floor where the lists agree."""
    return (first + 1) * (second + 1) / (both + 1) - 1


def boundary_lincoln_petersen(*, outside: int, near: int, near_caught: int) -> float | None:
    """Gold outside both lists, judged by how often the other list catches gold near the pool's edge.

    c = (caught + 0.5) / (near + 1); estimate = outside (1 - c) / c.

    Args:
        outside: pool gold outside this list's top-D, so found by the other list alone.
        near: gold at ranks D/2+1 to D of this list.
        near_caught: those of them in the other list's top-D.

    Returns:
        None where no gold lies near the edge: nothing to judge by.
    """
    if near == 0:
        return None
    caught = (near_caught + 0.5) / (near + 1)
    return outside * (1 - caught) / caught


def cliff_p(inside: int, beyond: int, rho: float) -> float:
    """P(Bin(b + c, rho/(1 + rho)) <= c): how odd so few beyond K are under a tail that keeps at least ``rho``."""
    if inside + beyond == 0:
        return 1.0
    return float(special.bdtr(beyond, inside + beyond, rho / (1 + rho)))
