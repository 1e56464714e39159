"""Later waves: what answers make necessary, and when the queue is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import ReviewConfig
from goldset.review import first_wave, is_closed, next_wave
from goldset.schemas import empty

Pool = Callable[..., tuple[pa.Table, pa.Table, pa.Table]]


class Review:
    """A review played by hand."""

    def __init__(self, tables: tuple[pa.Table, pa.Table, pa.Table], make: Any, **config: Any) -> None:
        self.candidates, self.verdicts, self.spans = tables
        self.config = ReviewConfig(**({"second_share": 0.0, "rejection_min": 1} | config))
        self.make = make
        self.queue = first_wave(candidates=self.candidates, verdicts=self.verdicts, spans=self.spans,
                                config=self.config, seed=3)
        self.rows: list[dict[str, Any]] = []

    def next(self) -> list[dict[str, Any]]:
        found = self.grown()
        rows: list[dict[str, Any]] = found.to_pylist()
        self.queue = pa.concat_tables([self.queue, found])
        return rows

    def grown(self) -> pa.Table:
        return next_wave(queue=self.queue, labels=self.labels, candidates=self.candidates, verdicts=self.verdicts,
                         spans=self.spans, config=self.config, seed=3)

    @property
    def labels(self) -> pa.Table:
        return self.make.labels(*self.rows) if self.rows else empty("labels")

    def answer(self, relevant: Callable[[dict[str, Any]], bool | None], assessor: str = "ada",
               reasons: tuple[str, ...] = ("positive", "rejection", "no_verdict", "no_gold")) -> None:
        done = {row["item_id"] for row in self.rows}
        for row in self.queue.to_pylist():
            if row["item_id"] not in done and row["reason"] in reasons:
                self.rows.append(self.make.label(row, assessor, relevant(row), n=len(self.rows)))

    def closed(self) -> bool:
        return is_closed(queue=self.queue, labels=self.labels, grown=self.grown())


def test_basic_closes_when_everything_is_answered(pool: Pool, make: Any) -> None:
    review = Review(pool(4, r=20), make)
    assert review.next() == []
    assert not review.closed()
    review.answer(lambda row: row["reason"] == "positive")
    assert review.next() == []
    assert review.closed()


def test_later_keeps_an_item_open_and_cant_tell_answers_it(pool: Pool, make: Any) -> None:
    review = Review(pool(1, p=1, r=0), make)
    item = review.queue.to_pylist()[0]
    review.rows = [make.label(item, "ada", None, reason="later")]
    assert not review.closed()
    review.rows = [make.label(item, "ada", None, reason="cant_tell")]
    assert review.closed()


def test_a_larger_share_tops_up_without_asking_again(pool: Pool, make: Any) -> None:
    review = Review(pool(10, r=30), make)  # 300 rejections: 30 sampled
    review.answer(lambda row: True)
    review.config = review.config.model_copy(update={"rejection_share": 0.2})
    added = review.next()
    assert len(added) == 30
    assert {(row["reason"], row["wave"], row["stratum_size"]) for row in added} == {("rejection", 2, 300)}
    pairs = [(row["question_id"], row["span_id"]) for row in review.queue.to_pylist()]
    assert len(pairs) == len(set(pairs))
    assert min(row["order"] for row in added) == 10 + 30
    assert review.next() == []


def test_careful_reads_a_question_without_gold_in_full(pool: Pool, make: Any) -> None:
    review = Review(pool(3, p=1, r=20), make, profile="careful")
    asked = {(r["question_id"], r["span_id"]) for r in review.queue.to_pylist()}
    review.answer(lambda row: row["question_id"] != "q1" and row["reason"] == "positive")
    added = [row for row in review.next() if row["reason"] == "no_gold"]
    expected = {("q1", s) for s in review.spans.column("span_id").to_pylist()} - asked
    assert {(row["question_id"], row["span_id"]) for row in added} == expected
    assert {(row["stratum"], row["stratum_size"]) for row in added} == {("no_gold", len(expected))}


def test_no_full_reading_while_an_item_is_open_or_in_the_basic_profile(pool: Pool, make: Any) -> None:
    for profile, open_items in (("careful", True), ("basic", False)):
        review = Review(pool(1, p=1, r=20), make, profile=profile)
        review.answer(lambda row: False)
        if open_items:
            review.rows[0] |= {"relevant": None, "reason": "later"}
        assert review.next() == []


def test_a_question_with_nothing_to_ask_is_read_in_full_at_once(pool: Pool, make: Any) -> None:
    # 200 rejections in 10 questions, one sampled: nine questions have no item and so no gold.
    review = Review(pool(10, p=0, r=20), make, profile="careful", rejection_share=0.001)
    sampled = {row["question_id"] for row in review.queue.to_pylist()}
    assert {row["question_id"] for row in review.next()} == {f"q{i}" for i in range(10)} - sampled


def test_careful_gives_every_yes_a_second_reader(pool: Pool, make: Any) -> None:
    review = Review(pool(3, p=2, r=10), make, profile="careful")
    review.answer(lambda row: row["reason"] == "positive" and row["span_id"] == "d#0-10")
    added = review.next()
    assert {(row["question_id"], row["span_id"], row["reason"]) for row in added} == {
        (f"q{i}", "d#0-10", "second") for i in range(3)}
    assert {row["stratum"] for row in added} == {"positive"}
    review.answer(lambda row: True, "ben", ("second",))
    assert review.next() == []
    assert review.closed()


def test_a_searched_yes_gets_a_second_reader_too(pool: Pool, make: Any) -> None:
    review = Review(pool(1, p=1, r=0), make, profile="careful")
    review.answer(lambda row: False)
    found = make.label({"item_id": None, "question_id": "q0", "span_id": "elsewhere"}, "ada", True, n=9)
    review.rows.append(found)
    added = review.next()
    assert [(row["span_id"], row["reason"], row["stratum"], row["stratum_size"]) for row in added] == [
        ("elsewhere", "second", "second", 1)]


def test_differing_answers_are_adjudicated_once(pool: Pool, make: Any) -> None:
    review = Review(pool(2, p=1, r=0), make, second_share=1.0)
    review.answer(lambda row: True)
    review.answer(lambda row: row["question_id"] == "q0", "ben", ("second",))
    added = review.next()
    assert [(row["question_id"], row["reason"], row["wave"]) for row in added] == [("q1", "adjudication", 2)]
    assert review.next() == []
    assert not review.closed()
    review.answer(lambda row: None, "cleo", ("adjudication",))
    assert review.next() == []
    assert review.closed()


def test_yes_against_cant_tell_is_a_difference(pool: Pool, make: Any) -> None:
    review = Review(pool(1, p=1, r=0), make, second_share=1.0)
    review.answer(lambda row: True)
    review.answer(lambda row: None, "ben", ("second",))
    assert [row["reason"] for row in review.next()] == ["adjudication"]


def test_no_gold_waits_for_the_adjudication(pool: Pool, make: Any) -> None:
    review = Review(pool(1, p=1, r=20), make, profile="careful")
    review.answer(lambda row: row["reason"] == "positive")
    review.next()
    review.answer(lambda row: False, "ben", ("second",))
    assert [row["reason"] for row in review.next()] == ["adjudication"]
    review.answer(lambda row: False, "cleo", ("adjudication",))
    assert {row["reason"] for row in review.next()} == {"no_gold"}


@pytest.mark.parametrize("profile", ["basic", "careful"])
def test_it_always_closes_and_rows_never_repeat(pool: Pool, make: Any, profile: str) -> None:
    review = Review(pool(8, p=2, r=25, v=1), make, profile=profile, second_share=0.3)
    for _ in range(20):
        review.answer(lambda row: hash_bit(row, "ada"), "ada")
        review.answer(lambda row: hash_bit(row, "ben"), "ben", ("second",))
        review.answer(lambda row: hash_bit(row, "cleo"), "cleo", ("adjudication",))
        if not review.next() and review.closed():
            break
    assert review.closed()
    keys = [(r["question_id"], r["span_id"], r["reason"] in ("second", "adjudication") and r["reason"])
            for r in review.queue.to_pylist()]
    assert len(keys) == len(set(keys))
    ids = review.queue.column("item_id").to_pylist()
    assert len(ids) == len(set(ids))


def hash_bit(row: dict[str, Any], who: str) -> bool:
    from goldset.text import unit_hash

    return unit_hash(row["question_id"], row["span_id"], who if unit_hash(row["span_id"]) < 0.5 else "") < 0.1


def test_pure_and_independent_of_row_order(pool: Pool, make: Any) -> None:
    review = Review(pool(5, p=2, r=20), make, profile="careful", second_share=0.2)
    review.answer(lambda row: row["span_id"] == "d#0-10")
    once = review.grown()
    assert once == review.grown()
    review.queue = review.queue.take(list(reversed(range(len(review.queue)))))
    review.rows.reverse()
    assert once == review.grown()
