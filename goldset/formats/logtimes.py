"""Times in logs: ISO 8601 in its variants, epoch seconds to nanoseconds, Parquet timestamps -> UTC."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

_NUMBER = re.compile(r"\d{9,19}(?:\.\d+)?")
_FIRST, _LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(value: Any) -> datetime | None:
    """A time in UTC, or None if it cannot be told.

    Epoch numbers are seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, else nanoseconds. A time
    without a zone is taken as UTC. Times before 1990 or after 2100 are unreadable, not history.
    """
    moment: datetime | None = None
    if isinstance(value, datetime):
        # Parquet's nanoseconds come as a subclass with digits that a microsecond column refuses.
        moment = datetime.combine(value.date(), value.timetz())
    elif isinstance(value, date):
        moment = datetime.combine(value, time())
    elif isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text):
            moment = _from_epoch(float(text) if "." in text else int(text))
        else:
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        moment = _from_epoch(value)
    if moment is None:
        return None
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        return None
    return moment if _FIRST <= moment < _LAST else None


def _from_epoch(number: float) -> datetime | None:
    if isinstance(number, float) and not math.isfinite(number):
        return None
    for limit, per_second in ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9)):
        if number < limit:
            micros = number * 10**6 // per_second
            return _EPOCH + timedelta(microseconds=int(micros)) if number >= 0 else None
    return None
