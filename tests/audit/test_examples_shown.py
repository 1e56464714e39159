"""What the report shows beside the numbers: the questions to look at first, and the distributions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from goldset.audit import Context, Drawn, Probe, audit_context, figures, worst_questions
from goldset.formats.sets import LabelledSet
from goldset.report import render_html

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


def test_worst_questions_are_ordered_and_stand_beside_their_gold(make_set: MakeSet, make_run: MakeRun) -> None:
    passages = {"d1": "the quick brown fox jumps over the lazy dog", "d2": "nothing alike", "d3": "third passage here"}
    labelled = make_set({"q1": ["d1"], "q2": ["d2"], "q3": ["gone"]}, passages=passages,
                        questions={"q1": "quick brown fox jumps over what", "q2": "why so", "q3": "and this"})
    runs = {"mine": make_run("mine", {"q1": ["d1", "d2", "d3"], "q2": ["d3", "d1", "d2"]}, family="a"),
            "other": make_run("other", {"q1": ["d2", "d3"], "q2": ["d3", "d2"]}, family="b")}
    context = Context(labelled, runs, eval_k=3, serving_k=2, served_system="mine")
    worst = worst_questions(context)
    (stale,) = worst["integrity"]
    assert (stale.question_id, stale.span_id, stale.passage, stale.said) == ("q3", "gone", None, "not in the corpus")
    # q1: rank 1 against not within 2; q2 the control has higher up, so it says nothing against mine.
    (circular,) = worst["circularity"]
    assert circular.said == "at rank 1 of mine, not within 2 of other"
    assert circular.passage == passages["d1"]
    # "quick brown fox jumps over" is five words in a row; q2 shares nothing.
    assert [(row.question_id, row.said.split(" words")[0]) for row in worst["leakage"]] == [("q1", "5")]
    assert [passages["d1"][slice(*row.mark)] for row in worst["leakage"] if row.mark] == ["quick brown fox jumps over"]
    (cut,) = worst["k_mismatch"]
    assert (cut.question_id, cut.said) == ("q2", "at rank 3 of mine: counted at 3, never served at 2")
    (hole,) = worst["completeness"]
    assert hole.said == "its only gold; the first result of mine, 'd3', was never judged"


def test_distributions_count_what_the_checks_read(make_set: MakeSet, make_run: MakeRun) -> None:
    lists = {f"q{i}": [f"x{i}-{rank}" for rank in range(1, 101)] for i in range(3)}
    labelled = make_set({"q0": ["x0-1", "x0-7"], "q1": ["x1-60"], "q2": ["nowhere"]})
    bars = figures(Context(labelled, {"a": make_run("a", lists)}, serving_k=7))
    (ranks,) = bars["circularity"]
    assert dict(zip(ranks.labels, ranks.values, strict=True)) == {
        "1": 1, "2": 0, "3–5": 0, "6–10": 1, "11–20": 0, "21–50": 0, "51–100": 1, "not in list": 1}
    (curve,) = bars["k_mismatch"]
    recall = dict(zip(curve.labels, curve.values, strict=True))
    assert (recall["5"], recall["7"], recall["100"]) == (0.5 / 3, 1 / 3, 2 / 3)  # (1/2, 0, 0), (1, 0, 0), (1, 1, 0)
    (counts,) = bars["completeness"]
    assert counts.values == (2, 1, 0, 0, 0)
    assert "leakage" not in bars  # no texts


def test_a_set_without_gold_has_none(make_set: MakeSet) -> None:
    context = Context(make_set({}, not_relevant=[("q", "d")]))
    assert (worst_questions(context), figures(context)) == ({}, {})
    assert audit_context(context).column("reason").to_pylist() == ["no_gold"]


def test_what_a_probe_found_comes_first_and_the_screen_is_not_drawn_on_its_scale(
        make_set: MakeSet, make_run: MakeRun) -> None:
    gold = {f"q{i:02}": [f"g{i}"] for i in range(30)}
    labelled = make_set(gold, passages={f"{kind}{i}": f"{kind} {i}" for i in range(30) for kind in "gxy"},
                        questions={q: f"question {q}" for q in gold})
    runs = {name: make_run(name, {q: [f"g{i}", f"{kind}{i}"] for i, q in enumerate(gold)})
            for name, kind in (("a", "x"), ("b", "y"))}
    drawn = tuple(Drawn(f"q{i:02}", f"{kind}{i}", 2, 0.5) for i in range(30) for kind in "xy")
    # Both of q04 and one of q02 and q09 answer.
    found = {("q02", "x2"), ("q04", "x4"), ("q04", "y4"), ("q09", "y9")}
    context = Context(labelled, runs, {"a": "lexical", "b": "dense"},
                      probing=lambda _: Probe(drawn, {row.pair: row.pair in found for row in drawn}))
    rows = worst_questions(context)["completeness"]
    assert [row.question_id for row in rows] == ["q04", "q02", "q09"]
    assert (rows[0].passage, rows[0].said) == ("g 4", "labelled as gold; people found that 'x4' and 'y4' answer too")
    assert rows[1].said.endswith("people found that 'x2' answers too")
    html = render_html("a set", audit_context(context))
    # 30 gold and four finds of weight 1: 30 / 34. The screen's 30 of 30 is another scale.
    assert "Share of the gold that the set holds: probe 0.882" in html
    assert "Share of the gold that the set holds: this set" not in html
