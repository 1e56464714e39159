"""Slices against the rest: does recall differ there, with the number of slices looked at taken into account?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Mask, Questions
from goldset.metrics.results import Results
from goldset.stats.compare import group_difference, holm

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
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        results = Results.of(name, questions, run, chunks=chunks).down_to(max(ks, default=0))
        for k in sorted(set(ks)):
            cut = Cut(results, k)
            for column in by:
                rows += _column(cut, [part for part in questions.slices([column]) if part[0] != "all"], seed)
    return rows


def _column(cut: Cut, parts: list[tuple[str, Mask]], seed: int) -> list[dict[str, Any]]:
    questions = cut.questions
    if len(parts) < 2:
        return []  # one slice has no rest
    used = (questions.gold > 0) & ~cut.unknown
    recall = np.divide(cut.got, questions.gold, out=np.zeros(len(used)), where=questions.gold > 0)
    codes = np.unique(questions.cluster, return_inverse=True)[1]
    draws = np.where(used, questions.draws, 0.0)
    num, den = (np.bincount(codes, part).astype(np.float64) for part in (draws * recall, draws))
    rows: list[dict[str, Any]] = []
    tested: list[dict[str, Any]] = []
    for name, mask in parts:
        inside, outside = used & mask, used & ~mask
        row: dict[str, Any] = {
            "system": cut.results.name, "k": cut.k, "slice": name, "n": int(inside.sum()),
            "value": _mean(recall, draws, inside), "rest": _mean(recall, draws, outside), "difference": None,
            "p": None, "p_holm": None, "reason": None}
        rows.append(row)
        if bool((cut.unknown & mask & (questions.gold > 0)).any()):
            row["reason"] = "evidence_missing"
        elif min(int(inside.sum()), int(outside.sum())) < ENOUGH:
            row["reason"] = "too_few"
        elif not (len(parts) == 2 and tested):
            share = np.bincount(codes, np.where(mask, draws, 0.0))
            units = den > 0
            p = group_difference(num[units], den[units], (2 * share > den)[units], seed=seed)
            if p is not None and row["value"] is not None and row["rest"] is not None:
                row["difference"], row["p"] = row["value"] - row["rest"], p
                tested.append(row)
    for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = adjusted
    return rows


def _mean(values: Any, weights: Any, mask: Mask) -> float | None:
    return float(np.average(values[mask], weights=weights[mask])) if mask.any() else None
