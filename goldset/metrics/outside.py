"""Gold and the ranks of the pool's systems -> about how many relevant passages lie outside the pool (METHODS 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.metrics.questions import Ints, Mask
from goldset.metrics.results import NEVER
from goldset.stats.intervals import clopper_pearson
from goldset.stats.pooling import boundary_lincoln_petersen, chapman

NOT_KNOWN = {
    "no_gold": "there is no gold to judge by",
    "one_family": "the pool has ranked lists of one family only, and nothing to hold against it",
    "no_gold_near_the_edge": "no gold stands in the lower half of any list, so nothing tells what others miss there",
}


@dataclass(frozen=True)
class Edge:
    """One family's list: the gold that it lacks, and how much of the gold near its end the others hold.

    ``low`` and ``high`` are the estimate at the ends of the exact 95 % interval of ``near_caught / near``; ``high`` is
    null where that interval begins at 0.
    """

    family: str
    systems: list[str]
    gold_outside: int
    near: int
    near_caught: int
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Outside:
    """What probably lies outside the pool; ``at_least`` is null with a ``reason`` where nothing tells.

    Attributes:
        at_least: boundary Lincoln-Petersen, the mean over the families, less what is known from elsewhere.
        floor: Chapman's estimate less what was seen, for two families; too low where the lists agree.
        reason: a key of NOT_KNOWN.
        depth: ranks of each list that count.
        gold: gold that was judged by.
        known: gold that none of the lists returned (found by a search, an old set, or a fused list).
        edges: a row a family.
    """

    at_least: float | None
    floor: float | None
    reason: str | None
    depth: int
    gold: int
    known: int
    edges: list[Edge]

    def as_json(self) -> dict[str, Any]:
        """The manifest's key ``outside_the_pool``."""
        return asdict(self)

    def sentence(self) -> str:
        """What every output says of it."""
        return sentence(self.as_json())


def sentence(told: Mapping[str, Any]) -> str:
    """The manifest's key ``outside_the_pool`` -> a sentence for people."""
    if told["at_least"] is None:
        return f"How many relevant passages lie outside the pool cannot be estimated: {NOT_KNOWN[told['reason']]}."
    seen = "; ".join(_seen(edge) for edge in told["edges"] if edge["estimate"] is not None)
    known = f"; {told['known']} that no list returned are known already" if told["known"] else ""
    return (f"Relevant passages outside the pool: at least about {told['at_least']:.0f}, beside {told['gold']} gold "
            f"({seen}{known}).")


def _seen(edge: Mapping[str, Any]) -> str:
    """What one list says, with what it rests on."""
    high = "no upper bound" if edge["high"] is None else f"{edge['high']:,.0f}"
    return (f"{edge['family']} says {edge['estimate']:,.0f}, 95 % {edge['low']:,.0f} to {high}: others hold "
            f"{edge['near_caught']} of {edge['near']} gold near the end of its list")


def pool_ranks(gold: pa.Table, candidates: pa.Table) -> dict[str, Ints]:
    """Tables gold, candidates -> for each system the rank in the pool of every gold row, NEVER where it is not there.

    A gold row is found under the representative of its twin group, as candidates are.
    """
    keys = ("question_id", "twin_group")
    row_of: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(*(gold.column(name).to_pylist() for name in keys), strict=True)):
        row_of.setdefault(key, []).append(row)
    found: dict[str, Ints] = {}
    columns = (candidates.column(name).to_pylist() for name in ("question_id", "span_id", "best_ranks"))
    for question, span, ranks in zip(*columns, strict=True):
        for best in ranks:
            mine = found.setdefault(best["system"], np.full(len(gold), NEVER))
            mine[row_of.get((question, span), [])] = best["rank"]
    return {system: found[system] for system in sorted(found)}


def outside_the_pool(ranks: Mapping[str, Ints], families: Mapping[str, str], *, depth: int) -> Outside:
    """Ranks of the gold in each system, the systems' families -> Outside.

    For each family: c = share of its gold at ranks depth/2 + 1 to depth that another family's list holds, (caught +
    0.5) / (near + 1); the gold outside its list times (1 - c) / c. The mean over the families is what no list holds;
    what is known of it from elsewhere is taken off. Systems of one family are one list; a fused one (``a+b``) is a
    function of the others and no list of its own. Every gold counts once, also a find from sampled rejections.

    Args:
        ranks: for each system an array, one rank a gold row; NEVER (or any rank beyond ``depth``): not returned.
        families: family of each system; systems that are missing here take no part.
        depth: pool depth.
    """
    count = len(next(iter(ranks.values()), ()))
    lists: dict[str, list[str]] = {}
    for system in sorted(ranks):
        if system in families and "+" not in families[system]:
            lists.setdefault(families[system], []).append(system)
    best = {family: np.min([ranks[system] for system in systems], axis=0) for family, systems in lists.items()}
    inside = {family: rank <= depth for family, rank in best.items()}
    edges = [_edge(family, systems, best, inside, depth) for family, systems in sorted(lists.items())]
    known = count - int(_any(list(inside.values()), count).sum())
    told = [edge.estimate for edge in edges if edge.estimate is not None]
    reason = None if told else ("no_gold" if not count else "one_family" if len(lists) < 2 else "no_gold_near_the_edge")
    return Outside(max(0.0, float(np.mean(told)) - known) if told else None, _floor(list(inside.values()), known),
                   reason, depth, count, known, edges)


def _edge(family: str, systems: list[str], best: Mapping[str, Ints], inside: Mapping[str, Mask], depth: int) -> Edge:
    others = _any([mask for name, mask in inside.items() if name != family], len(best[family]))
    near = inside[family] & (best[family] > depth / 2)
    counts = int((others & ~inside[family]).sum()), int(near.sum()), int((near & others).sum())
    outside, size, caught = counts
    estimate = None if len(best) < 2 else boundary_lincoln_petersen(outside=outside, near=size, near_caught=caught)
    ends = clopper_pearson(caught, size)
    if estimate is None or ends is None:
        return Edge(family, systems, *counts, None, None, None)
    low, high = (outside * (1 - share) / share if share > 0 else None for share in reversed(ends))
    return Edge(family, systems, *counts, estimate, low, high)


def _any(masks: Sequence[Mask], count: int) -> Mask:
    mask: Mask = np.zeros(count, np.bool_)
    for one in masks:
        mask = mask | one
    return mask


def _floor(inside: Sequence[Mask], known: int) -> float | None:
    """Chapman's total of two lists, less what they hold and what is known beside them."""
    if len(inside) != 2 or not len(inside[0]):
        return None
    first, second, both = int(inside[0].sum()), int(inside[1].sum()), int((inside[0] & inside[1]).sum())
    return max(0.0, chapman(first, second, both) - (first + second - both) - known)
