"""Who is asked what next: assignments of whole questions, and the state that the page shows.

A question has four layers: *first* (every reason but the next three), *second*, *check* (carried answers, read again)
and *adjudication*. One person works one layer of a question at a time, and the assignment is made when they open it:

* second goes only to somebody who has no part in the other layers, and only once the first layer has its person;
* check goes to somebody who has not answered these pairs; where everybody at work has, to any of them;
* adjudication goes to somebody without a part in the question; where everybody known has one, to any of them;
* a person who has not answered anything for ``IDLE`` no longer holds their questions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from goldset.schemas import CHECK

from .database import Assignment, ReviewStore
from .history import Answer, Pair, standing

IDLE = timedelta(hours=12)
Seat = tuple[str, str]  # question, layer


def layer_of(reason: str) -> str:
    """The layer of a queue reason."""
    return "check" if reason == CHECK else reason if reason in ("second", "adjudication") else "first"


class Desk:
    """A view of the store that follows what other processes write. Methods are safe for threads."""

    def __init__(self, store: ReviewStore, *, reviewers: Sequence[str] = ()) -> None:
        self.store = store
        self.lock = threading.RLock()
        self._known = set(reviewers)
        self._here = set(reviewers)  # of them, who is at work: not only behind carried answers
        self._fixed = bool(reviewers)
        self.items: dict[str, dict[str, Any]] = {}
        self._seats: dict[Seat, list[str]] = {}
        self._rows: dict[Pair, dict[str, dict[str, Any]]] = {}
        self._standing: dict[Pair, list[Answer]] = {}
        self.answered: set[str] = set()
        self._open: dict[Seat, set[str]] = {}
        self._holders: dict[Seat, list[Assignment]] = {}
        self._active: dict[str, datetime] = {}
        self._last: dict[str, list[tuple[str, Pair]]] = {}  # assessor -> labels in the order of storing
        self._read: dict[str, set[Pair]] = {}  # question -> pairs with a row
        self._seen = {"queue": 0, "labels": 0, "assignments": 0}
        self.sync()

    # what others wrote ------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Read what has been written since the last call, by this process or another."""
        with self.lock:
            rows, self._seen["queue"] = self.store.queue_since(self._seen["queue"])
            fresh = [row for row in rows if row["item_id"] not in self.items]
            for row in fresh:
                seat = (row["question_id"], layer_of(row["reason"]))
                self.items[row["item_id"]] = row
                self._seats.setdefault(seat, []).append(row["item_id"])
                self._open.setdefault(seat, set()).add(row["item_id"])
            for seat in {(row["question_id"], layer_of(row["reason"])) for row in fresh}:
                self._seats[seat].sort(key=lambda item: (self.items[item]["order"], item))
            labels, self._seen["labels"] = self.store.labels_since(self._seen["labels"])
            for label in labels:
                self.take(label)
            held, self._seen["assignments"] = self.store.assignments_since(self._seen["assignments"])
            for assignment in held:
                self._hold(assignment)

    def take(self, label: dict[str, Any]) -> None:
        """Note a stored label row."""
        pair = (label["question_id"], label["span_id"])
        rows = self._rows.setdefault(pair, {})
        if label["label_id"] in rows:
            return
        rows[label["label_id"]] = label
        self._read.setdefault(pair[0], set()).add(pair)
        self.join(label["assessor"], here=label["origin"] != "carried")
        self._active[label["assessor"]] = max(label["time"], self._active.get(label["assessor"], label["time"]))
        if label["action"] == "label" and label["origin"] != "carried":
            self._last.setdefault(label["assessor"], []).append((label["label_id"], pair))
        before = {answer.item_id for answer in self._standing.get(pair, []) if answer.answers and answer.item_id}
        self._standing[pair] = standing(rows.values())
        after = {answer.item_id for answer in self._standing[pair] if answer.answers and answer.item_id}
        for item in before | after:
            if item not in self.items:
                continue
            row = self.items[item]
            place = self._open[row["question_id"], layer_of(row["reason"])]
            if item in after:
                self.answered.add(item)
                place.discard(item)
            else:
                self.answered.discard(item)
                place.add(item)

    def join(self, assessor: str, *, here: bool = True) -> None:
        """Note that somebody takes part; with tokens, everybody who has one takes part from the start."""
        if not self._fixed:
            self._known.add(assessor)
            if here:
                self._here.add(assessor)

    def _hold(self, assignment: Assignment) -> None:
        turns = self._holders.setdefault((assignment.question_id, assignment.layer), [])
        if all(held.turn != assignment.turn for held in turns):
            turns.append(assignment)
            turns.sort(key=lambda held: held.turn)
            self.join(assignment.assessor)

    # who has what -----------------------------------------------------------------------------------------------

    def answer_by(self, assessor: str, pair: Pair, item: str | None) -> Answer | None:
        """What this person says of an item (or, with None, of a passage they found)."""
        return next((answer for answer in reversed(self._standing.get(pair, []))
                     if answer.assessor == assessor and answer.item_id == item), None)

    def own_answer(self, assessor: str, pair: Pair) -> Answer | None:
        """What this person says of a pair, whoever asked."""
        return next((answer for answer in reversed(self._standing.get(pair, []))
                     if answer.assessor == assessor and answer.answers), None)

    def claims(self, assessor: str, pair: Pair, item: str | None) -> int:
        """How many rows this person has written on an item: what a further row builds on."""
        return sum(row["assessor"] == assessor and row["item_id"] == item
                   for row in self._rows.get(pair, {}).values())

    def holder(self, seat: Seat, now: datetime) -> str | None:
        """Who works this layer of the question now."""
        turns = self._holders.get(seat)
        if not turns:
            return None
        last = turns[-1]
        active = max(last.time, self._active.get(last.assessor, last.time))
        return last.assessor if now - active < IDLE else None

    def involved(self, question: str, *layers: str) -> set[str]:
        """People who hold, held or answered something in these layers of a question."""
        people = {held.assessor for layer in layers for held in self._holders.get((question, layer), [])}
        for layer in layers:
            for item in self._seats.get((question, layer), []):
                row = self.items[item]
                people |= {answer.assessor for answer in self._standing.get((question, row["span_id"]), [])
                           if answer.item_id == item and answer.answers}
        return people

    def may_work(self, assessor: str, seat: Seat) -> bool:
        """Whether this person may be given this layer of the question."""
        question, layer = seat
        if layer == "first":
            return assessor not in self.involved(question, "second", "adjudication")
        if layer == "check":
            part = self.involved(question, "second", "adjudication") | self._authors(seat)
            return assessor not in part or self._here <= part
        if layer == "second":
            first = self.involved(question, "first")
            apart = assessor not in first | self.involved(question, "check", "adjudication")
            return apart and bool(first or not self._seats.get((question, "first")))
        part = self.involved(question, "first", "second", "check") | self._authors(seat, beside=True)
        return assessor not in part or self._known <= part

    def _authors(self, seat: Seat, *, beside: bool = False) -> set[str]:
        """People who have answered pairs that a layer asks about; ``beside``: without an item (search, carried)."""
        return {answer.assessor for item in self._seats.get(seat, [])
                for answer in self._standing.get((seat[0], self.items[item]["span_id"]), [])
                if answer.item_id is None or not beside}

    # what is next -----------------------------------------------------------------------------------------------

    def next_item(self, assessor: str, now: datetime, *, prefer: str | None = None) -> str | None:
        """The item to show, or None. Items put off (later) come when nothing else is left for this person."""
        with self.lock:
            mine = [seat for seat in self._open if self._open[seat] and self.holder(seat, now) == assessor]
            if prefer and any(prefer in self._open[seat] for seat in mine):
                return prefer
            mine.sort(key=self._place)
            for seat in mine:
                for item in self._ready(assessor, seat, put_off=False):
                    return item
            for seat in sorted((s for s in self._open if self._open[s] and self.holder(s, now) is None),
                               key=self._place):
                if self.may_work(assessor, seat) and self._sit(assessor, seat, now):
                    for item in self._ready(assessor, seat, put_off=False):
                        return item
                    mine.append(seat)
            return next((item for seat in mine for item in self._ready(assessor, seat, put_off=True)), None)

    def may_answer(self, assessor: str, item: str, now: datetime) -> bool:
        """Whether this item is open and this person holds its question."""
        row = self.items.get(item)
        return (row is not None and item not in self.answered
                and self.holder((row["question_id"], layer_of(row["reason"])), now) == assessor)

    def open_item(self, assessor: str, pair: Pair, now: datetime) -> str | None:
        """An open item of this person that asks about the pair."""
        for layer in ("first", "second", "check", "adjudication"):
            for item in self._open.get((pair[0], layer), ()):
                if self.items[item]["span_id"] == pair[1] and self.may_answer(assessor, item, now):
                    return item
        return None

    def last_label(self, assessor: str) -> Answer | None:
        """The newest answer of this person that stands."""
        for label, pair in reversed(self._last.get(assessor, [])):
            for answer in self._standing[pair]:
                if answer.label_id == label:
                    return answer
        return None

    def place(self, item: str) -> tuple[int, int]:
        """(number within its question and layer from 1, their count)."""
        row = self.items[item]
        members = self._seats[row["question_id"], layer_of(row["reason"])]
        return members.index(item) + 1, len(members)

    def finished_without_yes(self, assessor: str, question: str, layer: str) -> bool:
        """Whether this person has answered all of a question and found nothing that answers it."""
        seat = (question, layer)
        if not self._seats.get(seat) or self._open.get(seat):
            return False
        return not any(answer.relevant and answer.assessor == assessor
                       for pair in self._read.get(question, ()) for answer in self._standing[pair])

    def _place(self, seat: Seat) -> tuple[int, str, str]:
        return self.items[self._seats[seat][0]]["order"], *seat

    def _ready(self, assessor: str, seat: Seat, *, put_off: bool) -> list[str]:
        ready = []
        for item in self._seats[seat]:
            if item in self._open[seat]:
                answer = self.answer_by(assessor, (seat[0], self.items[item]["span_id"]), item)
                if (answer is not None and answer.reason == "later") == put_off:
                    ready.append(item)
        return ready

    def _sit(self, assessor: str, seat: Seat, now: datetime) -> bool:
        turns = self._holders.get(seat, [])
        assignment = Assignment(*seat, turn=turns[-1].turn + 1 if turns else 1, assessor=assessor, time=now)
        taken = self.store.assign(assignment)
        if taken:
            self._hold(assignment)
        else:
            held, self._seen["assignments"] = self.store.assignments_since(self._seen["assignments"])
            for other in held:
                self._hold(other)
        return taken
