"""Whether a run and a labelled set speak of the same ids. Ids that do not join are an error, never recall 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.formats.sets import LabelledSet

JOIN_AT_LEAST = 0.5
"""Below this share of joined ids, forms that would join after normalising stop the work (and are named)."""
_TOP = 20
_ROWS = 100_000


@dataclass(frozen=True)
class Resolved:
    """What a run brings that the set does not know: questions (ignored), and chunks (counted, null = not checked)."""

    questions_outside: int
    chunks_unknown: int | None


def resolve_run(labelled: LabelledSet, name: str, run: pa.Table, *, questions: list[str]) -> Resolved:
    """Compare the ids of one system's run with those of the set.

    Args:
        labelled: the set; its corpus is read only where the judged ids alone do not settle the matter.
        name: the run's name, for messages.
        run: table ``run`` of one system.
        questions: ids of the set's questions.

    Raises:
        DataError: no question or no chunk of the run is known to the set; or fewer than half are, and ignoring
            case, white space and leading zeros would make it half or more.
    """
    asked = pc.unique(run.column("question_id"))
    outside = _join(asked, pa.array(questions, pa.string()), name, "question", lambda: None)
    return Resolved(outside, _chunks(labelled, name, run))


def _chunks(labelled: LabelledSet, name: str, run: pa.Table) -> int | None:
    if labelled.kind == "published":
        corpus = labelled.corpus
        if corpus is None:
            return None
        return _join(pc.unique(run.column("chunk_id")), _flat(corpus.chunks.column("chunk_id")), name, "chunk",
                     lambda: None)
    # The top of the first lists shows whether the ids are of this set; only if none of it is judged, all are looked
    # at.
    judged = pc.unique(labelled.judgments.column("span_id"))
    ids = pc.unique(run.slice(0, _ROWS).filter(pc.less_equal(run.column("rank").slice(0, _ROWS), _TOP))
                    .column("chunk_id"))
    if not pc.any(pc.is_in(ids, value_set=judged)).as_py():
        ids = pc.unique(run.column("chunk_id"))
    _join(ids, judged, name, "chunk", lambda: labelled.passage_ids)
    return None


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _join(found: pa.Array, known: pa.Array, name: str, what: str, more: Callable[[], pa.Array | None]) -> int:
    """Number of ids in ``found`` that are unknown; raises where the two sides cannot be meant for each other.

    ``more`` gives a wider list of known ids, asked for only if ``known`` leaves doubt.
    """
    enough = JOIN_AT_LEAST * len(found)
    missing = _missing(found, known)
    rescued = other_spelling(missing, known) if len(found) - len(missing) < enough else 0
    if not _doubtful(len(found), len(missing), rescued):
        return len(missing)
    wider = more()
    if wider is not None:
        missing, known = _missing(missing, wider), wider
        rescued = other_spelling(missing, known) if len(found) - len(missing) < enough else 0
        if not _doubtful(len(found), len(missing), rescued):
            return len(missing)
    joined = len(found) - len(missing)
    example = f"the first is '{missing[0].as_py()}', the set has ids like '{known[0].as_py() if len(known) else ''}'"
    if rescued and joined + rescued >= enough:
        raise DataError(f"run '{name}': {joined} of {len(found)} {what} ids resolve, but {joined + rescued} would if "
                        f"case, white space and leading zeros were ignored; {example}. "
                        "Ids are compared as they stand: write them alike in both files")
    hint = ", or the corpus with --corpus" if what == "chunk" and wider is None else ""
    raise DataError(f"run '{name}': 0 of {len(found)} {what} ids resolve; {example}. "
                    f"Give the run that was made for these {what}s{hint}")


def _doubtful(found: int, missing: int, rescued: int) -> bool:
    """No id joins, or fewer than half do and another spelling would bring half of them together."""
    joined = found - missing
    return found > 0 and (joined == 0 or (rescued > 0 and joined + rescued >= JOIN_AT_LEAST * found))


def _missing(found: pa.Array, known: pa.Array) -> pa.Array:
    return found.filter(pc.invert(pc.is_in(found, value_set=known)))


def other_spelling(missing: pa.Array, known: pa.Array) -> int:
    """How many of the missing ids are known in another spelling: case, white space, leading zeros."""
    if not len(missing):
        return 0
    here, there = _normal(missing), _normal(known)
    return int(np.count_nonzero(pc.is_in(here, value_set=pc.unique(there)).to_numpy(zero_copy_only=False)))


def _normal(ids: pa.Array) -> pa.Array:
    return pc.utf8_ltrim(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), characters="0")
