"""Numpy arrays as Arrow arrays, and what is distinct or among others, without numpy.ma.

``pa.array``, ``np.unique`` and ``np.isin`` look whether they were handed a masked array and import numpy.ma for that: a
tenth of a short command.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def arrow(values: npt.NDArray[Any], *, null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers or truth values -> Arrow array of the same type; null where ``null`` says so."""
    known = None if null is None else _bits(~null)
    data = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [known, data])


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whole numbers -> each once, ascending."""
    ordered = np.sort(values)
    kept: npt.NDArray[np.int64] = ordered[np.r_[True, ordered[1:] != ordered[:-1]]] if len(ordered) else ordered
    return kept


def among(values: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each whole number is one of the others."""
    if not len(others):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(others)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values
    return found
