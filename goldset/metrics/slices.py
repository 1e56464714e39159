"""Slices against the rest: does recall differ there, with the number of slices looked at taken into account?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Mask, Questions
from goldset.metrics.results import Results
from goldset.stats.compare import Units, group_difference, holm

ENOUGH = 20
"""Fewer questions with gold than this in a slice, or in the rest, decide nothing."""


def slice_differences(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int], by: Sequence[str],
                      chunks: pa.Table | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Labelled set, runs -> recall@k of each slice against that of all other questions.

    p is by permutation of near-duplicate clusters between slice and rest (a cluster goes where most of its draws are),
    adjusted by Holm over the slices of one column, one system and one k. A column with two slices is one comparison,
    one with a single slice none.

    Returns:
        Rows with system, k, slice, n, value, rest, difference, p, p_holm; the last three null, with ``reason``
        (too_few, evidence_missing), where nothing can be said.
    """
    questions = Questions.of(labelled)
    columns = [(column, questions.slices([column])[1:]) for column in by]
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        results = Results.of(name, questions, run, chunks=chunks).down_to(max(ks, default=0))
        for k in sorted(set(ks)):
            cut = Cut(results, k)
            whole = Standing.of(cut, np.ones(len(questions.ids), np.bool_))
            for _, parts in columns:
                rows += against_the_rest(name, k, whole, [(part, Standing.of(cut, mask)) for part, mask in parts],
                                         seed=seed)
    return rows


@dataclass(frozen=True)
class Standing:
    """Recall of some questions: of each that is decided, and of the units that they form; draws x recall over draws.

    ``n`` counts the decided questions, ``unknown`` says whether any is not. A unit is in where most of its draws are.
    """

    n: int
    questions: Units
    units: Units
    unknown: bool

    @classmethod
    def of(cls, cut: Cut, mask: Mask) -> Standing:
        """The questions in ``mask``."""
        questions = cut.questions
        used = (questions.gold > 0) & ~cut.unknown
        inside = used & mask
        recall = np.divide(cut.got, questions.gold, out=np.zeros(len(used)), where=questions.gold > 0)
        codes = np.unique(questions.cluster, return_inverse=True)[1]
        draws = np.where(used, questions.draws, 0.0)
        num, den, share = (np.bincount(codes, part).astype(np.float64)
                           for part in (draws * recall, draws, np.where(mask, draws, 0.0)))
        most = (den > 0) & (2 * share > den)
        return cls(int(inside.sum()), Units.of((draws * recall)[inside], draws[inside]),
                   Units.of(num[most], den[most]), bool((cut.unknown & mask & (questions.gold > 0)).any()))

    def joined(self, other: Standing) -> Standing:
        """The questions of both, which share no unit."""
        return Standing(self.n + other.n, self.questions.joined(other.questions), self.units.joined(other.units),
                        self.unknown or other.unknown)


def against_the_rest(system: str, k: int | None, whole: Standing, parts: Sequence[tuple[str, Standing]], *,
                     seed: int = 0) -> list[dict[str, Any]]:
    """All questions and the slices of one column -> the rows of ``slice_differences``."""
    if len(parts) < 2:
        return []  # one slice has no rest
    rows: list[dict[str, Any]] = []
    tested: list[dict[str, Any]] = []
    for name, inside in parts:
        row: dict[str, Any] = {
            "system": system, "k": k, "slice": name, "n": inside.n, "value": inside.questions.ratio,
            "rest": whole.questions.without(inside.questions).ratio, "difference": None, "p": None, "p_holm": None,
            "reason": None}
        rows.append(row)
        if inside.unknown:
            row["reason"] = "evidence_missing"
        elif min(inside.n, whole.n - inside.n) < ENOUGH:
            row["reason"] = "too_few"
        elif not (len(parts) == 2 and tested):
            p = group_difference(inside.units, whole.units.without(inside.units), seed=seed)
            if p is not None and row["value"] is not None and row["rest"] is not None:
                row["difference"], row["p"] = row["value"] - row["rest"], p
                tested.append(row)
    for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = adjusted
    return rows
