"""The reading rate that the page measured: least squares by hand, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from goldset.metrics import reading_hours, reading_rate


def test_readings_on_a_line_give_the_line() -> None:
    words = list(range(20, 320, 10))  # thirty of them
    found = reading_rate(words, [5 + 0.25 * count for count in words])
    # A quarter of a second a word is 240 a minute.
    assert (found.n, found.pauses, found.reason) == (30, 0, None)
    assert [found.seconds_base, found.words_per_minute] == pytest.approx([5, 240])
    # The hours of these readings at that rate are the seconds that they took.
    assert found.seconds_base is not None
    assert found.words_per_minute is not None
    assert reading_hours(30, sum(words), seconds_base=found.seconds_base, words_per_minute=found.words_per_minute) == (
        pytest.approx(sum(5 + 0.25 * count for count in words) / 3600))


def test_noise_agrees_with_another_library() -> None:
    rng = np.random.default_rng(5)
    words = rng.integers(20, 300, size=200)
    seconds = np.clip(8 + words / 4 + rng.normal(0, 6, size=200), 0.5, None)
    slope, base = np.polyfit(words, seconds, 1)
    found = reading_rate(words.tolist(), seconds.tolist())
    assert [found.seconds_base, found.words_per_minute] == pytest.approx([base, 60 / slope])


def test_a_line_that_begins_below_zero_begins_at_zero() -> None:
    # 10, 20, 30 words in 1, 4, 7 s: slope .3, base -2. Through zero: (10 + 80 + 210) / (100 + 400 + 900) = 3 / 14 s.
    found = reading_rate([10, 20, 30] * 10, [1, 4, 7] * 10)
    assert [found.seconds_base, found.words_per_minute] == pytest.approx([0, 280])


def test_too_few_readings_and_no_slope_are_no_rate() -> None:
    words = list(range(20, 310, 10))
    assert len(words) == 29
    few = reading_rate(words, [float(count) for count in words])
    assert (few.n, few.seconds_base, few.words_per_minute, few.reason) == (29, None, None, "too_few")
    assert reading_rate([], []).reason == "too_few"
    for took in ([9.0] * 30, list(np.linspace(30, 5, 30))):  # the same however long; shorter where longer
        flat = reading_rate(range(20, 50), took)
        assert (flat.n, flat.seconds_base, flat.words_per_minute, flat.reason) == (30, None, None, "no_slope")
    assert reading_rate([50] * 40, [9.0] * 40).reason == "no_slope"  # every passage of the same length


def test_who_was_away_is_left_out_and_counted() -> None:
    words = [*range(20, 320, 10), 100, 100]
    found = reading_rate(words, [*(5 + 0.25 * count for count in words[:30]), 600.5, 30_000.0])
    assert (found.n, found.pauses) == (30, 2)
    assert found.seconds_base == pytest.approx(5)
