"""Hours of reading: what a rebuild asks of people (METHODS 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

READINGS = 30
"""Readings below which no rate is fitted."""
PAUSE = 600.0
"""Seconds above which somebody was away from the page."""


@dataclass(frozen=True)
class ReadingRate:
    """Seconds an item = base + 60 words / words_per_minute, fitted to what the page measured.

    Attributes:
        n: readings that were fitted.
        pauses: readings that took longer than PAUSE and were left out.
        seconds_base: null with a ``reason`` (too_few, no_slope), as the rate.
    """

    n: int
    pauses: int
    seconds_base: float | None
    words_per_minute: float | None
    reason: str | None


def reading_rate(words: Sequence[int], seconds: Sequence[float]) -> ReadingRate:
    """Words and seconds of each reading -> ReadingRate, by least squares.

    Where the line would begin below zero, it is fitted through the origin; where longer texts were not read longer,
    nothing is fitted.
    """
    kept = [(float(count), float(took)) for count, took in zip(words, seconds, strict=True) if took <= PAUSE]
    pauses = len(seconds) - len(kept)
    if len(kept) < READINGS:
        return ReadingRate(len(kept), pauses, None, None, "too_few")
    x, y = np.array(kept).T
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread else 0.0
    base = float(y.mean() - slope * x.mean())
    if slope > 0 and base < 0:
        slope, base = float((x * y).sum() / (x * x).sum()), 0.0
    if slope <= 0:
        return ReadingRate(len(kept), pauses, None, None, "no_slope")
    return ReadingRate(len(kept), pauses, base, 60 / slope, None)


def cost(*, questions: int, spans: float, seconds: float, positive_share: float,
         review_share: float) -> dict[str, float]:
    """Questions, spans a question, seconds an item, judge-positive share, review share of rejections -> hours.

    full = n C t / 3600; reviewed = n C (p + r (1 - p)) t / 3600.

    Returns:
        pairs, labels, full_hours, hours.
    """
    pairs = questions * spans
    labels = pairs * (positive_share + review_share * (1 - positive_share))
    return {"pairs": pairs, "labels": labels, "full_hours": pairs * seconds / 3600, "hours": labels * seconds / 3600}


def reading_hours(items: float, words: float, *, seconds_base: float, words_per_minute: float) -> float:
    """Items and their words -> hours: a base time an item plus the reading rate."""
    return items * seconds_base / 3600 + words / words_per_minute / 60
