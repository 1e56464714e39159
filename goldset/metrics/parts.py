"""Questions that come in parts -> table measurements of all of them, without holding more than one part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.parts import Part
from goldset.formats.resolve import Resolved
from goldset.metrics.measures import Cut, measure_cut, measurement, none_answerable
from goldset.metrics.questions import ALL, Questions
from goldset.metrics.registry import MEASURES
from goldset.metrics.results import Results
from goldset.schemas import from_rows
from goldset.stats.intervals import Moments

_TIES = ("recall_ties_low", "recall_ties_high")
_ABOVE_K = "counted_more_gold_than_k"


def score_parts(parts: Iterable[Part], *, ks: Sequence[int], label: str) -> pa.Table:
    """Parts of a foreign set with the runs of its systems -> the measurements that ``score`` gives of the whole.

    Every question is its own unit there, so the moments of the parts join to those of the whole; a last bit apart, the
    numbers are the same.
    """
    found: dict[tuple[str, int], list[dict[str, dict[str, Any]]]] = {}
    for part in parts:
        questions = Questions.of(part.labelled)
        everything = np.ones(len(questions.ids), np.bool_)
        for name, run in part.runs.items():
            resolved = Resolved(part.outside[name], None)
            results = Results.of(name, questions, run, resolved=resolved).down_to(max(ks))
            for k in sorted(set(ks)):
                rows = {row["measure"]: row for row in measure_cut(Cut(results, k), everything)}
                found.setdefault((name, k), []).append(rows)
    merged: dict[Any, dict[str, Any]] = {}
    for (name, _), rows_of_parts in found.items():
        for row in _joined(rows_of_parts):
            del row["estimate"]
            merged.setdefault((name, row["measure"], row["k"]), {
                "system": name, "slice": ALL, "weighting": "none", "gold_version": label, **row})
    return from_rows("measurements", list(merged.values()))


def _joined(parts: list[dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of one system and cutoff from each part -> those of the whole."""
    return [_row(name, [part[name] if name in part else _silent(name, part["recall"]) for part in parts])
            for name in MEASURES if any(name in part for part in parts)]


def _silent(name: str, recall: Mapping[str, Any]) -> dict[str, Any]:
    """What a part says of a measure that has a row only where it matters: no tie moves it, no gold is out of reach."""
    estimate, k = recall["estimate"], recall["k"]
    if name not in _TIES:
        whole = float(estimate.units > 0)
        estimate, k = Moments(estimate.units, whole, whole, 0.0, 0.0, 0.0).ratio(), None
    return {**recall, "measure": name, "k": k, "estimate": estimate,
            "excluded": [item for item in recall["excluded"] if item["reason"] != _ABOVE_K]}


def _row(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    # A measure that the set cannot give has no moments, in any part.
    moments = [row["estimate"].moments for row in rows if row["estimate"].moments is not None]
    found = reduce(Moments.joined, moments).ratio() if moments else rows[0]["estimate"]
    counts: dict[str, int] = {}
    for row in rows:
        for item in row["excluded"]:
            counts[item["reason"]] = counts.get(item["reason"], 0) + item["count"]
    # A part without a question to measure has a reason of its own; any other is a reason for the whole.
    reasons = [row["reason"] for row in rows if found.value is None or row["estimate"].value is not None]
    interval, method = none_answerable(found) if name == "answerable" else (None, None)
    return measurement(name, rows[0]["k"], found, reason=next((reason for reason in reasons if reason), None),
                       n=sum(row["n"] for row in rows), excluded=counts, interval=interval, method=method)
