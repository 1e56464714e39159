"""The rolling sampling window, in days of the project's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Window:
    """``[start, until)``: UTC instants of local midnights; ``start`` None = from the first line."""

    start: datetime | None
    until: datetime | None
    timeless: bool

    def holds(self, moment: datetime | None) -> bool:
        """Whether the moment lies in the window; an unknown one only if the window is ``all``."""
        if moment is None:
            return self.timeless
        return (self.start is None or self.start <= moment) and (self.until is None or moment < self.until)


def window_of(last: datetime | None, *, window: str, until: date | None, timezone: str) -> Window:
    """Config and last event -> Window. ``until`` defaults to the end of the last event's local day.

    ``window`` is ``all`` or a number of local days or weeks (``42d``, ``6w``).
    """
    zone = ZoneInfo(timezone)
    end = until
    if end is None and last is not None:
        end = last.astimezone(zone).date() + timedelta(days=1)
    if end is None:
        return Window(None, None, window == "all")
    start = None
    if window != "all":
        start = midnight(end - timedelta(days=int(window[:-1]) * (7 if window[-1] == "w" else 1)), zone)
    return Window(start, midnight(end, zone), window == "all")


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The instant at which a local day starts, in UTC."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
