"""Labels to decisions: history, conflicts, evidence, what two people said."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from goldset.review import paired_labels, resolve, status
from goldset.review.resolve import merge
from goldset.schemas import empty, from_rows


def queue(*items: tuple[str, str, str]) -> pa.Table:
    """(item, span, reason) of question q1."""
    return from_rows("queue", [
        {"item_id": item, "question_id": "q1", "span_id": span, "campaign": "rebuild", "wave": 1, "reason": reason,
         "stratum": reason, "stratum_size": 5, "u": 0.5, "order": order}
        for order, (item, span, reason) in enumerate(items)])


QUEUE = queue(("i1", "s1", "positive"), ("i2", "s1", "second"), ("i3", "s1", "adjudication"))
ITEM = {row["item_id"]: row for row in QUEUE.to_pylist()}


def decide(make: Any, *rows: dict[str, Any], asked: pa.Table = QUEUE) -> dict[str, Any]:
    found: list[dict[str, Any]] = resolve(queue=asked, labels=make.labels(*rows)).to_pylist()
    assert len(found) == 1
    return found[0]


def test_one_answer_decides_and_none_is_open(make: Any) -> None:
    assert decide(make, make.label(ITEM["i1"], "ada", True)) == {
        "question_id": "q1", "span_id": "s1", "relevant": True, "status": "decided", "basis": "human",
        "evidence": [{"start": 0, "end": 10}], "evidence_source": "selected", "label_ids": ["l0-i1-ada"]}
    nothing = resolve(queue=QUEUE, labels=empty("labels")).to_pylist()[0]
    assert (nothing["relevant"], nothing["status"], nothing["label_ids"]) == (None, "open", [])


def test_unknown_stays_unknown(make: Any) -> None:
    told = decide(make, make.label(ITEM["i1"], "ada", None))
    assert (told["relevant"], told["status"]) == (None, "cant_tell")
    told = decide(make, make.label(ITEM["i1"], "ada", None, reason="later"))
    assert (told["relevant"], told["status"]) == (None, "open")


def test_a_difference_is_a_conflict_until_adjudicated(make: Any) -> None:
    rows = [make.label(ITEM["i1"], "ada", True), make.label(ITEM["i2"], "ben", False, n=1)]
    told = decide(make, *rows)
    assert (told["relevant"], told["status"], told["evidence"]) == (None, "conflict", [])
    for answer, expected in ((True, (True, "decided")), (False, (False, "decided")), (None, (None, "cant_tell"))):
        told = decide(make, *rows, make.label(ITEM["i3"], "cleo", answer, n=2))
        assert (told["relevant"], told["status"]) == expected
        assert told["basis"] == "adjudicated"
        assert told["label_ids"] == ["l0-i1-ada", "l1-i2-ben", "l2-i3-cleo"]


def test_evidence_is_the_union_and_whole_spans_do_not_drown_it(make: Any) -> None:
    def yes(item: str, who: str, n: int, source: str, *ranges: tuple[int, int]) -> dict[str, Any]:
        return make.label(ITEM[item], who, True, n=n, evidence_source=source,  # type: ignore[no-any-return]
                          evidence=[{"start": a, "end": b} for a, b in ranges])

    told = decide(make, yes("i1", "ada", 0, "selected", (0, 10), (40, 50)), yes("i2", "ben", 1, "selected", (5, 20)))
    assert told["evidence"] == [{"start": 0, "end": 20}, {"start": 40, "end": 50}]
    told = decide(make, yes("i1", "ada", 0, "whole_span", (0, 100)), yes("i2", "ben", 1, "selected", (5, 20)))
    assert (told["evidence"], told["evidence_source"]) == ([{"start": 5, "end": 20}], "selected")


def test_merge_by_hand() -> None:
    assert merge([(5, 9), (0, 3), (3, 5), (8, 12), (8, 10)]) == [(0, 3), (3, 5), (5, 12)]


def test_history_is_read_whatever_the_order_of_the_rows(make: Any) -> None:
    first = make.label(ITEM["i1"], "ada", False)
    better = make.label(ITEM["i1"], "ada", True, n=1, supersedes=first["label_id"])
    sentences = make.label(ITEM["i1"], "ada", True, n=2, action="evidence", supersedes=better["label_id"],
                           evidence=[{"start": 3, "end": 7}])
    for rows in itertools.permutations([first, better, sentences]):
        told = decide(make, *rows)
        assert (told["relevant"], told["evidence"]) == (True, [{"start": 3, "end": 7}])
        assert told["label_ids"] == ["l1-i1-ada", "l2-i1-ada"]
    undone = make.label(ITEM["i1"], "ada", None, n=3, action="retract", reason=None, supersedes=better["label_id"])
    assert decide(make, first, better, sentences, undone)["status"] == "open"
    taken_back = make.label(ITEM["i1"], "ada", None, n=3, action="retract", reason=None,
                            supersedes=sentences["label_id"])
    assert decide(make, first, better, sentences, taken_back)["evidence"] == [{"start": 0, "end": 10}]


def test_the_later_answer_of_one_person_stands(make: Any) -> None:
    told = decide(make, make.label(ITEM["i1"], "ada", True), make.label(ITEM["i1"], "ada", False, n=1))
    assert (told["relevant"], told["status"]) == (False, "decided")


def test_notes_say_nothing(make: Any) -> None:
    told = decide(make, make.label(ITEM["i1"], "ada", None, action="note", reason=None, note="odd"))
    assert told["status"] == "open"


@pytest.mark.parametrize(("origin", "basis"), [("page", "searched"), ("import", "imported"), ("carried", "human")])
def test_the_basis_of_labels_nobody_asked_for(make: Any, origin: str, basis: str) -> None:
    found = make.label(None, "ada", True, origin=origin)
    assert decide(make, found, asked=empty("queue"))["basis"] == basis


def test_pairs_for_agreement_use_the_originals(make: Any) -> None:
    asked = queue(("i1", "s1", "positive"), ("i2", "s1", "second"), ("i3", "s1", "adjudication"),
                  ("i4", "s2", "rejection"), ("i5", "s2", "second"), ("i6", "s3", "rejection"))
    item = {row["item_id"]: row for row in asked.to_pylist()}
    rows = [make.label(item["i1"], "ada", True), make.label(item["i2"], "ben", False, n=1),
            make.label(item["i3"], "cleo", True, n=2), make.label(item["i4"], "ada", None, n=3),
            make.label(item["i5"], "ben", False, n=4), make.label(item["i6"], "ada", False, n=5)]
    table = paired_labels(queue=asked, labels=make.labels(*rows))
    assert table.to_dict("records") == [
        {"question_id": "q1", "span_id": "s1", "reason": "positive", "stratum": "positive", "stratum_size": 5,
         "assessor_a": "ada", "assessor_b": "ben", "relevant_a": True, "relevant_b": False},
        {"question_id": "q1", "span_id": "s2", "reason": "rejection", "stratum": "rejection", "stratum_size": 5,
         "assessor_a": "ada", "assessor_b": "ben", "relevant_a": None, "relevant_b": False}]
    assert len(paired_labels(queue=asked, labels=empty("labels"))) == 0


def test_status_counts_by_hand(make: Any) -> None:
    asked = queue(("i1", "s1", "positive"), ("i2", "s1", "second"), ("i4", "s2", "rejection"),
                  ("i5", "s3", "rejection"))
    item = {row["item_id"]: row for row in asked.to_pylist()}
    told = status(queue=asked, labels=make.labels(
        make.label(item["i1"], "ada", True, seconds=10.0), make.label(item["i2"], "ben", False, n=1, seconds=20.0),
        make.label(item["i4"], "ada", None, n=2, reason="later", seconds=3.0)))
    # Two answered at 15 s on average, two open: 30 s = 1/120 h. "Later" is no answer and its time is not counted.
    assert told == {
        "items": 4, "answered": 2, "open": 2, "later": 1, "conflicts": 1, "waves": 1,
        "reasons": {"positive": {"answered": 1, "open": 0}, "second": {"answered": 1, "open": 0},
                    "rejection": {"answered": 0, "open": 2}},
        "carried": {"items": 0, "others": 0},
        "assessors": {"ada": {"answered": 1, "seconds": 10.0}, "ben": {"answered": 1, "seconds": 20.0}},
        "seconds": 30.0, "seconds_per_item": 15.0, "hours_left": pytest.approx(30 / 3600)}
    nothing = status(queue=empty("queue"), labels=empty("labels"))
    assert (nothing["items"], nothing["seconds_per_item"], nothing["hours_left"]) == (0, None, None)
