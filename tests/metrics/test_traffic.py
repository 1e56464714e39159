"""recall_traffic: recall of the traffic from a sample of distinct questions, and its refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from goldset.formats.sets import LabelledSet
from goldset.metrics import score
from goldset.metrics.measures import Cut, measure_cut
from goldset.metrics.questions import Questions
from goldset.metrics.results import Results
from goldset.pipeline.scores import Measured, main_measures

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]
DISTINCT = {"unit": "distinct"}


def _rows(labelled: LabelledSet, run: pa.Table, *, by: tuple[str, ...] = (), slice_: str = "all") -> dict[str, Any]:
    return {row["measure"]: row for row in score(labelled, {"s": run}, ks=[1], by=by).to_pylist()
            if row["slice"] == slice_}


def _forty(make_set: Maker, make_run: RunMaker, *, lost: int = 10, **more: Any) -> tuple[LabelledSet, pa.Table]:
    """40 questions with one gold each: 20 asked three times and answered, 20 asked once, the last ``lost`` not."""
    names = [f"q{i:02}" for i in range(40)]
    questions: dict[str, Mapping[str, Any]] = {
        name: {"traffic_weight": 3.0 if i < 20 else 1.0, "language": "de" if i < 20 else "en",
               **{key: make(i) for key, make in more.items()}} for i, name in enumerate(names)}
    labelled = make_set({name: {f"g-{name}": True} for name in names}, questions=questions, manifest=DISTINCT)
    return labelled, make_run({name: [f"g-{name}" if i < 40 - lost else "x"] for i, name in enumerate(names)})


def test_three_questions_carry_no_claim_for_the_traffic(make_set: Maker, make_run: RunMaker) -> None:
    # METHODS 13, 19: recalls 1, .5, 0 asked 70, 20, 10 times: .80; Kish 100^2/5400 = 1.851852, below 30.
    labelled = make_set({"q1": {"a": True}, "q2": {"b": True, "c": True}, "q3": {"d": True}}, manifest=DISTINCT,
                        questions={q: {"traffic_weight": f} for q, f in (("q1", 70.0), ("q2", 20.0), ("q3", 10.0))})
    run = make_run({"q1": ["a"], "q2": ["b"], "q3": ["x"]})
    rows = _rows(labelled, run)
    refused = rows["recall_traffic"]
    assert [refused[name] for name in ("value", "low", "high", "method")] == [None] * 4
    assert (refused["reason"], refused["weighting"], refused["n"]) == ("traffic_on_few_questions", "traffic", 3)
    assert (rows["recall"]["value"], rows["recall"]["weighting"]) == (pytest.approx(0.5), "none")
    questions = Questions.of(labelled)
    behind = {row["measure"]: row["estimate"] for row in
              measure_cut(Cut(Results.of("s", questions, run), 1), np.ones(3, np.bool_))}
    assert behind["recall_traffic"].value == pytest.approx(0.80)


def test_the_refusal_is_seen_on_a_terminal(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _forty(make_set, make_run, traffic_weight=lambda i: 1000.0 if i == 0 else 1.0)
    found = score(labelled, {"s": run}, ks=[1])
    assert "recall_traffic@1  all    none (traffic_on_few_questions)" in Measured(labelled, found, []).text()
    assert "recall_traffic" in main_measures(found).column("measure").to_pylist()


def test_by_hand(make_set: Maker, make_run: RunMaker) -> None:
    # sum f = 60 + 20 = 80, sum f r = 60 + 10: .875. Kish 80^2/(20 x 9 + 20) = 32. Residuals f (r - .875): .375 twenty
    # times, .125 ten times, -.875 ten times; squares 2.8125 + .15625 + 7.65625 = 10.625; V = 40/39 x 10.625/80^2.
    labelled, run = _forty(make_set, make_run)
    row = _rows(labelled, run)["recall_traffic"]
    assert row["value"] == pytest.approx(0.875)
    assert (row["reason"], row["weighting"], row["n"]) == (None, "traffic", 40)
    assert row["method"] == "wilson_n_eff, Kish n_eff 32.0"
    size = 0.875 * 0.125 / (40 / 39 * 10.625 / 6400) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 39)) ** 2
    wilson = stats.binomtest(875, 1000).proportion_ci(method="wilson")  # same share, to see that the form is Wilson's
    z2 = stats.norm.ppf(0.975) ** 2

    def ends(n: float) -> list[float]:
        half = np.sqrt(z2 * (0.875 * 0.125 / n + z2 / (4 * n * n)))
        return [(0.875 + z2 / (2 * n) - half) / (1 + z2 / n), (0.875 + z2 / (2 * n) + half) / (1 + z2 / n)]

    assert ends(1000) == pytest.approx([wilson.low, wilson.high])
    assert [row["low"], row["high"]] == pytest.approx(ends(size))
    plain = _rows(labelled, run)["recall"]
    assert (plain["value"], plain["weighting"]) == (pytest.approx(0.75), "none")  # 30 of 40: never silently weighted


def test_at_the_edge_the_effective_number_counts(make_set: Maker, make_run: RunMaker) -> None:
    # Everything delivered: Clopper-Pearson of 32 of 32, not of 40 of 40: .025^(1/32).
    row = _rows(*_forty(make_set, make_run, lost=0))["recall_traffic"]
    assert (row["value"], row["high"]) == (1.0, 1.0)
    assert row["low"] == pytest.approx(0.025 ** (1 / 32))


def test_near_duplicates_are_one_unit_of_it(make_set: Maker, make_run: RunMaker) -> None:
    # Two by two: 10 clusters of weight 6 and 10 of weight 2, Kish 80^2/(360 + 40) = 16.
    labelled, run = _forty(make_set, make_run, cluster_id=lambda i: f"c{i // 2}")
    assert _rows(labelled, run)["recall_traffic"]["reason"] == "traffic_on_few_questions"


def test_each_slice_has_to_carry_its_own_claim(make_set: Maker, make_run: RunMaker) -> None:
    labelled, run = _forty(make_set, make_run)
    row = _rows(labelled, run, by=("language",), slice_="language=en")["recall_traffic"]  # 20 asked once: Kish 20
    assert row["reason"] == "traffic_on_few_questions"


@pytest.mark.parametrize("manifest", [{}, {"unit": "events"}])
def test_only_where_distinct_questions_were_drawn(manifest: dict[str, str], make_set: Maker,
                                                  make_run: RunMaker) -> None:
    assert "recall_traffic" not in _rows(make_set({"q": {"a": True}}, manifest=manifest), make_run({"q": ["a"]}))


def test_without_gold_the_reason_says_so(make_set: Maker, make_run: RunMaker) -> None:
    labelled = make_set({"q": {"a": False}}, manifest=DISTINCT)
    assert _rows(labelled, make_run({"q": ["a"]}))["recall_traffic"]["reason"] == "no_gold"
