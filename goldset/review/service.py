"""What the review page asks of the server, without HTTP: state, answer, undo, search.

Blind by construction: what leaves here is made by ``_shown`` from question and passage alone. Every item, whoever or
whatever asked for it, has the same keys.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from goldset.errors import DataError
from goldset.text import quote_key

from .database import ReviewStore
from .desk import Desk, layer_of
from .history import Pair, Range
from .passages import Passage, Passages, points, units
from .resolve import merge

Search = Callable[[str], Sequence[str]]
"""Words -> span ids, best first."""
Grow = Callable[[pa.Table, pa.Table], pa.Table]
"""queue, labels -> queue rows to append."""

RESULTS = 10


class Refused(DataError):
    """An answer that cannot be stored as sent; the page shows the sentence and keeps the item."""


class Selected(BaseModel):
    """A selected sentence: UTF-16 positions as browsers count, and the text that stood there."""

    model_config = ConfigDict(extra="forbid")
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str


class AnswerIn(BaseModel):
    """What the page sends to store one answer."""

    model_config = ConfigDict(extra="forbid")
    item: str
    key: str = Field(min_length=8, max_length=100)
    edition: str
    answer: Literal["yes", "no", "cant_tell", "later"]
    sentences: list[Selected] = []
    seconds: float | None = Field(None, ge=0, le=86_400, allow_inf_nan=False)


def utc_now() -> datetime:
    """The time of an acknowledgement."""
    return datetime.now(UTC)


class ReviewService:
    """One project's review for several people at once."""

    def __init__(self, store: ReviewStore, *, reviewers: Sequence[str] = (), rubric_version: str = "1.0",
                 campaign: str = "rebuild", passages: Passages | None = None, search: Search | None = None,
                 grow: Grow | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        self._store = store
        self._desk = Desk(store, reviewers=reviewers)
        self._rubric = rubric_version
        self._campaign = campaign
        self._book = passages
        self._search = search if passages is not None else None
        self._grow = grow
        self._clock = clock
        self._tokens: dict[str, str] = {}  # token -> item
        self._questions: dict[str, str] = {}  # token -> question
        self._found: dict[str, Pair] = {}  # token -> question and span that a search returned

    @property
    def searchable(self) -> bool:
        """Whether the page has a search box."""
        return self._search is not None

    # what the page asks -----------------------------------------------------------------------------------------

    def state(self, assessor: str, *, prefer: str | None = None) -> dict[str, Any]:
        """The item to show to this person (null if nothing is left for them), and the progress."""
        with self._desk.lock:
            self._desk.sync()
            self._desk.join(assessor)
            item = self._desk.next_item(assessor, self._clock(), prefer=prefer)
            if item is None and self._grow is not None:
                rows = self._grow(self._store.queue(), self._store.labels())
                if self._book is not None:
                    self._store.keep_passages(self._book, rows.column("span_id").to_pylist())
                if self._store.append_queue(rows):
                    self._desk.sync()
                    item = self._desk.next_item(assessor, self._clock())
            number, of = self._desk.place(item) if item else (0, 0)
            return {"item": self._item(item) if item else None, "place": {"number": number, "of": of},
                    "progress": {"answered": len(self._desk.answered), "total": len(self._desk.items)},
                    "unanswered": None}

    def answer(self, assessor: str, sent: AnswerIn) -> dict[str, Any]:
        """Store an answer, then return ``stored`` (its id) with the next state. A resend stores nothing twice.

        Raises:
            Refused: item, edition, positions or text do not match what is stored.
            AnsweredElsewhere: another tab was faster.
        """
        with self._desk.lock:
            self._desk.sync()
            key = f"{assessor}/{sent.key}"
            stored = self._store.label_by_key(key)
            if stored is not None:
                pair, item = (stored["question_id"], stored["span_id"]), stored["item_id"]
            else:
                pair, item = self._target(assessor, sent.item)
                passage = self._passage(pair[1])
                if sent.edition != passage.text_hash:
                    raise Refused("the passage has changed since this page was loaded; reload the page")
                ranges = _checked(sent, passage)
                stored = self._store.append_label(
                    self._label(assessor, pair, item, sent, passage, ranges), key=key,
                    claim=f"{item or pair}|{assessor}|{self._desk.claims(assessor, pair, item)}")
                self._desk.take(stored)
            state = self.state(assessor)
            layer = layer_of(self._desk.items[item]["reason"]) if item else "first"
            whole = item and layer != "check"  # who checks carried answers has not read the whole question
            if whole and self.searchable and self._desk.finished_without_yes(assessor, pair[0], layer):
                state["unanswered"] = self._question(pair[0])
            return {"stored": stored["label_id"], **state}

    def undo(self, assessor: str, key: str) -> dict[str, Any]:
        """Take this person's last answer back; its item is open again and comes next. Refused if there is none."""
        with self._desk.lock:
            self._desk.sync()
            stored = self._store.label_by_key(f"{assessor}/{key}")
            if stored is None:
                last = self._desk.last_label(assessor)
                if last is None:
                    raise Refused("there is no answer of yours to take back")
                row = self._row(assessor, last.pair, last.item_id, "retract") | {"supersedes": last.label_id}
                stored = self._store.append_label(row, key=f"{assessor}/{key}", claim=f"retract|{last.label_id}")
                self._desk.take(stored)
            return {"stored": stored["label_id"], **self.state(assessor, prefer=stored["item_id"])}

    def search(self, assessor: str, question: str, words: str) -> dict[str, Any]:
        """Passages of the corpus for some words, in the shape of items, each with this person's own answer."""
        if self._search is None or self._book is None:
            raise Refused("this review was started without a corpus to search")
        with self._desk.lock:
            if question not in self._questions:
                raise Refused("the server was restarted; reload the page, then search again")
            asked = self._questions[question]
            spans: dict[str, None] = {}
            if quote_key(words):
                for span in self._search(words):
                    if span in self._book:
                        spans.setdefault(self._book.representative(span))
            results = []
            for span in list(spans)[:RESULTS]:
                token = self._token("found", asked, span)
                self._found[token] = (asked, span)
                own = self._desk.own_answer(assessor, (asked, span))
                said = None if own is None else {True: "yes", False: "no", None: "cant_tell"}[own.relevant]
                results.append({**self._shown(token, asked, self._passage(span)), "answer": said})
            return {"results": results}

    # inside -----------------------------------------------------------------------------------------------------

    def _target(self, assessor: str, token: str) -> tuple[Pair, str | None]:
        now = self._clock()
        if token in self._found:
            pair = self._found[token]
            if self._desk.own_answer(assessor, pair) is not None:
                raise Refused("you have answered this passage already; undo that answer first")
            return pair, self._desk.open_item(assessor, pair, now)
        item = self._tokens.get(token) or next(
            (item for item in self._desk.items if self._token("item", item) == token), None)
        if item is None:
            raise Refused("this passage is not in the queue any more; reload the page")
        if not self._desk.may_answer(assessor, item, now):
            raise Refused("this passage was answered already, or its question has gone to somebody else; "
                          "reload the page to go on from there")
        row = self._desk.items[item]
        return (row["question_id"], row["span_id"]), item

    def _label(self, assessor: str, pair: Pair, item: str | None, sent: AnswerIn, passage: Passage,
               ranges: list[Range]) -> dict[str, Any]:
        earlier = self._desk.answer_by(assessor, pair, item)
        row = self._row(assessor, pair, item, "label") | {
            "relevant": {"yes": True, "no": False}.get(sent.answer), "span_text_hash": passage.text_hash,
            "reason": sent.answer if sent.answer in ("cant_tell", "later") else None, "seconds": sent.seconds,
            "supersedes": earlier.label_id if earlier else None}
        if sent.answer == "yes":
            places = passage.in_document(ranges or [(0, len(passage.text))])
            row["evidence"] = [{"start": start, "end": end} for start, end in places]
            row["evidence_source"] = "selected" if ranges else "whole_span"
        return row

    def _row(self, assessor: str, pair: Pair, item: str | None, action: str) -> dict[str, Any]:
        campaign = self._desk.items[item]["campaign"] if item else self._campaign
        return {"item_id": item, "question_id": pair[0], "span_id": pair[1],
                "span_text_hash": self._passage(pair[1]).text_hash, "rubric_version": self._rubric,
                "campaign": campaign, "assessor": assessor, "action": action, "relevant": None, "reason": None,
                "evidence": [], "evidence_source": None, "supersedes": None, "origin": "page", "note": None,
                "seconds": None, "time": self._clock()}

    def _passage(self, span: str) -> Passage:
        if self._book is not None and span in self._book:
            return self._book.passage(span)
        return self._store.passage(span)

    def _token(self, *parts: str) -> str:
        message = "\x1f".join(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self._store.secret, message, "sha256").hexdigest()[:32]

    def _item(self, item: str) -> dict[str, Any]:
        token = self._token("item", item)
        self._tokens[token] = item
        row = self._desk.items[item]
        return self._shown(token, row["question_id"], self._passage(row["span_id"]))

    def _question(self, question_id: str) -> dict[str, Any]:
        asked = self._store.question(question_id)
        token = self._token("question", question_id)
        self._questions[token] = question_id
        return {"token": token, "text": asked.text, "need": asked.need,
                "turns": [{"who": who, "text": text} for who, text in asked.turns]}

    def _shown(self, token: str, question_id: str, passage: Passage) -> dict[str, Any]:
        """All that the browser learns of an item; positions are in UTF-16 code units from here on."""
        text = passage.text
        return {"token": token, "edition": passage.text_hash, "question": self._question(question_id),
                "passage": {"title": passage.title, "heading": passage.heading, "before": passage.before,
                            "after": passage.after, "text": text,
                            "sentences": [[units(text, start), units(text, end)] for start, end in passage.sentences]},
                "answer": None}


def _checked(sent: AnswerIn, passage: Passage) -> list[Range]:
    """Selected sentences -> code point ranges of the passage, each proved against the stored text."""
    if sent.sentences and sent.answer != "yes":
        raise Refused("sentences are selected, which means yes; clear them to give another answer")
    ranges = []
    for piece in sent.sentences:
        start, end = points(passage.text, piece.start), points(passage.text, piece.end)
        if start is None or end is None or start >= end or passage.text[start:end] != piece.text:
            raise Refused("the selected text is not what is stored at its place; reload the page and select it again")
        ranges.append((start, end))
    return merge(ranges)
