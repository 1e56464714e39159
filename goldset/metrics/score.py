"""Labelled set, runs -> table measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.errors import UsageError
from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut, measure_cut
from goldset.metrics.questions import ALL, Questions
from goldset.metrics.results import Results
from goldset.metrics.words import cut_by_words
from goldset.schemas import from_rows


def score(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int] = (), by: Sequence[str] = (),
          budget: int | None = None, chunks: pa.Table | None = None,
          status: Mapping[str, pa.Table] | None = None) -> pa.Table:
    """Labelled set, runs -> measurements: every measure of the registry for each system, cutoff and slice.

    The list is cut first, then mapped to gold; ranks decide. A question counts as often as it was drawn; the
    near-duplicate cluster is the unit of variance. A question with gold and without results counts 0 and is counted.
    ``recall`` is over confirmed gold; finds from the sample of rejections enter ``recall_micro`` and
    ``recall_macro_ht`` by weight (METHODS 3).

    Args:
        labelled: any set; texts are read only where the measure needs them.
        runs: system -> table ``run`` of that system.
        ks: cutoffs.
        by: columns of the questions to slice by, besides ``all``; also ``week`` and ``head_tail``.
        budget: also cut each list at this many words (rows with k null); needs texts.
        chunks: what the run's chunk ids mean, where it is another chunking than the set's own.
        status: system -> table ``run_status``, which tells an empty answer from a missing one.

    Returns:
        Table measurements, in order of system, cutoff, slice, measure.

    Raises:
        UsageError: neither cutoff nor budget, or a cutoff below 1.
        DataError: none of a run's ids resolves; a slice column that does not exist.
    """
    if not ks and budget is None:
        raise UsageError("no cutoff: name at least one k, e.g. --k 5, or a budget of words")
    if bad := [k for k in ks if k < 1]:
        raise UsageError(f"--k {bad[0]}: a cutoff is 1 or more")
    questions = Questions.of(labelled)
    slices = questions.slices(by)
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        given = (status or {}).get(name)
        results = Results.of(name, questions, run, chunks=chunks, status=given).down_to(max(ks, default=0))
        for k in sorted(set(ks)):
            rows += _rows(results, Cut(results, k), slices)
        if budget is not None:
            cut = Results.of(name, questions, cut_by_words(labelled, run, budget, chunks=chunks), chunks=chunks,
                             status=given)
            rows += _rows(cut, Cut(cut, None), slices)
    return from_rows("measurements", once(rows))


def _rows(results: Results, cut: Cut, slices: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    questions = results.questions
    rows = []
    for name, mask in slices:
        for measured in measure_cut(cut, np.asarray(mask)):
            del measured["estimate"]
            rows.append({"system": results.name, "slice": name, "weighting": questions.weighting,
                         "gold_version": questions.labelled.label, **in_slice(measured, name)})
    return rows


def in_slice(row: dict[str, Any], name: str) -> dict[str, Any]:
    """A row of ``measure_cut`` as that of a slice: questions that the set does not have are in none but the whole."""
    if name != ALL:
        row["excluded"] = [item for item in row["excluded"] if item["reason"] != "not_in_set"]
    return row


def once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Measures without a cutoff come once a system and slice, not once a cutoff."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        seen.setdefault((row["system"], row["measure"], row["k"], row["slice"]), row)
    return list(seen.values())
