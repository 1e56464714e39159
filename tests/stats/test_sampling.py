"""Inclusion probabilities from queue and decisions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pyarrow as pa

from goldset.stats.sampling import inclusion_probabilities, strata_counts


def _queue(*rows: tuple[str, str, str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([
        {"question_id": q, "span_id": s, "campaign": "rebuild", "reason": reason, "stratum": stratum,
         "stratum_size": size} for q, s, reason, stratum, size in rows])


def _decisions(*rows: tuple[str, str, str, bool | None]) -> pa.Table:
    return pa.table({"question_id": [r[0] for r in rows], "span_id": [r[1] for r in rows],
                     "status": [r[2] for r in rows], "relevant": pa.array([r[3] for r in rows], pa.bool_())})


def _chances(queue: pa.Table, decisions: pa.Table) -> dict[str, float]:
    return {row["span_id"]: row["inclusion_prob"] for row in inclusion_probabilities(queue, decisions).to_pylist()}


QUEUE = [("q1", "p", "positive", "positive", 1), ("q1", "r1", "rejection", "rejection", 10),
         ("q2", "r2", "rejection", "rejection", 10), ("q2", "r3", "rejection", "rejection", 10)]


def test_share_of_the_stratum_that_was_read() -> None:
    # r1 and r2 are read, r3 is open: 2 of 10.
    decisions = _decisions(("q1", "p", "decided", True), ("q1", "r1", "decided", False),
                           ("q2", "r2", "cant_tell", None), ("q2", "r3", "open", None))
    assert _chances(_queue(*QUEUE), decisions) == {"p": 1.0, "r1": 0.2, "r2": 0.2}


def test_a_top_up_raises_the_chance_of_all() -> None:
    decided = [("q1", "r1", "decided", False), ("q2", "r2", "decided", False), ("q2", "r3", "decided", True)]
    assert _chances(_queue(*QUEUE), _decisions(*decided[:2])) == {"r1": 0.2, "r2": 0.2}
    assert _chances(_queue(*QUEUE), _decisions(*decided)) == {"r1": 0.3, "r2": 0.3, "r3": 0.3}


def test_full_reading_carried_and_searched_pairs_are_certain() -> None:
    queue = _queue(*QUEUE, ("q2", "r3", "no_gold", "no_gold", 1))
    decisions = _decisions(("q1", "r1", "decided", False), ("q2", "r3", "decided", True), ("q3", "s", "decided", True))
    # r3 was drawn and then read because its question had no gold; s was never asked for: found by search or carried.
    assert _chances(queue, decisions) == {"r1": 0.2, "r3": 1.0, "s": 1.0}


def test_second_labels_and_adjudication_change_nothing() -> None:
    decisions = _decisions(("q1", "r1", "decided", False), ("q2", "r2", "decided", False))
    again = _queue(*QUEUE, ("q1", "r1", "second", "second", 1), ("q1", "r1", "adjudication", "adjudication", 1))
    assert _chances(again, decisions) == _chances(_queue(*QUEUE), decisions)


def test_row_order_does_not_matter() -> None:
    rows: list[Any] = [("q1", "r1", "decided", False), ("q2", "r2", "decided", False)]
    forward = inclusion_probabilities(_queue(*QUEUE), _decisions(*rows))
    assert forward.equals(inclusion_probabilities(_queue(*reversed(QUEUE)), _decisions(*reversed(rows))))


def test_strata_counts() -> None:
    decisions = _decisions(("q1", "r1", "decided", True), ("q2", "r2", "decided", False), ("q2", "r3", "open", None))
    assert strata_counts(_queue(*QUEUE), decisions) == [{"stratum": "rejection", "size": 10, "read": 2, "found": 1}]


def test_known_pairs_are_a_stratum_of_their_own() -> None:
    # Ten rejections. Before the sample was drawn, r1 (drawn all the same), x and y (not drawn) were known: seven are
    # left, of which r2 and r3 were drawn and read. p is known too, but in no sampled stratum.
    known = {("q1", "r1"): "rejection", ("q3", "x"): "rejection", ("q3", "y"): "rejection", ("q1", "p"): None}
    decisions = _decisions(("q1", "p", "decided", True), ("q1", "r1", "decided", True), ("q2", "r2", "decided", True),
                           ("q2", "r3", "decided", False), ("q3", "x", "decided", True), ("q3", "y", "decided", False))
    chances = {row["span_id"]: row["inclusion_prob"]
               for row in inclusion_probabilities(_queue(*QUEUE), decisions, known).to_pylist()}
    assert chances == {"p": 1, "r1": 1, "r2": 2 / 7, "r3": 2 / 7, "x": 1, "y": 1}
    assert strata_counts(_queue(*QUEUE), decisions, known=known) == [
        {"stratum": "rejection", "size": 7, "read": 2, "found": 1}]


def test_where_all_that_was_drawn_was_known_it_speaks_for_the_rest() -> None:
    # Nothing else was read: were r1 to r3 a stratum of their own, nobody would have sampled the others. x, which was
    # not drawn, stays apart: three of nine.
    pairs = [("q1", "r1", True), ("q2", "r2", False), ("q2", "r3", False), ("q3", "x", True)]
    known = {(question, span): "rejection" for question, span, _ in pairs}
    decisions = _decisions(*((question, span, "decided", relevant) for question, span, relevant in pairs))
    chances = {row["span_id"]: row["inclusion_prob"]
               for row in inclusion_probabilities(_queue(*QUEUE), decisions, known).to_pylist()}
    assert chances == {"r1": 3 / 9, "r2": 3 / 9, "r3": 3 / 9, "x": 1}


def test_reading_what_is_served_leaves_the_total_unbiased() -> None:
    # Four rejections, a and c relevant, a and b served. Two of the four are sampled: six equally likely samples. The
    # holes make a and b certain (weight 1) whatever the sample; c is in three samples, with weight 4 / 2. On average
    # 1 + 3/6 x 2 = 2 relevant rejections, which is what there is. Had a kept its weight where it was sampled, and been
    # a hole where not, it would count 3/6 x 2 + 3/6 x 1 = 1.5.
    totals = []
    for sample in combinations("abcd", 2):
        rows = [("q", span, "rejection", "rejection", 4) for span in sample]
        queue = _queue(*rows, ("q", "a", "hole", "hole x", 2), ("q", "b", "hole", "hole x", 2))
        read = sorted({*sample, "a", "b"})
        decisions = _decisions(*(("q", span, "decided", span in "ac") for span in read))
        totals.append(sum(1 / chance for span, chance in _chances(queue, decisions).items() if span in "ac"))
        # What the sample shows of pairs that stand for others: c alone.
        assert strata_counts(queue, decisions)[0]["found"] == ("c" in sample)
    assert sum(totals) / 6 == 2


def test_the_deep_probe_is_drawn_twice() -> None:
    # q has a window of 10 of which 5 were drawn, p one of 4 of which all were. Of the two rejections one was read: its
    # chance is 5/10 x 1/2; the positive of p was certain to be read once drawn, and it was.
    queue = _queue(("q", "r", "deep", "deep_rejection", 2), ("p", "y", "deep", "deep_positive", 1))
    decisions = _decisions(("q", "r", "decided", False), ("p", "y", "decided", True))
    found = inclusion_probabilities(queue, decisions, entered={"q": 0.5, "p": 1.0}).to_pylist()
    assert {row["span_id"]: row["inclusion_prob"] for row in found} == {"r": 0.25, "y": 1.0}
    assert strata_counts(queue, decisions) == []  # not among the rejections of the pool
    assert [row["stratum"] for row in strata_counts(queue, decisions, deep=True)] == ["deep_positive", "deep_rejection"]
    # Served and read whole since, it is certain.
    served = _queue(("q", "r", "deep", "deep_rejection", 2), ("q", "r", "hole", "hole x", 1))
    found = inclusion_probabilities(served, _decisions(("q", "r", "decided", False)), entered={"q": 0.5}).to_pylist()
    assert found[0]["inclusion_prob"] == 1.0
