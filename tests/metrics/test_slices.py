"""Slices: their own n and interval, too few said, compared with Holm's adjustment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from goldset.formats.sets import LabelledSet
from goldset.metrics import score, slice_differences
from goldset.stats.compare import Units, group_difference, holm

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _set(make_set: Maker, make_run: RunMaker, parts: dict[str, tuple[int, int]],
         **extra: Any) -> tuple[LabelledSet, pa.Table]:
    """language -> (questions answered at rank 1, questions not)."""
    questions: dict[str, dict[str, Any]] = {}
    lists: dict[str, list[str]] = {}
    for language, (hits, misses) in parts.items():
        for i in range(hits + misses):
            name = f"{language}{i}"
            questions[name] = {"language": language, **extra}
            lists[name] = [f"g{name}" if i < hits else "x"]
    return make_set({name: {f"g{name}": True} for name in questions}, questions=questions), make_run(lists)


def test_slices_that_differ_and_slices_too_small(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _set(make_set, make_run, {"de": (5, 20), "en": (70, 10), "fr": (18, 4), "pl": (9, 10)})
    rows = {row["slice"]: row for row in slice_differences(labelled, {"s": run}, ks=[1], by=["language"])}
    assert (rows["language=de"]["n"], rows["language=de"]["value"]) == (25, pytest.approx(0.2))
    # the rest: 97 of 121
    assert rows["language=de"]["rest"] == pytest.approx(97 / 121)
    assert rows["language=de"]["p_holm"] < 0.001
    assert rows["language=fr"]["p_holm"] > 0.05
    assert (rows["language=pl"]["reason"], rows["language=pl"]["p_holm"]) == ("too_few", None)  # 19 questions
    tested = [rows[f"language={name}"] for name in ("de", "en", "fr")]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])


def test_two_slices_are_one_comparison(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _set(make_set, make_run, {"de": (15, 15), "en": (25, 5)})
    assert slice_differences(labelled, {"s": run}, ks=[1], by=["stratum"]) == []  # all of one stratum
    rows = slice_differences(labelled, {"s": run}, ks=[1], by=["language"])
    assert [row["p"] is None for row in rows] == [False, True]
    assert rows[0]["p"] == rows[0]["p_holm"]
    # exact: hypergeometric 40 of 60, 30 drawn; P(X <= 15) + P(X >= 25) = .01267 (computed with scipy.stats)
    assert rows[0]["p"] == pytest.approx(0.0127, abs=0.004)


def test_near_duplicates_are_one_unit(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _set(make_set, make_run, {"de": (0, 25), "en": (25, 0)})
    assert slice_differences(labelled, {"s": run}, ks=[1], by=["language"])[0]["p"] < 0.001
    # fifty questions in two clusters: the swap of the two has the same difference, so p is 1
    table = labelled.questions
    assert table is not None
    place = table.schema.get_field_index("cluster_id")
    told = replace(labelled, questions=table.set_column(place, table.schema.field(place), table.column("language")))
    assert slice_differences(told, {"s": run}, ks=[1], by=["language"])[0]["p"] == 1.0


def test_holm() -> None:
    # .01 x 3, .02 x 2, .9; in the order given, and never below a smaller one
    assert holm([0.9, 0.01, 0.02]) == pytest.approx([0.9, 0.03, 0.04])
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([]) == []
    assert group_difference(Units.of(np.ones(3), np.ones(3)), Units.of(np.ones(0), np.ones(0))) is None


def test_weeks_start_on_monday_in_the_projects_time_zone(make_set: Maker, make_run: RunMaker) -> None:
    # Sunday 2026-03-01 23:30 UTC is Monday in Berlin
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    for zone, week in (("UTC", "2026-02-23"), ("Europe/Berlin", "2026-03-02")):
        labelled = make_set({"q": {"a": True}, "r": {"b": True}}, questions={"q": {"asked_first": late}, "r": {}},
                            manifest={"config": {"project": {"timezone": zone}}})
        table = score(labelled, {"s": make_run({"q": ["a"]})}, ks=[1], by=["week"])
        assert set(table.column("slice").to_pylist()) == {"all", f"week={week}", "week=(none)"}


def test_head_and_tail(make_set: Maker, make_run: RunMaker) -> None:
    # 20 asks: 8 + 4 reach half; the other question asked 4 times goes with the first.
    asked = {"a": 8, "b": 4, "c": 4, "d": 3, "e": 1}
    labelled = make_set({q: {f"g{q}": True} for q in [*asked, "f"]},
                        questions={**{q: {"times_asked": times} for q, times in asked.items()}, "f": {}})
    table = score(labelled, {"s": make_run({q: [f"g{q}"] for q in "abc"})}, ks=[1], by=["head_tail"])
    found = {row["slice"]: (row["value"], row["n"]) for row in table.to_pylist() if row["measure"] == "recall"}
    assert found == {"all": (0.5, 6), "head_tail=head": (1.0, 3), "head_tail=tail": (0.0, 2),
                     "head_tail=(none)": (0.0, 1)}
