"""Distributions behind the checks, for bar charts: where the gold lies, what questions share with it, how many gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldset.audit.context import Context
from goldset.audit.leakage import overlaps_of

_OCTAVES = (1, 2, 5, 10, 20, 50, 100, 200)
_KS = (1, 3, 5, 10, 20, 50, 100)
_SYSTEMS = 3


@dataclass(frozen=True)
class Bars:
    """A bar chart: a title, what the height is, and a label and height a bar."""

    title: str
    axis: str
    labels: tuple[str, ...]
    values: tuple[float, ...]


def figures(context: Context) -> dict[str, list[Bars]]:
    """Context -> check -> bar charts; checks without any are left out."""
    if not len(context.gold):
        return {}
    found = {"circularity": [_ranks(context, system) for system in list(context.runs)[:_SYSTEMS]],
             "leakage": _coverage(context),
             "k_mismatch": [_curve(context, system) for system in [name for name in context.given
                                                                   if context.depth(name)][:_SYSTEMS]],
             "completeness": [_counts(context)]}
    return {name: bars for name, bars in found.items() if bars}


def _ranks(context: Context, system: str) -> Bars:
    """Gold by rank: an honest set thins out, one taken from the system's results stops."""
    ranks = context.delivered(system)["lenient"].to_numpy()
    depth = context.depth(system)
    ends = [end for end in _OCTAVES if end < depth] + [depth]
    labels, values, start = [], [], 0
    for end in ends:
        labels.append(str(end) if end == start + 1 else f"{start + 1}–{end}")
        values.append(float(((ranks > start) & (ranks <= end)).sum()))
        start = end
    return Bars(f"Gold by its rank in {system}", "gold passages", (*labels, "not in list"),
                (*values, float(np.isinf(ranks).sum())))


def _coverage(context: Context) -> list[Bars]:
    if context.index is None or not context.queries:
        return []
    shares = [row.idfcov for row in overlaps_of(context).values() if row.idfcov is not None]
    if not shares:
        return []
    counts, _ = np.histogram(shares, bins=10, range=(0, 1))
    return [Bars("Questions by the share of their rare wording that the gold holds", "questions",
                 tuple(f"{10 * i}–{10 * i + 10} %" for i in range(10)), tuple(map(float, counts)))]


def _curve(context: Context, system: str) -> Bars:
    ks = [k for k in sorted({*_KS, *context.known_ks}) if k <= context.depth(system)]
    frame = context.delivered(system)
    by = frame["question_id"]
    return Bars(f"Recall of {system} by k", "recall", tuple(map(str, ks)),
                tuple(float((frame["strict"] <= k).groupby(by).mean().mean()) for k in ks))


def _counts(context: Context) -> Bars:
    counts = context.gold_count.to_numpy()
    return Bars("Questions by their number of gold passages", "questions", ("1", "2", "3", "4", "5 or more"),
                (*(float((counts == n).sum()) for n in range(1, 5)), float((counts >= 5).sum())))
