"""Recall as a function of k: the curve with its band, the k of a headline figure, and where recall is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Mask, Questions
from goldset.metrics.results import Results
from goldset.stats.compare import Units, paired_ends
from goldset.stats.curves import KStar, k_star, k_star_ends
from goldset.stats.intervals import Floats, Moments, ratio


class Curve:
    """One system: recall of each question with gold at every k from 1 to ``deepest``.

    Questions whose delivery is not known at some of these k, for want of evidence, are left out of the whole curve, so
    that every point rests on the same questions; ``left_out`` counts them.
    """

    def __init__(self, whole: Results, *, deepest: int | None = None) -> None:
        questions = whole.questions
        longest = int(pc.max(whole.run.column("rank")).as_py() or 1)
        self.name = whole.name
        self.deepest = longest if deepest is None else min(deepest, longest)
        results = whole.down_to(self.deepest)
        rows = questions.confirmed & (results.low <= self.deepest)
        count = len(questions.ids)
        got = np.zeros((count, self.deepest + 1))
        np.add.at(got, (questions.gold_owner[rows], results.low[rows]), 1.0)
        differ = (results.low != results.high) & (np.minimum(results.low, results.high) <= self.deepest)
        unknown = np.bincount(questions.gold_owner[differ], minlength=count) > 0
        self.used: Mask = (questions.gold > 0) & ~unknown
        self.left_out = int(((questions.gold > 0) & unknown).sum())
        gold = questions.gold[self.used]
        self.recalls: Floats = np.cumsum(got[self.used], axis=1)[:, 1:] / gold[:, None]
        self.draws, self.cluster = questions.draws[self.used], questions.cluster[self.used]

    def rows(self, ks: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """system, k, value, low, high, n for each k (default: all); value null where no question has gold."""
        return self.sums(ks).rows(ks)

    def sums(self, ks: Sequence[int] | None = None) -> CurveSums:
        """What the curve rests on at these k, default all."""
        ones, moments = np.ones(len(self.recalls)), {}
        for k in range(1, self.deepest + 1) if ks is None else ks:
            found = ratio(self.recalls[:, k - 1], ones, weight=self.draws, cluster=self.cluster)
            assert found.moments is not None, "ratio always tells"
            moments[k] = found.moments
        return CurveSums(self.name, len(self.recalls), self.left_out, moments)

    def reach(self, headline: float, *, seed: int = 0) -> tuple[KStar, KStar, KStar] | None:
        """The k at which the headline is true, and its 95 % ends; None without a question to measure."""
        if not len(self.recalls):
            return None
        weighted = self.recalls * self.draws[:, None]
        total = float(self.draws.sum())
        here = k_star(dict(enumerate((weighted.sum(axis=0) / total).tolist(), 1)), headline)
        codes = np.unique(self.cluster, return_inverse=True)[1]
        num = np.zeros((int(codes.max()) + 1, self.deepest))
        np.add.at(num, codes, weighted)
        return here, *k_star_ends(num, np.bincount(codes, self.draws).astype(np.float64), headline, seed=seed)


@dataclass(frozen=True)
class CurveSums:
    """One system's curve without its questions, so that they may come part by part: at each k, what recall rests on."""

    name: str
    n: int
    left_out: int
    moments: Mapping[int, Moments]

    @property
    def deepest(self) -> int:
        """The last k; below it recall stays what it is there."""
        return max(self.moments)

    def joined(self, other: CurveSums) -> CurveSums:
        """The questions of both; all k must be there to the deepest of each."""
        ks = range(1, max(self.deepest, other.deepest) + 1)
        return CurveSums(self.name, self.n + other.n, self.left_out + other.left_out, {
            k: self.moments[min(k, self.deepest)].joined(other.moments[min(k, other.deepest)]) for k in ks})

    def rows(self, ks: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """As of ``Curve``."""
        result = []
        for k in self.moments if ks is None else ks:
            found = self.moments[k].ratio()
            low, high = found.interval or (None, None)
            result.append({"system": self.name, "k": k, "value": found.value, "low": low, "high": high, "n": self.n})
        return result


def loss_split(labelled: LabelledSet, name: str, served: pa.Table, retrieved: pa.Table, *, served_k: int,
               retrieved_k: int, evaluated_k: int | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """A system's reranked list and the list it was made from -> what each step loses (METHODS 7).

    Retrieval loss: R(evaluated k) - R(retrieved k), both of the retrieved list. Cut loss: R(retrieved k) of the
    retrieved list - R(served k) of the served one. Paired over the questions that both lists decide.

    Returns:
        Rows with system, step (retrieval, cut), from_k, to_k, before, after, loss, low, high (percentile bootstrap), n.

    Raises:
        DataError: the retrieved list ends before a k that is asked for.
    """
    questions = Questions.of(labelled)
    deep = max(retrieved_k, evaluated_k or retrieved_k)
    longest = int(pc.max(retrieved.column("rank")).as_py() or 0)
    if longest < deep:
        raise DataError(f"the retrieved list of {name} ends at {longest}; recall at {deep} needs a longer one")
    before, after = Results.of(name, questions, retrieved), Results.of(name, questions, served)
    steps = [("cut", Cut(before, retrieved_k), Cut(after, served_k))]
    if evaluated_k is not None and evaluated_k > retrieved_k:
        steps.insert(0, ("retrieval", Cut(before, evaluated_k), Cut(before, retrieved_k)))
    rows = []
    for step, first, second in steps:
        used = (questions.gold > 0) & ~first.unknown & ~second.unknown
        gold, draws = questions.gold[used], questions.draws[used]
        high, low = first.got[used] / gold, second.got[used] / gold
        codes = np.unique(questions.cluster[used], return_inverse=True)[1]
        units = Units.of(np.bincount(codes, draws * (high - low)).astype(np.float64),
                         np.bincount(codes, draws).astype(np.float64))
        ends = paired_ends(units, seed=seed)
        means = [float(np.average(part, weights=draws)) if len(gold) else None for part in (high, low)]
        rows.append({"system": name, "step": step, "from_k": first.k, "to_k": second.k, "before": means[0],
                     "after": means[1], "loss": None if means[0] is None or means[1] is None else means[0] - means[1],
                     "low": ends.low if ends else None, "high": ends.high if ends else None, "n": len(gold)})
    return rows


def curves(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, deepest: int | None = None,
           chunks: pa.Table | None = None) -> list[Curve]:
    """The curve of each system, in the order given."""
    questions = Questions.of(labelled)
    return [Curve(Results.of(name, questions, run, chunks=chunks), deepest=deepest) for name, run in runs.items()]


def shown_ks(deepest: int, also: Sequence[int] = ()) -> list[int]:
    """A handful of cutoffs that show a curve on a terminal: 1, 2, 3, 5, 10, 20, 30, 50, 100, …, the deepest."""
    steps = {1, 2, 3, 5, *(base * 10**power for power in range(1, 6) for base in (1, 2, 3, 5)), *also, deepest}
    return sorted(k for k in steps if k <= deepest)


def plotted_ks(deepest: int, also: Iterable[int] = ()) -> list[int]:
    """Cutoffs that make a smooth line on a log axis: all to 50, then steps of 4 %, those in ``also``, the deepest."""
    steps = {*range(1, 51), *(round(50 * 1.04**step) for step in range(1, 300)), *also, *shown_ks(deepest), deepest}
    return sorted(k for k in steps if k <= deepest)
