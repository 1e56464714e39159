"""Words that reach the reader: fixed k pays for big chunks, so they are counted beside every recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.metrics.questions import Ints, index_in
from goldset.text import count_words


def words_served(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int],
                 chunks: pa.Table | None = None) -> list[dict[str, Any]]:
    """Labelled set, runs -> for each system and k: mean words in the first k chunks, over questions with results.

    Returns:
        Rows with system, k, words (null where the set has no texts), n questions, unknown (served chunks without text).
    """
    rows: list[dict[str, Any]] = []
    for system, run in runs.items():
        for k in sorted(set(ks)):
            top = run.filter(pc.less_equal(run.column("rank"), k))
            words = _words(labelled, top, chunks)
            n = len(pc.unique(top.column("question_id")))
            known = None if words is None else words[words >= 0]
            rows.append({"system": system, "k": k, "n": n,
                         "words": None if known is None or n == 0 else float(known.sum()) / n,
                         "unknown": None if words is None else int((words < 0).sum())})
    return rows


def cut_by_words(labelled: LabelledSet, run: pa.Table, budget: int, *, chunks: pa.Table | None = None) -> pa.Table:
    """Run of one system -> the same lists cut before the chunk that would exceed ``budget`` words.

    Raises:
        DataError: the set has no texts, or a chunk's text is not known.
    """
    words = _words(labelled, run, chunks)
    if words is None:
        raise DataError(f"--budget {budget}: {labelled.label} has no texts to count words in; give --corpus FILE")
    if (words < 0).any():
        first = run.column("chunk_id")[int(np.flatnonzero(words < 0)[0])].as_py()
        raise DataError(f"--budget {budget}: {int((words < 0).sum())} served chunks have no text, the first is "
                        f"'{first}'; words cannot be counted, cut by --k instead")
    order = np.lexsort((run.column("rank").to_numpy(), _codes(run.column("question_id"))))
    codes = _codes(run.column("question_id"))[order]
    total = np.cumsum(words[order])
    start = np.r_[True, codes[1:] != codes[:-1]]
    before = np.maximum.accumulate(np.where(start, total - words[order], 0))
    keep = np.zeros(len(order), np.bool_)
    keep[order] = total - before <= budget
    return run.filter(pa.array(keep))


def _codes(column: pa.ChunkedArray) -> Ints:
    return index_in(column, pc.unique(column))


def _words(labelled: LabelledSet, run: pa.Table, chunks: pa.Table | None) -> Ints | None:
    """Words of each row's chunk, -1 where its text is not known; None where the set has no texts at all."""
    if chunks is None:
        if labelled.corpus is None:
            return None
        chunks = labelled.corpus.chunks
    ids = pc.unique(run.column("chunk_id"))
    place = index_in(ids, _flat(chunks.column("chunk_id")))
    text = chunks.column("text")
    counts = np.array([count_words(text[int(at)].as_py()) if at >= 0 else -1 for at in place], np.int64)
    each: Ints = counts[index_in(run.column("chunk_id"), ids)] if len(run) else np.zeros(0, np.int64)
    return each


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
