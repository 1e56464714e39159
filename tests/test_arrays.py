"""Numpy to Arrow: the same as ``pa.array`` makes of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from goldset.arrays import among, arrow, distinct


@pytest.mark.parametrize("values", [
    np.arange(11, dtype=np.int32), np.arange(20)[::2], np.linspace(0, 1, 9), np.array([True] * 9 + [False, True]),
    np.zeros(0, np.int64), np.zeros(0, np.bool_), np.array([2**63], np.uint64)])
def test_equals_what_pyarrow_makes(values: np.ndarray) -> None:
    found = arrow(values)
    found.validate(full=True)
    assert found.equals(pa.array(values))
    null = np.arange(len(values)) % 3 == 1
    masked = arrow(values, null=null)
    masked.validate(full=True)
    assert masked.equals(pa.array(values, mask=null))
    assert masked.null_count == null.sum()


@pytest.mark.parametrize("seed", range(5))
def test_equals_what_numpy_says(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values, others = draw.integers(-5, 30, 8 * seed), draw.integers(0, 20, 5 * (seed % 3))
    assert distinct(values).tolist() == np.unique(values).tolist()
    assert among(values, others).tolist() == np.isin(values, others).tolist()
