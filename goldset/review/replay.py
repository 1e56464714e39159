"""Recorded assessors: labels without people, for the demonstration and for tests on real judgments.

A line of the file says what one assessor found for one question after reading everything::

    {"question": "…", "context": [["user", "…"]], "assessor": "a1",
     "evidence": [{"doc_id": "d1", "start": 10, "end": 80}, {"chunk_id": "c7"}], "no": [], "cant_tell": []}

A span is answered yes when it wholly contains a listed range, or holds most of the text of a listed chunk; ``no`` and
``cant_tell`` ranges override that, ``no`` first. Everything else is no.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.errors import DataError, nearest
from goldset.formats.lines import json_lines
from goldset.spans import main_span
from goldset.text import question_id

from .history import Range, answered_items, standing
from .queue import PRIMARY

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS = ("question", "context", "assessor", "evidence", "no", "cant_tell")
_LISTS = ("evidence", "no", "cant_tell")


@dataclass
class _Places:
    """Ranges by document, and spans that hold a listed chunk, of one list of the file."""

    ranges: dict[str, list[Range]] = field(default_factory=dict)
    spans: dict[str, list[Range]] = field(default_factory=dict)


@dataclass
class _Recorded:
    assessor: str
    lists: dict[str, _Places]


@dataclass(frozen=True)
class _Span:
    doc_id: str
    start: int | None
    end: int | None
    text_hash: str


def replay(*, items: pa.Table, path: Path, questions: pa.Table, spans: pa.Table, links: pa.Table, chunks: pa.Table,
           labels: pa.Table, rubric_version: str = "1.0") -> list[dict[str, Any]]:
    """queue, recorded assessors -> rows of the table labels for the items that are open, to be appended.

    First items go to the first assessor that the file lists for the question, second items to the next one who has
    not answered the pair, adjudications and second readings of carried answers to a further one if the file has one,
    else to the first. An item stays open where
    the file has no line for its question, or nobody left for a second label. Times are the epoch plus the item's place
    in the queue, so the same file gives the same rows.

    Raises:
        DataError: file and line of something that cannot be read, or of a document or chunk that is not in the corpus.
    """
    recorded = _read(path, links=links, chunks=chunks, spans=spans)
    known = _spans(spans)
    twins: dict[str, list[str]] = {}
    for span, twin in zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True):
        twins.setdefault(twin, []).append(span)
    group = {span: members for members in twins.values() for span in members}
    answers = standing(labels.to_pylist())
    done = set(answered_items(answers))
    said: dict[tuple[str, str], list[str]] = {}
    for answer in answers:
        if answer.answers:
            said.setdefault(answer.pair, []).append(answer.assessor)
    in_sample = set(questions.column("question_id").to_pylist())
    rows = []
    for item in sorted(items.to_pylist(), key=lambda row: (_turn(row["reason"]), row["order"], row["item_id"])):
        pair = (item["question_id"], item["span_id"])
        if item["item_id"] in done or item["question_id"] not in in_sample:
            continue
        person = _person(item["reason"], recorded.get(item["question_id"], []), said.get(pair, []))
        if person is None:
            continue
        if item["span_id"] not in known:
            raise DataError(f"span '{item['span_id']}' is in the queue but not in the table 'spans'; "
                            "rebuild the queue from this corpus")
        rows.append(_label(item, person, known, group[item["span_id"]], rubric_version))
        said.setdefault(pair, []).append(person.assessor)
    return rows


def _turn(reason: str) -> int:
    return 0 if reason in PRIMARY else 1 if reason == "second" else 2


def _person(reason: str, people: list[_Recorded], said: list[str]) -> _Recorded | None:
    fresh = [person for person in people if person.assessor not in said]
    if reason in PRIMARY:
        return people[0] if people else None
    if reason == "second":
        # Nobody is the second reader of a pair without a first one.
        return fresh[0] if fresh and said else None
    return next(iter(fresh or people), None)


def _label(item: Mapping[str, Any], person: _Recorded, known: Mapping[str, _Span], twins: list[str],
           rubric_version: str) -> dict[str, Any]:
    pieces = {name: _within(person.lists[name], item["span_id"], known, twins) for name in _LISTS}
    relevant: bool | None = False
    if pieces["no"] is None and pieces["cant_tell"] is not None:
        relevant = None
    elif pieces["no"] is None and pieces["evidence"] is not None:
        relevant = True
    evidence, source = (pieces["evidence"] or ([], None)) if relevant else ([], None)
    return {
        "label_id": "r" + item["item_id"][1:], "item_id": item["item_id"], "question_id": item["question_id"],
        "span_id": item["span_id"], "span_text_hash": known[item["span_id"]].text_hash,
        "rubric_version": rubric_version, "campaign": item["campaign"], "assessor": person.assessor,
        "action": "label", "relevant": relevant, "reason": "cant_tell" if relevant is None else None,
        "evidence": [{"start": start, "end": end} for start, end in evidence], "evidence_source": source,
        "supersedes": None, "origin": "import", "note": None, "seconds": None,
        "time": _EPOCH + timedelta(seconds=item["order"]),
    }


def _within(places: _Places, target: str, known: Mapping[str, _Span],
            twins: list[str]) -> tuple[list[Range], str] | None:
    """Listed ranges in the span or a twin of it, as ranges of the span's document; None if there is none."""
    span, found, source = known[target], set(), "selected"
    hit = False
    for twin in twins:
        other = known[twin]
        if other.start is not None and other.end is not None:
            for start, end in places.ranges.get(other.doc_id, ()):
                if other.start <= start and end <= other.end:
                    hit = True
                    found |= _mapped((start, end), other, span)
        for start, end in places.spans.get(twin, ()):
            hit, source = True, "imported"
            found |= _mapped((start, end), other, span)
        hit = hit or twin in places.spans
    return (sorted(found), source) if hit else None


