"""The hole probe: what is drawn, and what people's answers say of the set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import Context, Drawn, Probe, audit_context, draw
from goldset.audit.completeness import Completeness
from goldset.errors import UsageError
from goldset.formats.sets import LabelledSet

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]
FAMILIES = {"a": frozenset({"lexical"}), "b": frozenset({"dense"})}


@pytest.fixture
def context(make_set: MakeSet, make_run: MakeRun) -> Context:
    """30 questions with one gold; two systems put it first, and four and five other passages of their own below it."""
    gold = {f"q{i:02}": [f"g{i}"] for i in range(30)}
    passages = {f"{kind}{i}{part}": f"text {kind} {i} {part}" for i in range(30) for kind in "xy" for part in "abcde"}
    passages |= {f"g{i}": f"gold {i}" for i in range(30)}
    labelled = make_set(gold, passages=passages, questions={q: f"question {q}" for q in gold},
                        not_relevant=[("q00", "x0a")])
    runs = {"a": make_run("a", {q: [f"g{i}", *(f"x{i}{part}" for part in "abcd")] for i, q in enumerate(gold)}),
            "b": make_run("b", {q: [f"g{i}", *(f"y{i}{part}" for part in "abcde")] for i, q in enumerate(gold)})}
    return Context(labelled, runs, {"a": "lexical", "b": "dense"}, serving_k=2, served_system="a")


def words(context: Context, probe: Probe) -> dict[tuple[str, str], dict[str, Any]]:
    asked = Context(context.labelled, context.given, context.families, serving_k=2, served_system="a",
                    probing=lambda _: probe)
    return {(row["subject"], row["reason"]): row for row in audit_context(asked, [Completeness()]).to_pylist()}


def test_two_unlabelled_results_a_question_are_drawn(context: Context) -> None:
    drawn = draw(context, context.runs, FAMILIES)
    assert len(drawn) == 60
    by_question: dict[str, list[Drawn]] = {}
    for row in drawn:
        by_question.setdefault(row.question_id, []).append(row)
    assert {len(rows) for rows in by_question.values()} == {2}
    # Nine other passages a question; in q00 one of them is judged already.
    assert {rows[0].reachable for question, rows in by_question.items() if question != "q00"} == {9}
    assert {row.reachable for row in by_question["q00"]} == {8}
    assert not {row.span_id for row in drawn} & {"x0a", *(f"g{i}" for i in range(30))}
    assert draw(context, context.runs, FAMILIES) == drawn


def test_related_systems_and_missing_texts_are_refused(context: Context, make_set: MakeSet) -> None:
    with pytest.raises(UsageError, match="needs two unrelated systems and has a, b"):
        draw(context, context.runs, dict.fromkeys("ab", frozenset({"lexical"})))
    with pytest.raises(UsageError, match="give --questions FILE and --corpus FILE"):
        draw(Context(make_set({"q": ["d"]}), context.given), context.runs, FAMILIES)


def answered(context: Context, relevant: Callable[[int, Drawn], bool | None]) -> Probe:
    drawn = draw(context, context.runs, FAMILIES)
    return Probe(drawn, {(row.question_id, row.span_id): relevant(i, row) for i, row in enumerate(drawn)})


def test_an_open_probe_decides_nothing(context: Context) -> None:
    drawn = draw(context, context.runs, FAMILIES)
    row = words(context, Probe(drawn, {(drawn[0].question_id, drawn[0].span_id): False}))["probe", "probe_open"]
    assert (row["verdict"], row["n"]) == ("insufficient", 1)
    assert "1 of 60 probed passages are answered" in row["message"]


def test_what_people_found_is_the_reason_and_what_they_are_asked_is_said(context: Context, make_set: MakeSet) -> None:
    rows = Completeness().run(dataclasses.replace(context, probing=lambda _: answered(context, lambda i, row: True)))
    probed, screen = (row for row in rows if row["reason"] == "incomplete")
    assert (rows[0], probed["subject"], screen["subject"]) == (probed, "probe", "all")
    assert probed["remedy"] == screen["remedy"] == "label these answers and read more of the unlabelled results"
    # Two gold a question, so that the screen has nothing to warn of; the probe is open.
    labelled = make_set({f"q{i:02}": [f"g{i}", f"h{i}"] for i in range(30)})
    asked = Probe(draw(context, context.runs, FAMILIES), {})
    rows = Completeness().run(dataclasses.replace(context, labelled=labelled, probing=lambda _: asked))
    assert [(row["subject"], row["reason"]) for row in rows] == [("all", "probe_open"), ("probe", "probe_open")]
    assert "whether unlabelled passages answer too, the probe asks people" in rows[0]["message"]


def test_many_finds_convict_and_lower_recall(context: Context) -> None:
    # The first of two in each question answers: weight 9/2 = 4.5 in 29 questions, 8/2 = 4 in q00; 134.5 missing beside
    # 30 labelled: 30/164.5 = .182.
    probe = answered(context, lambda i, row: i % 2 == 0)
    rows = words(context, probe)
    row = rows["probe", "incomplete"]
    assert (row["verdict"], row["n"]) == ("fail", 60)
    assert row["measured"] == pytest.approx(30 / 164.5)
    assert row["high"] < 0.3
    # The screen's one-gold warning gives way to what people read.
    assert rows["all", "incomplete"]["verdict"] == "fail"
    # Recall@2 of a: gold always; of the finds only those that stand second in a, x{i}a, are served.
    served = sum(item.reachable / 2 for i, item in enumerate(probe.drawn) if i % 2 == 0
                 and item.span_id == f"x{int(item.question_id[1:])}a")
    assert rows["a", "probe_recall@2"]["measured"] == pytest.approx((30 + served) / 164.5)


def test_no_find_acquits_where_the_bound_allows(context: Context, make_set: MakeSet, make_run: MakeRun) -> None:
    # Nothing found: at most 3.689 x the largest weight is missing (Fay-Feuer): 4.5 x 3.689 = 16.6 beside 30.
    row = words(context, answered(context, lambda i, row: False))["probe", "inconclusive"]
    assert (row["verdict"], row["measured"]) == ("insufficient", 1)
    assert row["low"] == pytest.approx(30 / (30 + 4.5 * 3.688879), abs=1e-4)
    gold = {f"q{i:03}": [f"g{i}"] for i in range(60)}
    labelled = make_set(gold, passages={f"{kind}{i}": f"{kind} {i}" for i in range(60) for kind in "gxy"},
                        questions={q: q for q in gold})
    runs = {name: make_run(name, {q: [f"g{i}", f"{kind}{i}"] for i, q in enumerate(gold)})
            for name, kind in (("a", "x"), ("b", "y"))}
    wide = Context(labelled, runs, {"a": "lexical", "b": "dense"})
    # Both passages of a question are read: weight 1, at most 3.689 missing beside 60: .942.
    rows = words(wide, answered(wide, lambda i, row: False))
    assert (rows["probe", "complete"]["verdict"], rows["all", "complete"]["verdict"]) == ("pass", "pass")


def test_a_probe_of_its_own_systems_never_acquits_a_set_built_here(make_set: MakeSet, make_run: MakeRun) -> None:
    gold = {f"q{i:03}": [f"g{i}", f"h{i}"] for i in range(60)}
    labelled = make_set(gold, passages={f"{kind}{i}": f"{kind} {i}" for i in range(60) for kind in "ghxy"},
                        questions={q: q for q in gold}, kind="published")
    runs = {name: make_run(name, {q: [f"g{i}", f"h{i}", f"{kind}{i}"] for i, q in enumerate(gold)})
            for name, kind in (("a", "x"), ("b", "y"))}
    context = Context(labelled, runs, {"a": "lexical", "b": "dense"})
    rows = words(context, answered(context, lambda i, row: False))
    assert rows["probe", "complete"]["verdict"] == "pass"
    assert rows["all", "pool_only"]["verdict"] == "insufficient"
    # A find convicts it all the same.
    assert words(context, answered(context, lambda i, row: True))["all", "incomplete"]["verdict"] == "fail"


def test_an_undecided_probe_says_how_many_passages_would_decide(context: Context) -> None:
    # Nothing found of 60: at most 3.689 x w beside 30 gold, with w = 9 / m. .90 needs w <= .904: all nine, weight 1,
    # leave 30 / 33.689 = .89, so nothing less than everything decides.
    row = words(context, answered(context, lambda i, row: False))["probe", "inconclusive"]
    assert row["remedy"] == ("have people read everything within reach, up to 9 passages a question (--probe-size 9); "
                             "less does not decide")
    # Three finds of sixty, weight 4.5 each: many more as rare as these would convict the set with less.
    row = words(context, answered(context, lambda i, row: i in (0, 20, 40)))["probe", "inconclusive"]
    size = int(row["remedy"].split("have people read ")[1].split()[0])
    assert 2 < size < 9
    assert f"(--probe-size {size})" in row["remedy"]


def test_what_people_cannot_tell_is_left_out_and_counted(context: Context) -> None:
    # One of two undecided: the other stands for all nine.
    rows = words(context, answered(context, lambda i, row: None if i % 2 else i == 2))
    row = rows["probe", "inconclusive"]
    assert row["n"] == 30
    assert "30 could not be told" in row["message"]
    assert row["measured"] == pytest.approx(30 / 39)
