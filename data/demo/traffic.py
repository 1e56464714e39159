"""The demo's query log: what people asked becomes events in sessions, by hashes instead of chance.

A session is one person at one sitting. Most ask one thing; some go on, often with the same need in other words. The
same wording comes back with another capital, a question mark or a blank; now and then with a slip of the finger.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from goldset.errors import DataError
from goldset.text import question_key, unit_hash

FIRST_DAY = datetime(2026, 9, 20, tzinfo=UTC)  # a Sunday
DAYS = 42
AGENTS = ("web", "web", "web", "app-ios", "app-android", "desk-3.6")
WEEK = (1.3, 1.2, 1.1, 1.05, 0.9, 0.2, 0.15)  # how busy a day is, from Monday
HOURS = (0, 0, 0, 0, 0, 0, 1, 3, 7, 10, 9, 7, 5, 6, 8, 8, 6, 4, 2, 2, 2, 1, 1, 0)
LENGTHS = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7)  # questions a session
AGAIN = 0.5  # of the further questions that repeat the need in other words, where there are some
HEAD = 1.7  # a wording of rank r (`asked` in questions.toml) stands r ** HEAD times in the log
TYPOS = 0.3  # of the wordings asked three times or more that once come with a slip

_WORD = re.compile(r"[a-z]{6,}")


Event = tuple[float, int, str, int]  # order, need, wording, which time


@dataclass
class Sitting:
    """A session: its questions with their times."""

    name: str
    agent: str
    asked: list[tuple[datetime, str]]


def as_asked(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of questions.toml with the number of events of each wording in ``asked``.

    One event of some often asked wordings becomes a wording of its own, with a slip of the finger.
    """
    taken = {question_key(text) for entry in entries for text in entry["texts"]}
    found = []
    for entry in entries:
        texts, asked = list(entry["texts"]), [round(rank ** HEAD) for rank in entry["asked"]]
        if len(texts) != len(asked):
            raise DataError(f"questions: {texts} has {len(asked)} counts in 'asked'")
        for place, text in enumerate(entry["texts"]):
            slip = _slip(text)
            if asked[place] >= 3 and "language" not in entry and slip and question_key(slip) not in taken \
                    and unit_hash("demo typo", text) < TYPOS:
                taken.add(question_key(slip))
                asked[place] -= 1
                texts.append(slip)
                asked.append(1)
        found.append({**entry, "texts": texts, "asked": asked})
    return found


def _slip(text: str) -> str | None:
    """Two neighbouring letters of the longest word change places, or one of them is lost."""
    words = sorted(_WORD.finditer(text), key=lambda match: (-len(match[0]), match.start()))
    if "@" in text or not words:
        return None
    at = words[0].start() + 1 + int(unit_hash("demo slip", text) * (len(words[0][0]) - 3))
    two = text[at:at + 2]
    typed = two[0] if two[0] == two[1] or unit_hash("demo lost", text) < 0.4 else two[::-1]
    return text[:at] + typed + text[at + 2:]


def log_lines(entries: list[dict[str, Any]], other: dict[str, Any]) -> list[str]:
    """Entries and the rest of log.toml -> lines by time; damaged lines where the source puts them."""
    sittings = _sittings(entries)
    rows = [(when, text, sitting.name, sitting.agent) for sitting in sittings for when, text in sitting.asked]
    rows += _chatter(other["chatter"], sittings)
    for entry in other["followup"]:
        before = [row for row in rows if question_key(row[1]) == question_key(entry["after"])]
        if not before:
            raise DataError(f"log.toml: nobody asks {entry['after']!r}, after which {entry['text']!r} should come")
        when, _, session, agent = min(before)
        rows.append((when + timedelta(seconds=7), entry["text"], session, agent))
    bot = other["bot"]
    start = datetime.fromisoformat(bot["first"])
    rows += [(start + timedelta(hours=bot["hours"] * n), bot["text"], bot["session"], bot["agent"])
             for n in range(bot["count"])]
    lines = [json.dumps({"q": text, "ts": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "sid": session, "agent": agent},
                        ensure_ascii=False) for when, text, session, agent in sorted(rows)]
    for entry in sorted(other["damaged"], key=lambda entry: (-int(entry["after"]), entry["line"])):
        lines.insert(entry["after"], entry["line"])
    return lines


