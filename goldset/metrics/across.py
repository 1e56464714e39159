"""Two versions of a set with overlapping panels: the difference of their recalls, the shared questions paired."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet
from goldset.metrics.compare import verdict_of
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Ints, Questions
from goldset.metrics.results import Results
from goldset.stats.compare import DETECT, Units, paired_ends, panel_difference, sign_flip, sign_flip_method
from goldset.stats.intervals import Z95, Estimate, Floats, difference, ratio


def compare_versions(old: LabelledSet, new: LabelledSet, run_a: pa.Table, run_b: pa.Table, k: int, *,
                     names: tuple[str, str] = ("A", "B"), seed: int = 0,
                     chunks: tuple[pa.Table | None, pa.Table | None] = (None, None)) -> dict[str, Any]:
    """Older version with run A, newer with run B, k -> recall@k of B on the newer minus that of A on the older.

    Each recall is that of its own version, as ``score`` has it. A question in both versions is one unit with both its
    results, so their covariance makes the difference as narrow as a paired one; a question in one is unpaired
    (METHODS 9). Near-duplicates in either version are one unit.

    Returns:
        JSON-able dict: systems, versions, k, n_a, n_b, n_both (questions with gold), recall_a, recall_b, difference,
        low, high, se, p (permutation: shared units change sides, the others are dealt again), detectable (the longer
        arm of the interval, 2.80/1.96 times), paired (n, difference, low, high, p of the shared questions alone,
        weighted as the newer version drew them), rest (n_a, n_b, difference, low, high of the others), discordant
        (shared questions whose recall differs),
        gold_changed (shared questions whose gold is not the same), excluded of each, verdict and warnings.
    """
    sides = [_Side(Results.of(name, Questions.of(labelled), run, chunks=chunking), k) for labelled, name, run, chunking
             in zip((old, new), names, (run_a, run_b), chunks, strict=True)]
    a, b = sides
    unit = _units(sides)
    where = [np.array([unit[identity] for identity in side.ids], np.int64) for side in sides]
    count = len(set(unit.values()))
    estimates = [side.estimate(places) for side, places in zip(sides, where, strict=True)]
    parts = [side.by_unit(places, count) for side, places in zip(sides, where, strict=True)]
    found = difference(estimates[1], estimates[0], covariance=_covariance(parts, estimates))
    shared = sorted(set(a.ids) & set(b.ids))
    at = [side.index(shared) for side in sides]
    change = np.round(b.recall[at[1]] - a.recall[at[0]], 12)
    p = panel_difference(parts[0], parts[1], seed=seed)
    told = estimates[0].value, estimates[1].value
    d = None if told[0] is None or told[1] is None else told[1] - told[0]
    discordant = int((change != 0).sum())
    # What can tell: shared questions that differ, and those that are in one version only.
    telling = discordant + len(a.ids) + len(b.ids) - 2 * len(shared)
    turned = sum(a.gold_of(identity) != b.gold_of(identity) for identity in shared)
    return {
        "measure": "recall", "k": k, "system_a": names[0], "system_b": names[1], "version_a": old.label,
        "version_b": new.label, "n_a": len(a.ids), "n_b": len(b.ids), "n_both": len(shared), "recall_a": told[0],
        "recall_b": told[1], "difference": d, "low": found[1].low if found else None,
        "high": found[1].high if found else None, "se": found[0] if found else None,
        "method": "MOVER, covariance of the shared questions", "p": p,
        "p_method": "shared units change sides, the others are dealt again; 10000 draws",
        "detectable": None if found is None or d is None else
        DETECT / Z95 * max(d - found[1].low, found[1].high - d),
        "paired": _paired(change, b.draws[at[1]], where[1][at[1]], seed),
        "rest": _rest(sides, where, set(shared)), "discordant": discordant, "gold_changed": turned,
        "excluded_a": a.excluded(), "excluded_b": b.excluded(), "verdict": verdict_of(telling, d, p),
        "warnings": [f"the gold of {turned} of the {len(shared)} questions in both versions is not the same, and part "
                     "of the difference may be its"] if turned else [],
    }


class _Side:
    """One version with its run: the questions with gold whose recall is known."""

    def __init__(self, results: Results, k: int) -> None:
        cut, self.questions = Cut(results, k), results.questions
        questions = self.questions
        self.unknown = (questions.gold > 0) & cut.unknown
        self.outside = results.resolved.questions_outside
        used = (questions.gold > 0) & ~cut.unknown
        self.ids = [questions.ids[place] for place in np.flatnonzero(used)]
        self.recall: Floats = cut.got[used] / questions.gold[used]
        self.draws: Floats = questions.draws[used]
        self.cluster: Ints = questions.cluster[used]
        self._place = {identity: place for place, identity in enumerate(self.ids)}

    def index(self, ids: list[str]) -> Ints:
        return np.array([self._place[identity] for identity in ids], np.int64)

    def gold_of(self, question: str) -> frozenset[str]:
        return self._gold.get(question, frozenset())

    @cached_property
    def _gold(self) -> dict[str, frozenset[str]]:
        table, found = self.questions.labelled.gold, dict[str, set[str]]()
        for question, span in zip(*(table.filter(pa.array(self.questions.confirmed)).column(name).to_pylist()
                                    for name in ("question_id", "span_id")), strict=True):
            found.setdefault(question, set()).add(span)
        return {question: frozenset(spans) for question, spans in found.items()}

    def estimate(self, unit: Ints, kept: Any = slice(None)) -> Estimate:
        return ratio(self.recall[kept], np.ones(len(self.recall[kept])), weight=self.draws[kept], cluster=unit[kept])

    def by_unit(self, unit: Ints, count: int) -> tuple[Floats, Floats]:
        """(numerator, denominator) of each unit."""
        return (np.bincount(unit, self.draws * self.recall, count).astype(np.float64),
                np.bincount(unit, self.draws, count).astype(np.float64))

    def excluded(self) -> dict[str, int]:
        questions = self.questions
        return {why: count for why, count in (
            ("not_labelled", int((~questions.is_labelled).sum())),
            ("no_gold", int((questions.is_labelled & (questions.gold == 0)).sum())),
            ("evidence_missing", int(self.unknown.sum())), ("not_in_set", self.outside)) if count}


def _units(sides: list[_Side]) -> dict[str, int]:
    """Question -> number of its unit: the near-duplicates of either version, joined over the questions in both."""
    parent: dict[Any, Any] = {}

    def root(node: Any) -> Any:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for number, side in enumerate(sides):
        for identity, cluster in zip(side.ids, side.cluster.tolist(), strict=True):
            parent[root(identity)] = root((number, cluster))
    numbers: dict[Any, int] = {}
    return {identity: numbers.setdefault(root(identity), len(numbers)) for side in sides for identity in side.ids}


def _covariance(parts: list[tuple[Floats, Floats]], estimates: list[Estimate]) -> float:
    """Covariance of two linearised ratios over the units that are in both."""
    residuals = []
    for (num, den), estimate in zip(parts, estimates, strict=True):
        if estimate.value is None or estimate.units < 2:
            return 0.0
        # The same n/(n-1) as in the variance of each, so that a version against itself has difference and se 0.
        scale = np.sqrt(estimate.units / (estimate.units - 1)) / den.sum()
        residuals.append((num - num.sum() / den.sum() * den) * scale)
    return float(np.dot(*residuals))


def _paired(change: Floats, draws: Floats, unit: Ints, seed: int) -> dict[str, Any]:
    codes = np.unique(unit, return_inverse=True)[1]
    num, den = (np.bincount(codes, part).astype(np.float64) if len(codes) else part for part in (draws * change, draws))
    units = Units.of(num, den)
    ends = paired_ends(units, seed=seed)
    return {"n": len(change), "difference": units.ratio, "low": ends.low if ends else None,
            "high": ends.high if ends else None, "p": sign_flip(units, seed=seed), "p_method": sign_flip_method(units)}


def _rest(sides: list[_Side], where: list[Ints], shared: set[str]) -> dict[str, Any]:
    """The questions in one version only: two samples, unpaired."""
    kept = [np.array([identity not in shared for identity in side.ids], np.bool_) for side in sides]
    old, new = (side.estimate(unit, mask) for side, unit, mask in zip(sides, where, kept, strict=True))
    found = difference(new, old)
    d = None if old.value is None or new.value is None else new.value - old.value
    return {"n_a": int(kept[0].sum()), "n_b": int(kept[1].sum()), "difference": d,
            "low": found[1].low if found else None, "high": found[1].high if found else None}
