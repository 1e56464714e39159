"""What every retriever is, and how lists of one system become the tables ``run`` and ``run_status``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from goldset.errors import DataError
from goldset.schemas import conform, schema_of


class Retriever(Protocol):
    """One system: questions -> ranked chunks."""

    name: str
    family: str

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run (at most ``depth`` rows a question) and run_status (a row a question)."""
        ...


@dataclass(frozen=True)
class Answer:
    """What one system says to one question, best first.

    ``status`` is given only where there is no list (failed, missing, no_tokens); otherwise the list decides between
    ok and empty.
    """

    chunk_ids: Sequence[str] = ()
    scores: Sequence[float | None] = field(default=())
    status: str | None = None
    detail: str | None = None


def tabulate(
    name: str, family: str, question_ids: Sequence[str], answers: Sequence[Answer]
) -> tuple[pa.Table, pa.Table]:
    """One answer a question -> tables run and run_status of one system, in the order of the questions."""
    lengths = np.array([len(answer.chunk_ids) for answer in answers], dtype=np.int64)
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    of_question = np.repeat(np.arange(len(answers)), lengths)
    rank = np.arange(1, total + 1) - np.repeat(ends - lengths, lengths)
    run = pa.table(
        {
            "system": pa.repeat(pa.scalar(name), total),
            "family": pa.repeat(pa.scalar(family), total),
            "question_id": pa.array(question_ids, pa.string()).take(pa.array(of_question)),
            "rank": pa.array(rank, pa.int32()),
            "chunk_id": pa.array([chunk for answer in answers for chunk in answer.chunk_ids], pa.string()),
            "score": pa.array([score for answer in answers for score in answer.scores], pa.float64()),
        },
        schema=schema_of("run"),
    )
    states = [answer.status or ("ok" if answer.chunk_ids else "empty") for answer in answers]
    status = pa.table(
        {
            "system": [name] * len(answers),
            "question_id": pa.array(question_ids, pa.string()),
            "status": pa.array(states, pa.string()),
            "returned": pa.array(lengths, pa.int32()),
            "detail": pa.array([answer.detail for answer in answers], pa.string()),
        },
        schema=schema_of("run_status"),
    )
    return conform(run, "run"), conform(status, "run_status")


def check_known(system: str, answers: Sequence[Answer], known: Collection[str]) -> list[Answer]:
    """Count ids that are no chunk of this corpus in the detail; they keep their ranks, as they kept their slots.

    Raises:
        DataError: not one id of all lists is a chunk of this corpus.
    """
    returned = {chunk for answer in answers for chunk in answer.chunk_ids}
    unknown = returned.difference(known)
    if returned and len(unknown) == len(returned):
        raise DataError(
            f"[systems.{system}]: 0 of {len(returned)} returned ids resolve to a chunk of this corpus, "
            f"e.g. '{min(returned)}' (the corpus has e.g. '{min(known, default='nothing')}'); "
            "the ids must be the chunk ids of [corpus]"
        )
    if not unknown:
        return list(answers)
    return [_noted(answer, sum(chunk in unknown for chunk in answer.chunk_ids)) for answer in answers]


def _noted(answer: Answer, unknown: int) -> Answer:
    if not unknown:
        return answer
    note = f"{unknown} of {len(answer.chunk_ids)} ids are no chunk of this corpus"
    return replace(answer, detail=f"{answer.detail}; {note}" if answer.detail else note)


def repeated(chunk_ids: Sequence[str]) -> str | None:
    """The first id that stands twice in a list, if any: a list that repeats itself has no honest ranks."""
    seen: set[str] = set()
    for chunk in chunk_ids:
        if chunk in seen:
            return chunk
        seen.add(chunk)
    return None
