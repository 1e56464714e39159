"""What lies outside a pool, and whether gold was cut at a rank (STATISTICS 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special

CLIFF_RANKS = (5, 10, 15, 20, 25, 30, 50, 100)


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


@dataclass(frozen=True)
class Cliff:
    """The sharpest drop of gold along one system's ranks; ``p`` is corrected for the ranks that were tried."""

    rank: int
    inside: int
    beyond: int
    p: float


def cliff(ranks: list[set[int]], *, rho: float, at: tuple[int, ...] = CLIFF_RANKS) -> Cliff | None:
    """Gold ranks of each question (build-time list, deep enough to see 2K) -> the sharpest drop, or None without gold.

    For K in ``at``: b = questions with gold at a rank in (K/2, K], c = in (K, 2K]; Bonferroni over ``at``.
    """
    best: Cliff | None = None
    for rank in at:
        inside = sum(any(rank / 2 < r <= rank for r in each) for each in ranks)
        beyond = sum(any(rank < r <= 2 * rank for r in each) for each in ranks)
        if inside + beyond == 0:
            continue
        found = Cliff(rank, inside, beyond, min(1.0, len(at) * cliff_p(inside, beyond, rho)))
        if best is None or found.p < best.p:
            best = found
    return best
