"""Machine traffic in a log: monitors, canned rotations, declared bots, and sessions beyond a day's cap.

Four rules, each with its own count in the report:

* ``declared``: the agent names itself a bot, a monitor or a command-line client.
* ``fixed_interval``: one text comes at least ten times, and four fifths of the gaps are (a multiple of) one interval.
* ``rotation``: one session, user or agent goes round in a fixed circle of texts, five times or more.
* ``over_cap``: one session (else user) asks more than the cap in a day. Many people share one agent, so an agent
  alone is held to the cap only where nothing else is known and more than half of its day are repeats.

Without an agent column bots cannot be ruled out, and the report says so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

_DECLARED = re.compile(
    r"(?<!cu)bot\b|crawler|spider|uptime|monitor|headless|health.?check|^curl\b|^wget\b|python-requests", re.IGNORECASE
)
_REPEATS = 10
_REGULAR = 0.8
_CYCLES = 5
_LONGEST_CYCLE = 20
_SECOND = 1_000_000


@dataclass(frozen=True)
class Asked:
    """One event as the rules see it; ``time`` in microseconds since 1970, None if unknown."""

    key: str
    time: int | None
    day: int | None
    session: str | None
    user: str | None
    agent: str | None


def machine_events(events: Sequence[Asked], *, cap: int) -> dict[int, str]:
    """Events -> {position: rule} for machine traffic; the first rule in the order above wins."""
    found: dict[int, str] = {}
    for position, event in enumerate(events):
        if event.agent and _DECLARED.search(event.agent):
            found[position] = "declared"
    for position in _fixed_interval(events):
        found.setdefault(position, "fixed_interval")
    for position in _rotation(events):
        found.setdefault(position, "rotation")
    for position in _over_cap(events, cap):
        found.setdefault(position, "over_cap")
    return found


def _fixed_interval(events: Sequence[Asked]) -> Iterable[int]:
    times = [event.time for event in events if event.time is not None]
    # Times kept by the hour or day make people look regular: nothing can be told from them.
    if not times or all(time % (3600 * _SECOND) == 0 for time in times):
        return
    for who in ("agent", "session", "user", None):
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for position, event in enumerate(events):
            name = getattr(event, who) if who else ""
            if event.time is not None and name is not None:
                groups[name, event.key].append(position)
        for positions in groups.values():
            if len(positions) >= _REPEATS:
                yield from _regular(events, positions)


def _regular(events: Sequence[Asked], positions: list[int]) -> Iterable[int]:
    """Those of one text's events that lie a regular gap from a neighbour, if most gaps are regular."""
    ordered = sorted(positions, key=lambda position: events[position].time or 0)
    times = np.array([events[position].time for position in ordered], dtype=np.int64)
    gaps = np.diff(times).astype(float)
    interval = float(np.median(gaps))
    if interval < _SECOND:
        return
    beats = np.maximum(np.rint(gaps / interval), 1)  # a monitor misses a beat now and then
    tolerance = min(max(0.02 * interval, 0.5 * _SECOND), 0.25 * interval)
    regular = np.abs(gaps - beats * interval) <= tolerance
    if regular.mean() < _REGULAR:
        return
    for i, position in enumerate(ordered):
        if (i > 0 and regular[i - 1]) or (i < len(regular) and regular[i]):
            yield position


def _rotation(events: Sequence[Asked]) -> Iterable[int]:
    for who in ("agent", "session", "user"):
        groups: dict[str, list[int]] = defaultdict(list)
        for position, event in enumerate(events):
            name = getattr(event, who)
            if event.time is not None and name is not None:
                groups[name].append(position)
        for positions in groups.values():
            ordered = sorted(positions, key=lambda position: (events[position].time or 0, events[position].key))
            keys = [events[position].key for position in ordered]
            cycle = len(set(keys))
            if not 2 <= cycle <= _LONGEST_CYCLE or len(keys) < _CYCLES * cycle:
                continue
            same = sum(first == later for first, later in zip(keys, keys[cycle:], strict=False))
            if same >= 0.9 * (len(keys) - cycle):
                yield from positions


def _over_cap(events: Sequence[Asked], cap: int) -> Iterable[int]:
    groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for position, event in enumerate(events):
        if event.day is None:
            continue
        for kind, name in (("session", event.session), ("user", event.user), ("agent", event.agent)):
            if name is not None:
                groups[kind, name, event.day].append(position)
                break
    for (kind, _, _), positions in groups.items():
        if len(positions) <= cap:
            continue
        distinct = len(Counter(events[position].key for position in positions))
        if kind != "agent" or 2 * distinct < len(positions):
            yield from positions
