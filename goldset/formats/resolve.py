"""Whether runs, labels and texts speak of the same ids. Ids that do not join are an error, never recall 0."""

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
            case, white space, leading zeros and a final .0 would make it half or more.
    """
    asked = pc.unique(run.column("question_id"))
    outside = _join(asked, pa.array(questions, pa.string()), name, "question", lambda: None)
    return Resolved(outside, _chunks(labelled, name, run))


def resolve_gold(labelled: LabelledSet) -> None:
    """Compare the gold of a foreign set with the ids of its corpus; no corpus, nothing to compare.

    Raises:
        DataError: fewer than half of the gold's ids are there, and another spelling would make it half or more, or the
            columns of question and passage changed places.
    """
    corpus = labelled.corpus if labelled.kind != "published" else None
    gold = pc.unique(labelled.gold.column("span_id"))
    if corpus is None or not len(gold):
        return
    known = _flat(corpus.spans.column("span_id"))
    missing = _missing(gold, known)
    if len(gold) - len(missing) >= JOIN_AT_LEAST * len(gold):
        return
    refuse_respelled(f"the gold of {labelled.label}", "passage", gold, known)
    asked = pc.unique(labelled.gold.column("question_id"))
    # With texts of the questions, their reader has looked already, and knows better: numbers may be ids of both.
    if labelled.questions is None and len(missing) == len(gold) and not len(_missing(asked, known)):
        raise DataError(
            f"{labelled.label}: 0 of {len(gold)} passage ids of the gold stand in the corpus (not "
            f"'{missing[0].as_py()}'), but all {len(asked)} question ids do (as '{asked[0].as_py()}'): the columns "
            "of question and passage changed places; write the question first, as in 'question 0 passage grade'")


def refuse_respelled(who: str, what: str, found: pa.Array, known: pa.Array) -> None:
    """Raise DataError where fewer than half of the ids are known, and half or more would be in another spelling."""
    missing = _missing(found, known)
    joined = len(found) - len(missing)
    rescued = other_spelling(missing, known) if joined < JOIN_AT_LEAST * len(found) else 0
    if rescued and joined + rescued >= JOIN_AT_LEAST * len(found):
        raise DataError(f"{who}: {joined} of {len(found)} {what} ids resolve, but {joined + rescued} would if "
                        f"case, white space, leading zeros and a final '.0' were ignored; {_examples(missing, known)}. "
                        "Ids are compared as they stand: write them alike in both files")


def _examples(missing: pa.Array, known: pa.Array) -> str:
    return f"the first is '{missing[0].as_py()}', the set has ids like '{known[0].as_py() if len(known) else ''}'"


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
    refuse_respelled(f"run '{name}'", what, found, known)
    hint = ", or the corpus with --corpus" if what == "chunk" and wider is None else ""
    raise DataError(f"run '{name}': 0 of {len(found)} {what} ids resolve; {_examples(missing, known)}. "
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
    bare = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), r"^([0-9]+)\.0$", r"\1")
    return pc.utf8_ltrim(bare, characters="0")
