"""Questions that come in parts -> measurements, slices, curves and comparison of all of them, one part held at a time.

Near-duplicate questions are in one part, so units never cross parts, and sums are exact (stats/exact): the numbers are
those of the whole to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.parts import Part
from goldset.formats.resolve import Resolved
from goldset.metrics.compare import Paired
from goldset.metrics.curve import Curve, CurveSums
from goldset.metrics.measures import Cut, measure_cut, measurement, none_answerable
from goldset.metrics.questions import ALL, Mask, Questions
from goldset.metrics.registry import MEASURES
from goldset.metrics.results import Results
from goldset.metrics.score import in_slice, once
from goldset.metrics.slices import Standing, against_the_rest
from goldset.schemas import from_rows
from goldset.stats.intervals import Moments

_TIES = ("recall_ties_low", "recall_ties_high")
_ABOVE_K = "counted_more_gold_than_k"
Key = tuple[str, int, str]
"""System, cutoff, slice."""


@dataclass(frozen=True)
class Scored:
    """What ``score``, ``slice_differences`` and ``curves`` give of the whole."""

    measurements: pa.Table
    slices: list[dict[str, Any]]
    curves: list[CurveSums]


def score_parts(parts: Iterable[Part], *, ks: Sequence[int], label: str, by: Sequence[str] = (),
                curve: bool = False) -> Scored:
    """Parts of a foreign set with the runs of its systems -> what is measured of the whole; curves if asked for."""
    cutoffs = sorted(set(ks))
    measured: dict[Key, list[dict[str, dict[str, Any]]]] = {}
    standings: dict[Key, Standing] = {}
    lines: dict[str, CurveSums] = {}
    systems: list[str] = []
    columns: dict[str, dict[str, None]] = {column: {} for column in by}
    for part in parts:
        questions = Questions.of(part.labelled)
        masks: dict[str, Mask] = {ALL: np.ones(len(questions.ids), np.bool_)}
        for column in by:
            found = dict(questions.slices([column])[1:])
            columns[column] |= dict.fromkeys(found)
            masks |= found
        systems = list(part.runs)
        for name in systems:
            whole = _results(part, questions, name)
            results = whole.down_to(cutoffs[-1])
            for k in cutoffs:
                cut = Cut(results, k)
                for slice_, mask in masks.items():
                    measured.setdefault((name, k, slice_), []).append(
                        {row["measure"]: in_slice(row, slice_) for row in measure_cut(cut, mask)})
                    if by:
                        _add(standings, (name, k, slice_), Standing.of(cut, mask))
            if curve:
                _add(lines, name, Curve(whole).sums())
    # The values of a column in the order in which ``Questions.slices`` has them.
    ordered = {column: sorted(names) for column, names in columns.items()}
    rows: list[dict[str, Any]] = []
    slices: list[dict[str, Any]] = []
    for name in systems:
        for k in cutoffs:
            for slice_ in dict.fromkeys([ALL, *(one for names in ordered.values() for one in names)]):
                for row in _joined(measured[name, k, slice_]):
                    del row["estimate"]
                    rows.append({"system": name, "slice": slice_, "weighting": "none", "gold_version": label, **row})
            for names in ordered.values():
                slices += against_the_rest(name, k, standings[name, k, ALL],
                                           [(one, standings[name, k, one]) for one in names])
    return Scored(from_rows("measurements", once(rows)), slices, list(lines.values()))


def compare_parts(parts: Iterable[Part], k: int, *, names: tuple[str, str], label: str) -> dict[str, Any]:
    """Parts with the runs of both systems -> the document of ``compare``."""
    found: Paired | None = None
    for part in parts:
        questions = Questions.of(part.labelled)
        a, b = (_results(part, questions, name) for name in names)
        here = Paired.of(a, b, k)
        found = here if found is None else found.joined(here)
    assert found is not None, "there is one part at least"
    return found.told(k, names=names, words=(None, None), seed=0, weighting="none", label=label)


def _results(part: Part, questions: Questions, name: str) -> Results:
    return Results.of(name, questions, part.runs[name], resolved=Resolved(part.outside[name], None))


def _add(sums: dict[Any, Any], key: Any, more: Any) -> None:
    sums[key] = sums[key].joined(more) if key in sums else more


def _joined(parts: list[dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of one system, cutoff and slice from each part -> those of the whole."""
    return [_row(name, [part[name] if name in part else _silent(name, part["recall"]) for part in parts])
            for name in MEASURES if any(name in part for part in parts)]


def _silent(name: str, recall: Mapping[str, Any]) -> dict[str, Any]:
    """What a part says of a measure that has a row only where it matters: no tie moves it, no gold is out of reach."""
    estimate, k = recall["estimate"], recall["k"]
    if name not in _TIES:
        all_ = estimate.moments
        estimate, k = Moments(all_.units, all_.den, all_.den, all_.dd, all_.dd, all_.dd).ratio(), None
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
