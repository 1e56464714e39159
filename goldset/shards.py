"""A corpus larger than memory: rows cut into shards, each searched in turn, the lists merged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SHARD = 250_000  # rows; their BM25 postings take about 300 MB at a hundred words each, 384-d vectors 400 MB

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Found = tuple[Rows, Floats]
"""Rows of the whole corpus and their scores, best first, equal scores by row."""


def shard_slices(total: int, most: int) -> list[slice]:
    """``total`` rows -> consecutive slices of at most ``most`` rows, as equal as can be; one (empty) slice for none."""
    count = max(1, -(-total // most))
    ends = [total * (number + 1) // count for number in range(count)]
    return [slice(low, high) for low, high in zip([0, *ends], ends, strict=False)]


def merge_found(parts: Sequence[Found], depth: int) -> Found:
    """The best lists of all shards -> the ``depth`` best of the corpus: by score, equal scores by row.

    Rows follow chunk_id, so ties fall to chunk_id; the result is what one search over everything gives.
    """
    rows = np.concatenate([rows for rows, _ in parts]) if parts else np.empty(0, np.int64)
    scores = np.concatenate([scores for _, scores in parts]) if parts else np.empty(0)
    best = np.lexsort((rows, -scores))[:depth]
    return rows[best], scores[best]
