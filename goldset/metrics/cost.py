"""Hours of reading: what a rebuild asks of people (STATISTICS 11)."""

from __future__ import annotations


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
