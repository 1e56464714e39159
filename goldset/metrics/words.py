"""Words that reach the reader: fixed k pays for big chunks, so they are counted beside every recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.metrics.questions import Ints, Questions, index_in
from goldset.text import count_words


def words_served(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int],
                 chunks: pa.Table | None = None) -> list[dict[str, Any]]:
    """Labelled set, runs -> for each system and k: mean words in the first k chunks, over its questions with results.

    Returns:
        Rows with system, k, words (null where the set has no texts), n questions, unknown (served chunks without text).
    """
    asked = Questions.of(labelled).id_array
    deepest = max(ks, default=0)
    tops = {system: run.filter(pc.and_(pc.less_equal(run.column("rank"), deepest),
                                       pc.is_in(run.column("question_id"), value_set=asked)))
            for system, run in runs.items()}
    # All at once: the texts are read once, however many systems serve them.
    words = _words(labelled, pa.concat_tables(tops.values()), chunks) if tops else None
    rows: list[dict[str, Any]] = []
    start = 0
    for system, top in tops.items():
        mine = None if words is None else words[start : start + len(top)]
        start += len(top)
        ranks = top.column("rank").to_numpy()
        for k in sorted(set(ks)):
            within = ranks <= k
            n = len(pc.unique(top.column("question_id").filter(pa.array(within))))
            known = None if mine is None else mine[within & (mine >= 0)]
            rows.append({"system": system, "k": k, "n": n,
                         "words": None if known is None or n == 0 else float(known.sum()) / n,
                         "unknown": None if mine is None else int((within & (mine < 0)).sum())})
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
    ids = pc.unique(run.column("chunk_id"))
    if chunks is None and labelled.load_words is not None:
        known = labelled.load_words(set(ids.to_pylist()))
        counts = np.array([known.get(identity, -1) for identity in ids.to_pylist()], np.int64)
    else:
        if chunks is None:
            if labelled.corpus is None:
                return None
            chunks = labelled.corpus.chunks
        place = index_in(ids, _flat(chunks.column("chunk_id")))
        text = chunks.column("text")
        counts = np.array([count_words(text[int(at)].as_py()) if at >= 0 else -1 for at in place], np.int64)
    each: Ints = counts[index_in(run.column("chunk_id"), ids)] if len(run) else np.zeros(0, np.int64)
    return each


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
