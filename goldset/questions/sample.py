"""Log events -> a weighted sample of real questions, and a drop table that accounts for every event."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from goldset.config import QuestionsConfig
from goldset.errors import DataError
from goldset.questions.clusters import clusters
from goldset.questions.language import UNDETERMINED, guess_language
from goldset.questions.machine import Asked, machine_events
from goldset.questions.panel import draw, panel_number
from goldset.questions.standalone import is_followup, is_fuzzing, is_greeting
from goldset.questions.window import Window, window_of
from goldset.schemas import conform, from_rows
from goldset.text import canonical_json, question_id, question_key

Turns = tuple[tuple[str, str], ...]

REASONS = (
    "outside_window",
    "no_time",
    "empty",
    "greeting",
    "machine",
    "language",
    "followup",
    "outside_frame",
    "not_sampled",
    "kept",
)
_EXAMPLE = 200


@dataclass(frozen=True)
class QuestionTables:
    """Tables questions and drops (its lines add up to the events), and a JSON-able report."""

    questions: pa.Table
    drops: pa.Table
    report: dict[str, Any]


@dataclass(frozen=True)
class _Event:
    text: str
    query: str | None
    context: Turns
    session: str | None
    user: str | None
    agent: str | None
    time: datetime | None
    micros: int | None
    scope: str


def sample_questions(
    *, events: pa.Table, config: QuestionsConfig, seed: int, timezone: str, frame: frozenset[str] | None
) -> QuestionTables:
    """Events -> questions (key question_id, sorted by it), drops, report.

    An event is dropped for the first reason that holds, in the order of ``REASONS``; every event stands in exactly
    one row of ``drops`` (``kept`` = drawn). ``frame`` limits the sample to these question_ids.

    ``unit = "events"`` (METHODS 3.4): each event has a permanent random number, the ``size`` smallest are drawn,
    ``draws`` and ``traffic_weight`` count a question's drawn events, ``inclusion_prob`` is n/N of events.
    ``unit = "distinct"``: the same over distinct questions, ``draws`` 1, ``traffic_weight`` = times asked.
    In both a share ``rotate`` of the n is drawn from the rest by numbers that change with the end of the window.

    Raises:
        DataError: no event is left to draw from; the message counts the reasons.
    """
    rows = _rows(conform(events, "events"))
    zone = ZoneInfo(timezone)
    last = max((row.time for row in rows if row.time is not None), default=None)
    window = window_of(last, window=config.window, until=config.until, timezone=timezone)
    reasons: list[str | None] = [None] * len(rows)
    for i, row in enumerate(rows):
        if not window.holds(row.time):
            reasons[i] = "no_time" if row.time is None else "outside_window"
        elif not question_key(row.text):
            reasons[i] = "empty"
        elif is_greeting(row.text):
            reasons[i] = "greeting"
    machine = _drop_machine(rows, reasons, config.per_session_day, zone)
    ids = _drop_unusable(rows, reasons, config, frame)
    eligible = [i for i, reason in enumerate(reasons) if reason is None]
    if not eligible:
        raise DataError(_nothing(rows, reasons, window, frame))
    by_question: dict[str, list[int]] = defaultdict(list)
    for i in eligible:
        by_question[ids[i]].append(i)

    salt = window.until.isoformat() if window.until else ""
    drawn = (_draw_events if config.unit == "events" else _draw_questions)(rows, ids, by_question, config, seed, salt)
    for i in eligible:
        reasons[i] = "kept" if i in drawn.kept else "not_sampled"
    n = sum(drawn.draws.values())
    table = []
    for name in sorted(drawn.draws):
        question = _question(name, [rows[i] for i in by_question[name]], keep_context=config.followups == "context")
        question["draws"] = drawn.draws[name]
        question["u"] = drawn.numbers[name]
        question["inclusion_prob"] = n / drawn.population
        question["traffic_weight"] = float(question["draws" if config.unit == "events" else "times_asked"])
        table.append(question)
    texts = {question["question_id"]: (question["text"], _turn_before(question["context"])) for question in table}
    grouped = clusters(texts, threshold=config.near_duplicate)
    for question in table:
        question["cluster_id"] = grouped[question["question_id"]]
    report = {
        "window": {
            "from": window.start.isoformat() if window.start else None,
            "until": window.until.isoformat() if window.until else None,
            "timezone": timezone,
        },
        "unit": config.unit,
        "events": len(rows),
        "eligible_events": len(eligible),
        "eligible_questions": len(by_question),
        "frame": None if frame is None else {"questions": len(frame), "found": len(by_question)},
        "asked_for": config.size,
        "drawn": n,
        "population": drawn.population,
        "questions": len(table),
        "clusters": len(set(grouped.values())),
        "languages": dict(sorted(Counter(question["language"] for question in table).items())),
        "without_time": sum(rows[i].time is None for i in eligible),
        "machine": machine,
        "agent_known": any(row.agent is not None for row in rows),
    }
    return QuestionTables(from_rows("questions", table), _drops(rows, reasons), report)


def _rows(events: pa.Table) -> list[_Event]:
    columns = {
        name: events.column(name).to_pylist() for name in ("text", "query", "session", "user", "agent", "time", "scope")
    }
    micros = events.column("time").cast(pa.int64()).to_pylist()
    contexts = [
        tuple((turn["role"], turn["text"]) for turn in context) for context in events.column("context").to_pylist()
    ]
    return [
        _Event(
            columns["text"][i],
            columns["query"][i],
            contexts[i],
            columns["session"][i],
            columns["user"][i],
            columns["agent"][i],
            columns["time"][i],
            micros[i],
            columns["scope"][i],
        )
        for i in range(events.num_rows)
    ]


def _drop_machine(rows: Sequence[_Event], reasons: list[str | None], cap: int, zone: ZoneInfo) -> dict[str, int]:
    """Mark machine traffic among the events still alive; events by rule."""
    alive = [i for i, reason in enumerate(reasons) if reason is None]
    asked = [
        Asked(
            question_key(row.text),
            row.micros,
            None if row.time is None else row.time.astimezone(zone).toordinal(),
            row.session,
            row.user,
            row.agent,
        )
        for row in (rows[i] for i in alive)
    ]
    found = {alive[position]: rule for position, rule in machine_events(asked, cap=cap).items()}
    for i in alive:
        if i not in found and is_fuzzing(rows[i].text):
            found[i] = "fuzzing"
    for i in found:
        reasons[i] = "machine"
    return dict(sorted(Counter(found.values()).items()))


def _drop_unusable(
    rows: Sequence[_Event], reasons: list[str | None], config: QuestionsConfig, frame: frozenset[str] | None
) -> dict[int, str]:
    """Mark other languages, follow-ups and questions outside the frame; question_id of what is left."""
    ids: dict[int, str] = {}
    for i, row in enumerate(rows):
        if reasons[i] is not None:
            continue
        if config.languages and guess_language(row.text) not in (*config.languages, UNDETERMINED):
            reasons[i] = "language"
        elif config.followups == "set_aside" and is_followup(row.text, has_context=bool(row.context)):
            reasons[i] = "followup"
        else:
            name = question_id(row.text, row.context if config.followups == "context" else ())
            if frame is not None and name not in frame:
                reasons[i] = "outside_frame"
            else:
                ids[i] = name
    return ids


@dataclass(frozen=True)
class _Drawn:
    """Positions of drawn events, draws by question, permanent number by question, units drawn from."""

    kept: set[int]
    draws: Counter[str]
    numbers: dict[str, float]
    population: int


def _draw_events(
    rows: Sequence[_Event],
    ids: dict[int, str],
    by_question: dict[str, list[int]],
    config: QuestionsConfig,
    seed: int,
    salt: str,
) -> _Drawn:
    # Events that agree in question, session and time are counted off: sharing one number would make them one unit.
    seen: Counter[tuple[str, str | None, int | None]] = Counter()
    positions, units = [], []
    for i, question in ids.items():
        name = (question, rows[i].session, rows[i].micros)
        units.append(
            (panel_number(seed, "event", *name, seen[name]), panel_number(seed, "rotating", salt, *name, seen[name]))
        )
        positions.append(i)
        seen[name] += 1
    kept = {positions[chosen] for chosen in draw(units, size=config.size, rotate=config.rotate)}
    own = dict(zip(positions, (u for u, _ in units), strict=True))
    numbers = {question: min(own[i] for i in members) for question, members in by_question.items()}
    return _Drawn(kept, Counter(ids[i] for i in kept), numbers, len(units))


def _draw_questions(
    rows: Sequence[_Event],
    ids: dict[int, str],
    by_question: dict[str, list[int]],
    config: QuestionsConfig,
    seed: int,
    salt: str,
) -> _Drawn:
    names = sorted(by_question)
    numbers = {name: panel_number(seed, "question", name) for name in names}
    units = [(numbers[name], panel_number(seed, "rotating", salt, name)) for name in names]
    draws = Counter(names[chosen] for chosen in draw(units, size=config.size, rotate=config.rotate))
    return _Drawn({i for name in draws for i in by_question[name]}, draws, numbers, len(names))


def _question(name: str, events: Sequence[_Event], *, keep_context: bool) -> dict[str, Any]:
    """One row of the questions table, without what depends on the draw."""
    text = _commonest([event.text for event in events])
    context = min((event.context for event in events if event.text == text), key=canonical_json)
    times = sorted(event.time for event in events if event.time is not None)
    first = min(events, key=lambda event: (event.micros is None, event.micros or 0, event.session or ""))
    return {
        "question_id": name,
        "text": text,
        "context": [{"role": role, "text": turn} for role, turn in context] if keep_context else [],
        "query": _commonest([event.query for event in events if event.query is not None] or [text]),
        "need": None,
        "scope": _commonest([event.scope for event in events]),
        "language": guess_language(text),
        "origin": "log",
        "asked_first": times[0] if times else None,
        "asked_last": times[-1] if times else None,
        "times_asked": len(events),
        "session_cluster": first.session,
        "stratum": "all",
    }


def _commonest(values: Sequence[str]) -> str:
    """The most frequent value; ties go to the smallest."""
    return min(Counter(values).items(), key=lambda item: (-item[1], item[0]))[0]


def _turn_before(context: Sequence[dict[str, str]]) -> str | None:
    """The user's turn before this one (role ``user``; the last turn where roles have other names)."""
    turns = [turn["text"] for turn in context if turn["role"] == "user"] or [turn["text"] for turn in context]
    return turns[-1] if turns else None


def _drops(rows: Sequence[_Event], reasons: Sequence[str | None]) -> pa.Table:
    counts = Counter(reasons)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    for row, reason in zip(rows, reasons, strict=True):
        assert reason is not None
        texts[reason][row.text] += 1
    table = []
    for reason in REASONS:
        if counts[reason] or reason == "kept":
            example = _commonest(list(texts[reason].elements()))[:_EXAMPLE] if counts[reason] else ""
            table.append({"reason": reason, "lines": counts[reason], "example": example if example.strip() else None})
    return from_rows("drops", table)


def _nothing(
    rows: Sequence[_Event], reasons: Sequence[str | None], window: Window, frame: frozenset[str] | None
) -> str:
    if not rows:
        return (
            "the logs hold no question at all; look into the quarantine file, and at format and text of "
            "[questions] logs"
        )
    counts = ", ".join(f"{reason} {count}" for reason, count in Counter(map(str, reasons)).most_common())
    limits = f"window {window.start or 'start'} to {window.until or 'end'}"
    if frame is not None:
        limits += f", frame of {len(frame)} questions"
    return (
        f"no usable question among {len(rows)} log events ({counts}; {limits}); widen [questions] window, until, "
        "languages, followups or frame, or map its time column"
    )
