"""The queue as a file for work away from the page, and the answers back: JSONL, or CSV by the file's name.

The file is as blind as the page: question, passage and empty columns for the answer, nothing about why it is asked.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from goldset.errors import DataError, nearest
from goldset.formats.lines import json_lines, numbered_lines
from goldset.schemas import CHECK
from goldset.store import write_text
from goldset.text import content_hash

from .database import ReviewStore
from .desk import Desk, layer_of
from .history import Range, answered_items, standing
from .passages import Passage
from .resolve import merge

COLUMNS = ("item_id", "question", "earlier", "need", "title", "heading", "before", "passage", "after", "edition",
           "answer", "evidence", "note", "seconds", "assessor")
ANSWERS = ("yes", "no", "cant_tell", "later")


def export_items(store: ReviewStore, path: Path, *, assessor: str, now: datetime) -> int:
    """Write the open items that ``assessor`` may answer, in their order. Returns how many.

    Columns: those of ``COLUMNS``; answer (yes, no, cant_tell, later), evidence (sentences copied from the passage: a
    list in JSONL, one a line in CSV), note and seconds are filled in by the reader.
    """
    desk = Desk(store)
    rows = []
    for item, row in sorted(desk.items.items(), key=lambda pair: (pair[1]["order"], pair[0])):
        seat = (row["question_id"], layer_of(row["reason"]))
        holder = desk.holder(seat, now)
        if item not in desk.answered and holder in (None, assessor) and (holder or desk.may_work(assessor, seat)):
            rows.append(_exported(store, item, row, assessor))
    write_text(path, _csv(rows) if _is_csv(path) else "".join(
        json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def read_answers(store: ReviewStore, path: Path, *, time: datetime, rubric_version: str = "1.0",
                 assessor: str | None = None) -> list[dict[str, Any]]:
    """A filled-in file -> rows of the table labels; nothing is stored, so a file with an error changes nothing.

    Blank answers are skipped. ``assessor`` stands in for rows without one.

    Raises:
        DataError: file and line of the first unknown item, changed passage, unreadable answer, sentence that is not in
            its passage, or second label by the person who gave the first.
    """
    queue = {row["item_id"]: row for row in store.queue().to_pylist()}
    others = answered_items(standing(store.labels().to_pylist()))
    authors: dict[tuple[str, str], dict[str, str]] = {}
    for item, answers in others.items():
        if item in queue:
            pair = (queue[item]["question_id"], queue[item]["span_id"])
            authors.setdefault(pair, {})[item] = answers[0].assessor
    rows, seen = [], set()
    for number, row in _csv_lines(path) if _is_csv(path) else json_lines(path):
        where = f"{path}, line {number}"
        if not _text(row.get("answer")):
            continue
        label = _answered(row, where, queue=queue, store=store, assessor=assessor, time=time,
                          rubric_version=rubric_version)
        if label["item_id"] in seen:
            raise DataError(f"{where}: item '{label['item_id']}' is answered twice in this file; keep one answer")
        seen.add(label["item_id"])
        _check_reader(label, queue[label["item_id"]], authors, where)
        rows.append(label)
    return rows


def import_answers(store: ReviewStore, path: Path, *, time: datetime, rubric_version: str = "1.0",
                   assessor: str | None = None) -> int:
    """Read a filled-in file and append its labels, all or none; importing a file again stores nothing twice.

    Returns:
        How many answers the file holds.
    """
    rows = read_answers(store, path, time=time, rubric_version=rubric_version, assessor=assessor)
    return len(store.append_labels(rows))


def _exported(store: ReviewStore, item: str, row: Mapping[str, Any], assessor: str) -> dict[str, Any]:
    asked, passage = store.question(row["question_id"]), store.passage(row["span_id"])
    return {"item_id": item, "question": asked.text, "earlier": [f"{who}: {text}" for who, text in asked.turns],
            "need": asked.need, "title": passage.title, "heading": passage.heading, "before": passage.before,
            "passage": passage.text, "after": passage.after, "edition": passage.text_hash, "answer": "",
            "evidence": [], "note": "", "seconds": None, "assessor": assessor}


def _answered(row: Mapping[str, Any], where: str, *, queue: Mapping[str, Mapping[str, Any]], store: ReviewStore,
              assessor: str | None, time: datetime, rubric_version: str) -> dict[str, Any]:
    item, answer = _text(row.get("item_id")), _text(row.get("answer")).lower().replace(" ", "_").replace("'", "")
    if item not in queue:
        raise DataError(f"{where}: item '{item}' is not in the queue; import into the review that exported the file")
    if answer not in ANSWERS:
        raise DataError(f"{where}: answer '{_text(row.get('answer'))}' is not known; {nearest(answer, ANSWERS)}")
    person = _text(row.get("assessor")) or assessor
    if not person:
        raise DataError(f"{where}: no assessor; fill the column 'assessor' or name one for the whole file")
    asked = queue[item]
    passage = store.passage(asked["span_id"])
    if _text(row.get("edition")) != passage.text_hash:
        raise DataError(f"{where}: the passage of item '{item}' has changed since the export; export again")
    ranges = _evidence(row.get("evidence"), passage, where)
    if ranges and answer != "yes":
        raise DataError(f"{where}: evidence is given with the answer '{answer}'; evidence goes with yes")
    places = passage.in_document(ranges or [(0, len(passage.text))]) if answer == "yes" else []
    seconds = _seconds(row.get("seconds"), where)
    return {
        "label_id": "f" + content_hash("file", item, person, answer, ranges, _text(row.get("note")))[:24],
        "item_id": item, "question_id": asked["question_id"], "span_id": asked["span_id"],
        "span_text_hash": passage.text_hash, "rubric_version": rubric_version, "campaign": asked["campaign"],
        "assessor": person, "action": "label", "relevant": {"yes": True, "no": False}.get(answer),
        "reason": answer if answer in ("cant_tell", "later") else None,
        "evidence": [{"start": start, "end": end} for start, end in places],
        "evidence_source": ("selected" if ranges else "whole_span") if answer == "yes" else None,
        "supersedes": None, "origin": "import", "note": _text(row.get("note")) or None, "seconds": seconds,
        "time": time,
    }


def _check_reader(label: Mapping[str, Any], asked: Mapping[str, Any],
                  authors: dict[tuple[str, str], dict[str, str]], where: str) -> None:
    mine = authors.setdefault((asked["question_id"], asked["span_id"]), {})
    if asked["reason"] not in ("adjudication", CHECK):
        for item, author in mine.items():
            if item != label["item_id"] and author == label["assessor"]:
                raise DataError(f"{where}: '{author}' has read this pair already; a second label comes from "
                                "another person")
    mine[label["item_id"]] = label["assessor"]


def _evidence(value: Any, passage: Passage, where: str) -> list[Range]:
    quotes = value.splitlines() if isinstance(value, str) else value or []
    if not isinstance(quotes, list) or not all(isinstance(quote, str) for quote in quotes):
        raise DataError(f"{where}: evidence is a list of sentences copied from the passage")
    ranges = []
    for quote in filter(None, (quote.strip() for quote in quotes)):
        start = passage.text.find(quote)
        if start < 0:
            raise DataError(f"{where}: the evidence '{quote[:60]}' is not in the passage; copy it as it stands there")
        ranges.append((start, start + len(quote)))
    return merge(ranges)


def _seconds(value: Any, where: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < 86_400:
        raise DataError(f"{where}: seconds '{value}' is no reading time; allowed: 0 to 86400, or empty")
    return seconds


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "earlier": "\n".join(row["earlier"]), "evidence": ""})
    return text.getvalue()


def _csv_lines(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(line + "\n" for _, line in numbered_lines(path))
    missing = [name for name in ("item_id", "edition", "answer") if name not in (reader.fieldnames or ())]
    if missing:
        raise DataError(f"{path}, line 1: no column '{missing[0]}'; the header must keep the exported columns")
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from error

