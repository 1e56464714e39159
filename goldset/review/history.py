"""The append-only log of labels -> the answers that stand.

Nothing in the log is ever changed. A correction is a new row: ``label`` with ``supersedes`` replaces the row it names,
``retract`` takes it back, ``evidence`` replaces only the sentences of the label it names. Where one person answers the
same item twice without naming the earlier row, the later answer stands. A replaced answer does not come back when its
successor is retracted: the item is open again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Range = tuple[int, int]
Pair = tuple[str, str]
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    """One answer that stands: what one person says of one pair."""

    label_id: str
    item_id: str | None
    question_id: str
    span_id: str
    assessor: str
    relevant: bool | None
    reason: str | None  # cant_tell or later where relevant is None
    evidence: tuple[Range, ...]
    evidence_source: str | None
    origin: str
    seconds: float | None
    time: datetime
    label_ids: tuple[str, ...]  # the label and the row that amended its evidence

    @property
    def pair(self) -> Pair:
        """Question and span."""
        return self.question_id, self.span_id

    @property
    def answers(self) -> bool:
        """Whether the item is answered: yes, no and can't tell do, later does not."""
        return self.relevant is not None or self.reason == "cant_tell"


def standing(rows: Iterable[Mapping[str, Any]]) -> list[Answer]:
    """Rows of the table labels -> the answers that stand, by time; the order of the rows does not matter."""
    log = sorted(rows, key=_moment)
    gone = {row["supersedes"] for row in log if row["action"] in ("label", "retract") and row["supersedes"]}
    amended = _amendments(log, gone)
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in log:
        if row["action"] == "label" and row["label_id"] not in gone:
            last[row["item_id"], row["question_id"], row["span_id"], row["assessor"]] = row
    return [_answer(row, amended.get(row["label_id"])) for row in sorted(last.values(), key=_moment)]


def by_pair(answers: Iterable[Answer]) -> dict[Pair, list[Answer]]:
    """Answers grouped by question and span, each group by time."""
    groups: dict[Pair, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.pair, []).append(answer)
    return groups


def answered_items(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """Queue items that somebody has answered -> their answers, by time."""
    items: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.item_id is not None and answer.answers:
            items.setdefault(answer.item_id, []).append(answer)
    return items


def _moment(row: Mapping[str, Any]) -> tuple[datetime, str]:
    return row["time"] or _START, row["label_id"]


def _amendments(log: list[Mapping[str, Any]], gone: set[str]) -> dict[str, Mapping[str, Any]]:
    """Label -> the latest evidence row for it; an evidence row may amend another evidence row."""
    root: dict[str, str] = {}
    latest: dict[str, Mapping[str, Any]] = {}
    for row in log:
        if row["action"] == "evidence" and row["supersedes"] and row["label_id"] not in gone:
            target = root.get(row["supersedes"], row["supersedes"])
            root[row["label_id"]] = target
            latest[target] = row
    return latest


def _answer(row: Mapping[str, Any], amendment: Mapping[str, Any] | None) -> Answer:
    source = amendment or row
    return Answer(
        label_id=row["label_id"], item_id=row["item_id"], question_id=row["question_id"], span_id=row["span_id"],
        assessor=row["assessor"], relevant=row["relevant"], reason=row["reason"],
        evidence=tuple((r["start"], r["end"]) for r in source["evidence"] or ()),
        evidence_source=source["evidence_source"], origin=row["origin"], seconds=row["seconds"], time=row["time"],
        label_ids=(row["label_id"], *((amendment["label_id"],) if amendment else ())),
    )
