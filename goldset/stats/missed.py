"""Gold that the judge rejected: how much there is, from a sample of the rejections (METHODS 2)."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from goldset.stats.intervals import LEVEL, Floats, Interval, chi2_quantile


def _log_choose(n: Floats, k: Floats) -> Floats:
    result: Floats = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return result


def _at_most(x: int, missed: int, n: int, total: int) -> float:
    """P(X <= x) where ``n`` of ``total`` pairs are drawn and ``missed`` of them are relevant."""
    low, high = max(0, n - (total - missed)), min(n, missed)
    if x >= high:
        return 1.0
    if x < low:
        return 0.0
    found = np.arange(low, x + 1, dtype=np.float64)
    logs = (_log_choose(np.float64(missed) + 0 * found, found)
            + _log_choose(np.float64(total - missed) + 0 * found, n - found)
            - _log_choose(np.array([float(total)]), np.array([float(n)])))
    return min(1.0, float(np.exp(logs).sum()))


def missed_interval(x: int, n: int, total: int, *, level: float = LEVEL) -> Interval:
    """Exact interval for the number of relevant pairs among ``total``, ``x`` of ``n`` drawn being relevant.

    Hypergeometric inversion: low = min{M: P(X >= x | M) > tail}, high = max{M: P(X <= x | M) > tail}.
    """
    assert 0 <= x <= n <= total, "x of n drawn from total"
    tail = (1 - level) / 2 + 1e-12  # a probability that equals the tail exactly must not pass by rounding
    least, most = x, total - (n - x)
    low, high = least, most  # both tails are monotone in M: bisect
    first, last = least, most
    while first < last:
        middle = (first + last) // 2
        if 1 - _at_most(x - 1, middle, n, total) > tail:
            last = middle
        else:
            first = middle + 1
    low = first
    first, last = least, most
    while first < last:
        middle = (first + last + 1) // 2
        if _at_most(x, middle, n, total) > tail:
            first = middle
        else:
            last = middle - 1
    high = first
    return Interval(float(low), float(high))


def false_negative_rate(missed: float, gold: int) -> float | None:
    """Share of the relevant pairs that the judge rejected; None where there is no relevant pair."""
    return missed / (gold + missed) if gold + missed > 0 else None


def fay_feuer(weights: Floats, *, largest: float, clusters: Floats | None = None, level: float = LEVEL) -> Interval:
    """Conservative closed-form interval for a weighted count of finds.

    Args:
        weights: weight of each find; empty where nothing was found.
        largest: the largest weight a find could have had.
        clusters: question of each find, where finds may cluster.
        level: two-sided coverage.

    Source: Fay and Feuer (1997), gamma method.
    """
    tail = (1 - level) / 2
    total = float(weights.sum())
    if clusters is None:
        variance = float(np.dot(weights, weights))
    else:
        sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights)
        variance = float(np.dot(sums, sums))
    low = 0.0 if total == 0 else variance / (2 * total) * chi2_quantile(tail, 2 * total**2 / variance)
    upper_total, upper_variance = total + largest, variance + largest**2
    high = upper_variance / (2 * upper_total) * chi2_quantile(1 - tail, 2 * upper_total**2 / upper_variance)
    return Interval(low, high)


def stratified_total(sizes: Floats, drawn: Floats, found: Floats) -> float | None:
    """Estimate of the missed pairs, sum over strata of size x found / drawn; None where a stratum was not read."""
    if np.any((drawn == 0) & (sizes > 0)):
        return None
    used = drawn > 0
    return float(np.sum(sizes[used] * found[used] / drawn[used]))


def split_prior(sizes: Floats, drawn: Floats, found: Floats, *, seed: int = 0, draws: int = 20_000,
                level: float = LEVEL) -> Interval | None:
    """Interval for the missed pairs of a stratified sample, by seeded Monte Carlo (METHODS 2.3).

    sum over strata of size x Beta(found + c, drawn - found + c), c = 0.5 drawn / all drawn: one Jeffreys half-event
    split over the strata. None where nothing was drawn.
    """
    used = (drawn > 0) & (sizes > 0)
    if not used.any():
        return None
    sizes, drawn, found = sizes[used], drawn[used], found[used]
    # A stratum that was read whole is known, not estimated: its finds enter without a draw.
    whole = drawn >= sizes
    prior = 0.5 * drawn / drawn.sum()
    shares = np.random.default_rng(seed).beta(found + prior, drawn - found + prior, size=(draws, len(sizes)))
    totals = np.where(whole, found, shares * sizes).sum(axis=1)
    low, high = np.quantile(totals, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def sample_to_exclude(total: int, most: int, *, level: float = LEVEL) -> int:
    """Rejections to read so that, if none is relevant, at most ``most`` can be missed (METHODS 2.2)."""
    tail = (1 - level) / 2
    needed: int = math.ceil(total * (1 - float(tail ** (1 / (most + 1)))))
    return min(total, needed)


def most_missed(gold: int, target: float) -> int:
    """Largest number of missed pairs under which the judge's miss rate stays at or below ``target``."""
    return math.floor(target * gold / (1 - target) + 1e-9)
