"""Recall against k, the k of a headline figure, where recall is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.metrics import curves, loss_split, score, shown_ks
from goldset.stats.curves import k_star, k_star_ends

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _ranked(make_set: Maker, make_run: RunMaker, places: list[int], depth: int = 10) -> tuple[LabelledSet, pa.Table]:
    """One gold a question, at the given ranks (beyond the depth: nowhere)."""
    labelled = make_set({f"q{i}": {f"g{i}": True} for i in range(len(places))})
    run = make_run({f"q{i}": [f"g{i}" if rank == place else f"x{rank}" for rank in range(1, depth + 1)]
                    for i, place in enumerate(places)})
    return labelled, run


def test_each_point_is_recall_at_that_k(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _ranked(make_set, make_run, [1] * 5 + [3] * 10 + [7] * 4 + [99])
    rows = {row["k"]: row for row in curves(labelled, {"s": run})[0].rows()}
    assert [rows[k]["value"] for k in (1, 2, 3, 7, 10)] == pytest.approx([0.25, 0.25, 0.75, 0.95, 0.95])
    for row in score(labelled, {"s": run}, ks=[1, 3, 10]).to_pylist():
        if row["measure"] == "recall":
            mine = rows[row["k"]]
            assert (mine["value"], mine["low"], mine["high"], mine["n"]) == pytest.approx(
                (row["value"], row["low"], row["high"], row["n"]))
    assert len(curves(labelled, {"s": run}, deepest=4)[0].rows()) == 4


def test_the_k_of_a_headline(make_set: Maker, make_run: RunMaker) -> None:
    # .25 from 1, .75 from 3, .95 from 7
    labelled, run = _ranked(make_set, make_run, [1] * 5 + [3] * 10 + [7] * 4 + [99])
    curve = curves(labelled, {"s": run})[0]
    here, low, high = curve.reach(0.75) or (None, None, None)
    assert [str(end) for end in (here, low, high)] == ["3", "3", "7"]
    here, low, high = curve.reach(0.97) or (None, None, None)
    # a resample without the one lost question (chance .95^20 = .36) reaches 1 at 7
    assert [str(end) for end in (here, low, high)] == ["> 10", "7", "> 10"]
    assert curve.reach(0.75) == curve.reach(0.75)
    nothing = make_set({"q": {"a": False}})
    assert curves(nothing, {"s": make_run({"q": ["a"]})})[0].reach(0.5) is None


def test_the_ends_of_k_star_by_enumeration() -> None:
    # Two units, one reached at 1 and one at 2: a resample is (a, a), (a, b) twice or (b, b). Recall 1 at k = 1 has
    # chance 1/4, at k = 2 otherwise.
    num, den = np.array([[1.0, 1.0], [0.0, 1.0]]), np.ones(2)
    assert [end.k for end in k_star_ends(num, den, 1.0)] == [1, 2]
    assert [end.k for end in k_star_ends(num, den, 0.0)] == [1, 1]
    # METHODS 13, 26
    curve = {1: 0.42, 3: 0.61, 5: 0.70, 8: 0.76, 10: 0.79, 20: 0.88, 50: 0.94}
    assert [str(k_star(curve, headline)) for headline in (0.94, 0.79, 0.95)] == ["50", "10", "> 50"]


def test_drawn_questions_count_as_often_as_drawn(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q1": {"a": True}, "q2": {"b": True}}, questions={"q1": {"draws": 3}, "q2": {}})
    rows = curves(labelled, {"s": make_run({"q1": ["a"], "q2": ["x", "b"]})})[0].rows()
    assert [row["value"] for row in rows] == pytest.approx([0.75, 1.0])


def test_loss_by_step(make_set: Maker, make_run: RunMaker) -> None:
    # retrieved: golds at 1, 2, 4, 6; of the first 4 the reranker serves one, right for q0 and q2.
    labelled, retrieved = _ranked(make_set, make_run, [1, 2, 4, 6])
    served = make_run({"q0": ["g0"], "q1": ["x1"], "q2": ["g2"], "q3": ["x1"]})
    rows = loss_split(labelled, "s", served, retrieved, served_k=1, retrieved_k=4, evaluated_k=10)
    assert [(row["step"], row["before"], row["after"], row["loss"], row["n"]) for row in rows] == [
        ("retrieval", 1.0, 0.75, 0.25, 4), ("cut", 0.75, 0.5, 0.25, 4)]
    assert all(row["low"] <= row["loss"] <= row["high"] for row in rows)
    with pytest.raises(DataError, match="the retrieved list of s ends at 10; recall at 20 needs a longer one"):
        loss_split(labelled, "s", served, retrieved, served_k=1, retrieved_k=20)


def test_a_terminal_shows_a_handful_of_cutoffs() -> None:
    assert shown_ks(40, [7, 60]) == [1, 2, 3, 5, 7, 10, 20, 30, 40]