def _mapped(piece: Range, source: _Span, target: _Span) -> set[Range]:
    """A range of one twin clipped to it and moved by its relative offset to the other."""
    if source.start is None or source.end is None or target.start is None or target.end is None:
        return set()
    shift = target.start - source.start
    start = max(piece[0], source.start) + shift
    end = min(min(piece[1], source.end) + shift, target.end)
    return {(start, end)} if start < end else set()


def _spans(spans: pa.Table) -> dict[str, _Span]:
    columns = ("doc_id", "start", "end", "text_hash")
    values = zip(*(spans.column(name).to_pylist() for name in columns), strict=True)
    return {span: _Span(*row) for span, row in zip(spans.column("span_id").to_pylist(), values, strict=True)}


class _Corpus:
    """What the file's references can name."""

    def __init__(self, links: pa.Table, chunks: pa.Table, spans: pa.Table) -> None:
        self.main = main_span(links)
        starts, ends = chunks.column("start").to_pylist(), chunks.column("end").to_pylist()
        self.body = dict(zip(chunks.column("chunk_id").to_pylist(), zip(starts, ends, strict=True), strict=True))
        self.documents = set(spans.column("doc_id").to_pylist())

    def add(self, places: _Places, entry: Any, where: str) -> None:
        """Note one entry of a list; DataError where it cannot be read or names something unknown."""
        if isinstance(entry, dict) and set(entry) == {"chunk_id"}:
            chunk = entry["chunk_id"]
            if chunk not in self.body:
                raise DataError(f"{where}: chunk '{chunk}' is not in the corpus; replay against the corpus that the "
                                "assessors read")
            if chunk in self.main:
                start, end = self.body[chunk]
                places.spans.setdefault(self.main[chunk], []).extend([] if start is None else [(start, end)])
        elif isinstance(entry, dict) and set(entry) == {"doc_id", "start", "end"}:
            doc, start, end = entry["doc_id"], entry["start"], entry["end"]
            if doc not in self.documents:
                raise DataError(f"{where}: document '{doc}' is not in the corpus; replay against the corpus that the "
                                "assessors read")
            if type(start) is not int or type(end) is not int or not 0 <= start < end:
                raise DataError(f"{where}: start {start!r} and end {end!r} are no range; needed: 0 <= start < end")
            places.ranges.setdefault(doc, []).append((start, end))
        else:
            raise DataError(f'{where}: needed {{"doc_id": …, "start": …, "end": …}} or {{"chunk_id": …}}')


def _read(path: Path, *, links: pa.Table, chunks: pa.Table, spans: pa.Table) -> dict[str, list[_Recorded]]:
    corpus = _Corpus(links, chunks, spans)
    recorded: dict[str, list[_Recorded]] = {}
    for number, row in json_lines(path):
        where = f"{path}, line {number}"
        for key in row:
            if key not in _KEYS:
                raise DataError(f"{where}: unknown key '{key}'; {nearest(key, _KEYS)}")
        for key in ("question", "assessor"):
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise DataError(f"{where}: '{key}' is missing or no text")
        lists = {name: _Places() for name in _LISTS}
        for name in _LISTS:
            entries = row.get(name, [])
            if not isinstance(entries, list):
                raise DataError(f"{where}, '{name}': a list is needed")
            for entry in entries:
                corpus.add(lists[name], entry, f"{where}, '{name}'")
        people = recorded.setdefault(question_id(row["question"], _turns(row.get("context", []), where)), [])
        if any(person.assessor == row["assessor"] for person in people):
            raise DataError(f"{where}: assessor '{row['assessor']}' has a line for this question already; "
                            "one line per question and assessor")
        people.append(_Recorded(row["assessor"], lists))
    return recorded


def _turns(context: Any, where: str) -> list[tuple[str, str]]:
    """Earlier turns, written as [role, text] or as {"role": …, "text": …}."""
    turns = []
    for turn in context if isinstance(context, list) else [None]:
        pair = (turn.get("role"), turn.get("text")) if isinstance(turn, dict) else turn
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise DataError(f'{where}: context is a list of turns, [role, text] or {{"role": …, "text": …}} each')
        turns.append((pair[0], pair[1]))
    return turns
