"""Carried answers that are read again: which, how many, and what the two readings say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import ReviewConfig
from goldset.review import (
    carried_labels,
    export_items,
    import_answers,
    known_before,
    next_wave,
    paired_labels,
    reread,
    resolve,
)
from goldset.review.reread import carried_answers, checks
from goldset.schemas import CHECK, from_rows
from tests.review.house import CUT, TEXT, House, body

Pair = tuple[str, str]
Row = tuple[dict[str, Any], str, bool | None, bool]  # item, assessor, answer, carried?


def item(pair: Pair, reason: str = "rejection", wave: int = 1) -> dict[str, Any]:
    return {"item_id": f"{reason}-{pair[0]}-{pair[1]}", "question_id": pair[0], "span_id": pair[1],
            "campaign": "rebuild", "wave": wave, "reason": reason, "stratum": reason, "stratum_size": 1, "u": 0.5,
            "order": 0}


def review(*rows: Row, make: Any) -> dict[str, pa.Table]:
    """Queue and labels."""
    said = [make.label(row, who, answer, **({"origin": "carried", "note": f"carried from r{n}"} if carried else {}))
            for n, (row, who, answer, carried) in enumerate(rows)]
    items = {row["item_id"]: row for row, *_ in rows}
    return {"queue": from_rows("queue", list(items.values())), "labels": make.labels(*said)}


def drawn(tables: dict[str, pa.Table], share: float, seed: int = 3) -> dict[bool, set[Pair]]:
    rows = checks(**tables, share=share, seed=seed, campaign="rebuild", wave=2)
    assert {row["reason"] for row in rows} <= {"carried_check"}
    return {answer: {(row["question_id"], row["span_id"]) for row in rows if row["stratum"] == name}
            for answer, name in ((True, "carried_yes"), (False, "carried_no"))}


@pytest.fixture
def many(make: Any) -> dict[str, pa.Table]:
    # 40 questions by 3 passages: 30 yes and 90 no from an earlier rebuild.
    return review(*((item((f"q{q}", f"s{s}")), "ada", s == 0 and q < 30, True) for q in range(40) for s in range(3)),
                  make=make)


@pytest.mark.parametrize(("share", "yes", "no"), [(0.0, 0, 0), (0.03, 1, 3), (0.1, 3, 9), (1.0, 30, 90)])
def test_the_share_of_each_kind_rounded_up(many: dict[str, pa.Table], share: float, yes: int, no: int) -> None:
    # ceil(0.03 * 30) = ceil(0.9) = 1; ceil(0.03 * 90) = ceil(2.7) = 3.
    found = drawn(many, share)
    assert (len(found[True]), len(found[False])) == (yes, no)
    assert all(pair[1] == "s0" for pair in found[True])


def test_samples_nest_and_follow_the_seed_alone(many: dict[str, pa.Table]) -> None:
    few, more = drawn(many, 0.1), drawn(many, 0.4)
    assert few[True] < more[True]
    assert few[False] < more[False]
    turned = {name: table.take(list(reversed(range(len(table))))) for name, table in many.items()}
    assert drawn(turned, 0.1) == few
    assert drawn(many, 0.1, seed=4) != few
    rows = checks(**many, share=0.1, seed=3, campaign="rebuild", wave=2)
    grown = pa.concat_tables([many["queue"], from_rows("queue", [{**row, "order": 0} for row in rows])])
    assert checks(queue=grown, labels=many["labels"], share=0.1, seed=3, campaign="rebuild", wave=3) == []


def test_only_a_plain_answer_of_an_earlier_rebuild_is_carried(make: Any) -> None:
    first, second = ("q1", "s1"), ("q2", "s1")
    tables = review(
        (item(first), "ada", True, True),
        (item(second), "ada", True, True), (item(second, "second"), "ben", False, True),  # they differ
        (item(("q3", "s1")), "ada", None, True),  # can't tell
        (item(("q4", "s1")), "ada", False, False),  # given here
        (item(("q5", "s1")), "ada", False, True), (item(("q5", "s1"), "adjudication"), "cleo", False, False),
        make=make)
    assert carried_answers(**tables) == {first: True, ("q5", "s1"): False}
    # q5 was adjudicated: three people have read it.
    assert drawn(tables, 1.0) == {True: {first}, False: set()}


def test_an_answer_taken_from_another_item_of_this_review_is_not_carried(make: Any) -> None:
    pair = ("q1", "s1")
    given = make.label(item(pair), "ada", False)
    copied = make.label(item(pair, "hole"), "ada", False, n=1, origin="carried",
                        note=f"carried from {given['label_id']}")
    queue = from_rows("queue", [item(pair), item(pair, "hole")])
    assert carried_answers(queue=queue, labels=make.labels(given, copied)) == {}


def test_agreement_by_hand(make: Any) -> None:
    # Carried and read again: yes yes, yes no, no no, no no, no can't tell; one no is still open, one was never asked.
    cases: list[tuple[bool, bool | None]] = [(True, True), (True, False), (False, False), (False, False), (False, None)]
    rows: list[Row] = [(item((f"q{n}", "s")), "ada", before, True) for n, (before, _) in enumerate(cases)]
    rows += [(item((f"q{n}", "s"), "carried_check"), "ben" if n else "ada", now, False)
             for n, (_, now) in enumerate(cases)]
    tables = review(*rows, (item(("q8", "s")), "ada", False, True), (item(("q9", "s")), "ada", False, True), make=make)
    tables["queue"] = pa.concat_tables([tables["queue"], from_rows("queue", [item(("q8", "s"), "carried_check")])])
    found = reread(**tables)
    assert found["carried"] == {"yes": 2, "no": 5}
    assert (found["asked"], found["open"], found["cannot_tell"], found["same_reader"]) == (6, 1, 1, 1)
    # 3 of 4 agree; positive agreement 2a / (2a + b + c) = 2 / (2 + 1).
    assert (found["n"], found["agreement"]) == (4, 0.75)
    assert found["positive_agreement"] == pytest.approx(2 / 3)
    # Wilson, z² = 3.841459: centre (.75 + z²/8)/(1 + z²/4) = .627525, half z √(.1875/4 + z²/64)/(1 + z²/4) = .326887.
    assert found["agreement_interval"] == pytest.approx((0.300638, 0.954412), abs=1e-5)
    # It is no second label: the agreement of readers and the decision on q0 do not know it.
    assert paired_labels(**tables).empty
    states = {row["question_id"]: (row["status"], row["relevant"]) for row in resolve(**tables).to_pylist()}
    assert states == {"q0": ("decided", True), "q1": ("conflict", None), "q2": ("decided", False),
                      "q3": ("decided", False), "q4": ("conflict", None), "q8": ("decided", False),
                      "q9": ("decided", False)}


def test_nothing_carried_is_null_not_zero(make: Any) -> None:
    found = reread(**review((item(("q", "s")), "ada", True, False), make=make))
    assert (found["n"], found["agreement"], found["agreement_interval"], found["positive_agreement"]) == (
        0, None, None, None)


def test_a_difference_is_adjudicated_and_the_adjudication_wins(
        make: Any, pool: Callable[..., tuple[pa.Table, pa.Table, pa.Table]]) -> None:
    candidates, verdicts, spans = pool(1, p=1, r=1)
    pairs = [("q0", span) for span in spans.column("span_id").to_pylist()]
    rows = [(item(pair, reason), "ada", reason == "positive", True)
            for pair, reason in zip(pairs, ("positive", "rejection"), strict=True)]
    tables = review(*rows, make=make)
    config = ReviewConfig(second_share=0.0, rejection_min=1)

    def grow() -> list[dict[str, Any]]:
        wave = next_wave(**tables, candidates=candidates, verdicts=verdicts, spans=spans, config=config, seed=3)
        tables["queue"] = pa.concat_tables([tables["queue"], wave])
        found: list[dict[str, Any]] = wave.to_pylist()
        return found

    def answer(row: dict[str, Any], who: str, relevant: bool, n: int) -> None:
        tables["labels"] = pa.concat_tables([tables["labels"], make.labels(make.label(row, who, relevant, n=n))])

    again = {row["span_id"]: row for row in grow()}
    assert {row["reason"] for row in again.values()} == {"carried_check"}  # 3 %: one yes and one no
    assert set(again) == {span for _, span in pairs}
    answer(again[pairs[0][1]], "ben", False, 10)
    answer(again[pairs[1][1]], "ben", False, 11)
    (third,) = grow()
    assert (third["reason"], third["span_id"]) == ("adjudication", pairs[0][1])
    answer(third, "cleo", False, 12)
    assert grow() == []
    decided = {row["span_id"]: (row["relevant"], row["basis"]) for row in resolve(**tables).to_pylist()}
    assert decided == {pairs[0][1]: (False, "adjudicated"), pairs[1][1]: (False, "human")}
    assert reread(**tables)["agreement"] == 0.5


def test_reading_again_changes_no_chance(make: Any) -> None:
    # Once a judge positive, carried as a yes, and now among the rejections that are drawn: known before the sample.
    pair = ("q1", "s1")
    read = make.label(item(pair, "positive"), "ada", True, campaign="earlier")
    rows = [(item(pair), "ada", True, True), (item(pair, CHECK), "ben", False, False),
            (item(pair, "adjudication"), "cleo", True, False)]
    before = {"earlier_queue": from_rows("queue", [item(pair, "positive")]), "earlier_labels": make.labels(read)}
    for count in (1, 2, 3):
        assert known_before(**review(*rows[:count], make=make), **before) == {pair}
    # So it is where the earlier review had drawn the pair but knew it too, and only read it again.
    tables = review(*rows[:1], make=make)
    earlier = review((item(pair), "ada", True, True), (item(pair, CHECK), "ben", True, False), make=make)
    assert known_before(**tables, earlier_queue=earlier["queue"], earlier_labels=earlier["labels"]) == {pair}


@pytest.mark.parametrize(("settled", "carried"), [(False, False), (True, True), (None, True)])
def test_a_passage_found_by_searching_comes_with_what_was_decided(make: Any, settled: bool | None,
                                                                  carried: bool) -> None:
    docs = make.documents(d=TEXT)
    spans, questions = make.spans(docs, [("d", 0, CUT)]), make.questions("when?")
    pair = (questions.column("question_id")[0].as_py(), f"d#0-{CUT}")
    where = {"question_id": pair[0], "span_id": pair[1], "campaign": "earlier",
             "span_text_hash": spans.column("text_hash")[0].as_py()}
    third = {**item(pair, "adjudication"), "campaign": "earlier"}
    found = make.label(None, "ada", True, **where)
    rows = [found] if settled is None else [found, make.label(third, "cleo", settled, n=1, **where)]
    (row,) = carried_labels(
        queue=from_rows("queue", []), labels=make.labels(), earlier_queue=from_rows("queue", [third]),
        earlier_labels=make.labels(*rows), spans=spans, questions=questions, candidates=make.candidates([pair]),
        rubric_major="1", campaign="now")
    assert row["relevant"] is carried


def again(house: House, *reasons: str) -> None:
    """Further items for the pair of the first one; its own stands answered by ada in an earlier rebuild."""
    first = house.rows[0]
    house.store.append_queue(from_rows("queue", [
        {**first, "item_id": f"{reason}-more", "reason": reason, "order": 1000 + n}
        for n, reason in enumerate(reasons)]))
    house.store.append_labels([earlier(house, first["item_id"], "ada")])


def earlier(house: House, item_id: str, who: str) -> dict[str, Any]:
    """A carried no."""
    first = house.rows[0]
    return {"label_id": f"c{item_id}", "item_id": item_id, "question_id": first["question_id"],
            "span_id": first["span_id"], "span_text_hash": "h", "rubric_version": "1.0", "campaign": "rebuild",
            "assessor": who, "action": "label", "relevant": False, "reason": None, "evidence": [],
            "evidence_source": None, "supersedes": None, "origin": "carried", "note": "carried from r1",
            "seconds": None, "time": house.now - timedelta(days=40)}


def test_the_page_gives_a_check_to_somebody_else_and_looks_the_same(house: Callable[..., House]) -> None:
    desk = house(questions=1)
    again(desk, CHECK)
    fresh, check = (desk.service.state(who)["item"] for who in ("ada", "ben"))
    # ada gets the new passage, ben the one that ada's carried answer is about.
    assert check["passage"]["text"] == TEXT[:CUT] != fresh["passage"]["text"]
    assert _shape(fresh) == _shape(check)
    assert desk.service.state("cleo")["item"] is None


def _shape(value: Any) -> Any:
    return {key: _shape(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value)


def test_who_works_alone_reads_their_own_again(house: Callable[..., House]) -> None:
    desk = house(reasons=("rejection",), questions=1)
    again(desk, "second", CHECK)
    desk.store.append_labels([earlier(desk, "second-more", "ben")])  # who has left
    client = desk.client("ada")
    shown = client.get("/api/next").json()["item"]
    told = client.post("/api/answer", json=body(shown, "no")).json()
    assert (told["item"], told["unanswered"]) == (None, None)
    assert [row["item_id"] for row in desk.labels() if row["origin"] == "page"] == [f"{CHECK}-more"]


def test_files_hold_a_check_too(house: Callable[..., House], tmp_path: Path) -> None:
    desk = house(reasons=("rejection",), questions=1)
    again(desk, CHECK)
    path = tmp_path / "items.jsonl"
    assert export_items(desk.store, path, assessor="ben", now=desk.now) == 1
    assert CHECK not in path.read_text().replace(f"{CHECK}-more", "")
    path.write_text(path.read_text().replace('"answer": ""', '"answer": "no"'))
    assert import_answers(desk.store, path, time=desk.now, assessor="ben") == 1