def _sittings(entries: list[dict[str, Any]]) -> list[Sitting]:
    events: list[Event] = sorted(
        (unit_hash("demo order", text, number), need, text, number) for need, entry in enumerate(entries)
        for text, asked in zip(entry["texts"], entry["asked"], strict=True) for number in range(asked))
    waiting = dict.fromkeys(events)
    by_need: dict[int, dict[Event, None]] = defaultdict(dict)
    for event in events:
        by_need[event[1]].setdefault(event)
    sittings: list[Sitting] = []
    while waiting:
        number = len(sittings)
        length = LENGTHS[int(unit_hash("demo length", number) * len(LENGTHS))]
        taken: list[Event] = []
        for step in range(length):
            found = _next(taken, waiting, by_need, unit_hash("demo again", number, step))
            if found is None:
                break
            del waiting[found], by_need[found[1]][found]
            taken.append(found)
        sittings.append(_sit(number, [_typed(text, count) for _, _, text, count in taken]))
    return sittings


def _next(taken: list[Event], waiting: dict[Event, None], by_need: dict[int, dict[Event, None]],
          u: float) -> Event | None:
    """The next question of a session: the same need in other words, or another need."""
    if taken and u < AGAIN:
        said = {text for _, _, text, _ in taken}
        for event in by_need[taken[-1][1]]:
            if event[2] not in said:
                return event
    needs = {need for _, need, _, _ in taken}
    return next((event for event in waiting if event[1] not in needs), None)


def _typed(text: str, number: int) -> str:
    """The wording as typed this time; the first time as it is written."""
    u = unit_hash("demo typed", text, number)
    if number == 0 or u > 0.35:
        return text
    if u < 0.15:
        return text[0].upper() + text[1:]
    if u < 0.25 and " " in text and text[-1].isalnum():
        return text + "?"
    return text + " " if u < 0.30 else text.rstrip("?")


def _sit(number: int, texts: list[str]) -> Sitting:
    """A day by how busy it is, an hour likewise, and some time between the questions."""
    days = [WEEK[(FIRST_DAY + timedelta(days=day)).weekday()] for day in range(DAYS)]
    day = _chosen(days, unit_hash("demo day", number))
    hour = _chosen(HOURS, unit_hash("demo hour", number))
    when = FIRST_DAY + timedelta(days=day, hours=hour, seconds=int(unit_hash("demo second", number) * 3600))
    name = f"{int(unit_hash('demo name', number) * 36 ** 6):09d}"
    asked = []
    for step, text in enumerate(texts):
        asked.append((when, text))
        when += timedelta(seconds=12 + int(unit_hash("demo pause", number, step) ** 3 * 400))
    return Sitting(name, AGENTS[int(unit_hash("demo agent", number) * len(AGENTS))], asked)


def _chosen(weights: tuple[float, ...] | list[float], u: float) -> int:
    """The place that u falls to when the weights are laid end to end."""
    left = u * sum(weights)
    for place, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return place
    return len(weights) - 1


def _chatter(entries: list[dict[str, Any]], sittings: list[Sitting]) -> list[tuple[datetime, str, str, str]]:
    """Greetings before the first question of some session, thanks and slips of the return key after the last."""
    rows = []
    for entry in entries:
        for number in range(entry["count"]):
            sitting = sittings[int(unit_hash("demo chatter", entry["text"], number) * len(sittings))]
            polite = entry["text"] and not entry["text"].lower().startswith(("th", "ok", "bye", "danke"))
            first, last = sitting.asked[0][0], sitting.asked[-1][0]
            when = first - timedelta(seconds=9) if polite else last + timedelta(seconds=11)
            rows.append((when, entry["text"], sitting.name, sitting.agent))
    return rows


__all__ = ["as_asked", "log_lines"]
