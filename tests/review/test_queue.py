"""The first wave: who is read in full, who is sampled, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.config import ReviewConfig
from goldset.errors import DataError
from goldset.review import first_wave
from goldset.review.queue import chosen_questions, permanent_number
from goldset.stats.votes import settle
from goldset.text import unit_hash

Pool = Callable[..., tuple[pa.Table, pa.Table, pa.Table]]


def wave(tables: tuple[pa.Table, pa.Table, pa.Table], *, seed: int = 7, **config: Any) -> list[dict[str, Any]]:
    found = first_wave(candidates=tables[0], verdicts=tables[1], spans=tables[2],
                       config=ReviewConfig(**({"second_share": 0.0} | config)), seed=seed)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_positives_and_pairs_without_a_verdict_are_read_in_full(pool: Pool) -> None:
    rows = wave(pool(20, p=2, r=30, v=1), rejection_min=1)
    counts = {reason: [row for row in rows if row["reason"] == reason] for reason in
              ("positive", "no_verdict", "rejection")}
    assert {reason: len(found) for reason, found in counts.items()} == {
        "positive": 40, "no_verdict": 20, "rejection": 60}  # 10 % of 20 x 30
    assert {(row["stratum"], row["stratum_size"]) for row in rows} == {
        ("positive", 40), ("no_verdict", 20), ("rejection", 600)}


def test_the_sample_is_the_smallest_numbers(pool: Pool) -> None:
    tables = pool(5, p=1, r=40)
    rows = wave(tables, rejection_min=17)
    taken = {(row["question_id"], row["span_id"]) for row in rows if row["reason"] == "rejection"}
    rejected = [(row["question_id"], row["span_id"]) for row in tables[1].to_pylist() if row["relevant"] is False]
    smallest = sorted(rejected, key=lambda pair: unit_hash(7, "rejections", *pair))[:20]  # max(17, 10 % of 200)
    assert taken == set(smallest)
    assert all(row["u"] == permanent_number(7, (row["question_id"], row["span_id"])) for row in rows)


def test_few_rejections_are_all_read(pool: Pool) -> None:
    rows = wave(pool(3, p=0, r=9))
    assert len(rows) == 27  # fewer than rejection_min = 300


def test_samples_nest_and_a_question_more_changes_no_number(pool: Pool) -> None:
    small = {(r["question_id"], r["span_id"]) for r in wave(pool(10, r=30), rejection_min=20, rejection_share=0.01)}
    large = {(r["question_id"], r["span_id"]) for r in wave(pool(10, r=30), rejection_min=60, rejection_share=0.01)}
    assert small < large
    before = {(r["question_id"], r["span_id"]): r["u"] for r in wave(pool(10, r=30))}
    after = {(r["question_id"], r["span_id"]): r["u"] for r in wave(pool(11, r=30))}
    assert {pair: after[pair] for pair in before.keys() & after.keys()} == {
        pair: before[pair] for pair in before.keys() & after.keys()}


def test_row_order_does_not_matter(pool: Pool) -> None:
    candidates, verdicts, spans = pool(6, p=2, r=20, v=1)
    turned = tuple(table.take(list(reversed(range(len(table))))) for table in (candidates, verdicts, spans))
    config = {"rejection_min": 10, "second_share": 0.2, "profile": "careful"}
    assert wave((candidates, verdicts, spans), **config) == wave(turned, **config)  # type: ignore[arg-type]


def test_careful_halves_the_sample_over_score_strata(pool: Pool) -> None:
    # 10 questions x 50 rejections; the top fifth of each is 10, so N_top = 100, N_rest = 400; 10 % = 50, half to each:
    # pi = 25/100 and 25/400 (METHODS 2.3).
    rows = wave(pool(10, p=1, r=50), profile="careful", rejection_min=1)
    strata = {name: [r for r in rows if r["stratum"] == name] for name in ("rejection_top", "rejection_rest")}
    assert {name: (len(found), found[0]["stratum_size"]) for name, found in strata.items()} == {
        "rejection_top": (25, 100), "rejection_rest": (25, 400)}
    # Span i has score 1 - i/100 and spans 1..50 are rejected: the upper stratum is spans 1..10.
    starts = {int(row["span_id"].split("#")[1].split("-")[0]) for row in strata["rejection_top"]}
    assert starts <= set(range(10, 110, 10))


def test_ties_go_to_the_upper_stratum_and_a_full_stratum_gives_way(make: Any) -> None:
    docs = make.documents(d="x" * 100)
    spans = make.spans(docs, [("d", 10 * i, 10 * i + 10) for i in range(10)])
    ids = spans.column("span_id").to_pylist()
    scores = [0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]  # bar at the second highest: three are tied
    rows = wave((make.candidates(("q", s) for s in ids),
                 make.verdicts(make.verdict("q", s, False, x) for s, x in zip(ids, scores, strict=True)), spans),
                profile="careful", rejection_min=8, rejection_share=0.1)
    strata = [row["stratum"] for row in rows]
    assert (strata.count("rejection_top"), strata.count("rejection_rest")) == (3, 5)
    assert {row["stratum_size"] for row in rows if row["stratum"] == "rejection_top"} == {3}


def test_a_judge_without_scores_has_one_stratum(pool: Pool) -> None:
    rows = wave(pool(4, r=20, scores=False), profile="careful", rejection_min=5)
    assert {row["stratum"] for row in rows} == {"positive", "rejection"}


def test_seconds_are_whole_questions_and_reach_the_share(pool: Pool) -> None:
    rows = wave(pool(30, p=2, r=20, v=1), rejection_min=1, second_share=0.1)
    first = [row for row in rows if row["reason"] != "second"]
    again = {(row["question_id"], row["span_id"]) for row in rows if row["reason"] == "second"}
    chosen = {question for question, _ in again}
    assert again == {(r["question_id"], r["span_id"]) for r in first if r["question_id"] in chosen}
    for reason in ("positive", "no_verdict", "rejection"):
        members = [r for r in first if r["reason"] == reason]
        doubled = [r for r in members if (r["question_id"], r["span_id"]) in again]
        assert len(doubled) >= math.ceil(0.1 * len(members)), reason
    strata = {(r["question_id"], r["span_id"]): (r["stratum"], r["stratum_size"], r["u"]) for r in first}
    assert all(strata[r["question_id"], r["span_id"]] == (r["stratum"], r["stratum_size"], r["u"])
               for r in rows if r["reason"] == "second")


def test_a_chosen_question_stays_chosen_when_the_queue_grows() -> None:
    one = [{"wave": 1, "question_id": f"q{i}", "reason": "positive"} for i in range(40)]
    two = [{"wave": 2, "question_id": f"q{i}", "reason": "no_gold"} for i in range(0, 40, 3)]
    assert chosen_questions(one, share=0.1, seed=1) <= chosen_questions([*one, *two], share=0.1, seed=1)
    assert len(chosen_questions(one, share=0.1, seed=1)) == 4


def test_questions_stand_together_and_items_are_shuffled(pool: Pool) -> None:
    rows = wave(pool(12, p=3, r=12))
    assert [row["order"] for row in rows] == list(range(len(rows)))
    questions = [row["question_id"] for row in rows]
    runs = [q for i, q in enumerate(questions) if i == 0 or questions[i - 1] != q]
    assert len(runs) == 12
    assert runs != sorted(runs)
    reasons = [row["reason"] for row in rows]
    assert {reasons.index("positive", 15 * i) - 15 * i for i in range(12)} != {0}  # positives do not come first


def test_the_last_attempt_and_the_majority_decide(make: Any) -> None:
    v = make.verdict
    table = make.verdicts([
        v("q", "a", None), v("q", "a", True, attempt=2),                        # a retry that parsed
        v("q", "b", True), v("q", "b", False, vote=2), v("q", "b", None, vote=3),  # no majority
        v("q", "c", False, 0.2), v("q", "c", False, 0.4, vote=2), v("q", "c", True, 0.6, vote=3),
        v("q", "d", True), v("q", "d", None, attempt=2),                        # the last attempt failed
    ])
    assert {pair[1]: (said.relevant, said.status, said.score) for pair, said in settle(table).items()} == {
        "a": (True, "ok", None), "b": (None, "split", None), "c": (False, "ok", pytest.approx(0.4)),
        "d": (None, "unparsed", None)}


def test_two_judges_and_unknown_spans_are_refused(make: Any, pool: Pool) -> None:
    candidates, verdicts, spans = pool(1)
    two = make.verdicts([*verdicts.to_pylist(), make.verdict("q0", "d#0-10", True, judge_id="other")])
    with pytest.raises(DataError, match=r"2 judges \(j, other\).*hand in the verdicts of the configured judge"):
        wave((candidates, two, spans))
    with pytest.raises(DataError, match="span 'd#0-10' is not in the table 'spans'"):
        wave((candidates, verdicts, spans.slice(1)))


def test_no_candidates_give_an_empty_queue(make: Any) -> None:
    assert wave((make.candidates([]), make.verdicts([]), make.spans(make.documents(), []))) == []


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), share=st.floats(0.01, 1), least=st.integers(1, 250))
def test_the_sample_size(n: int, share: float, least: int) -> None:
    from goldset.review.queue import _allocation

    found = _allocation({"rejection": [("q", str(i)) for i in range(n)]},
                        ReviewConfig.model_validate({"rejection_share": share, "rejection_min": least}))
    assert found["rejection"] <= n
    assert found["rejection"] >= min(n, least)
    assert found["rejection"] >= share * n - 1e-6
