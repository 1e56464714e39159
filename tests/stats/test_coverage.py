"""Seeded coverage of the intervals, over designs, sizes and judges: 93 to 97 % in the mean, 90 % in every cell."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.coverage import CELLS, Cell, coverage


def test_the_intervals_hold_the_truth() -> None:
    # 300 rebuilds a cell: a cell of true coverage .93 falls below .90 in about one of fifty simulations; the seed is
    # fixed, and the README's table has 1,000.
    found = {str(cell): coverage(cell, runs=300) for cell in CELLS}
    for name in ("macro", "micro"):
        values = {cell: row[name] for cell, row in found.items() if name in row}
        assert min(values.values()) >= 0.90, values
        assert 0.93 <= np.mean(list(values.values())) <= 0.97, values


def test_readers_who_err_break_one_reading_and_not_two() -> None:
    # 3 % wrong answers: a no taken for a yes stands for ten (METHODS 2.4); a second reader of every yes finds it.
    once, twice = Cell("simple", 180, 0.03), Cell("careful", 180, 0.03)
    assert coverage(once, runs=200, reader_error=0.03)["micro"] < 0.3
    assert coverage(twice, runs=200, reader_error=0.03)["micro"] > 0.85
