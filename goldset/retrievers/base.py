"""What every retriever is, and how lists of one system become the tables ``run`` and ``run_status``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from goldset.errors import DataError
from goldset.retrievers.scope import KnownChunks
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
    ok and empty. ``seconds`` is what the answer took, new tries included, where it was measured.
    """

    chunk_ids: Sequence[str] = ()
    scores: Sequence[float | None] = field(default=())
    status: str | None = None
    detail: str | None = None
    seconds: float | None = None


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


def check_known(
    system: str, answers: Sequence[Answer], known: KnownChunks, scopes: Sequence[str]
) -> list[Answer]:
    """Answers of a system that is not ours -> the same, with a detail that counts two kinds of ids.

    Ids that are no chunk of this corpus, and chunks that whoever asked may not see. Both keep their ranks, as they
    kept their slots when they were served; neither enters the pool.

    Args:
        system: its name.
        answers: one a question.
        known: the corpus' chunks.
        scopes: scope of each question.

    Raises:
        DataError: not one id of all lists is a chunk of this corpus.
    """
    returned = {chunk for answer in answers for chunk in answer.chunk_ids}
    unknown = {chunk for chunk in returned if chunk not in known}
    if returned and len(unknown) == len(returned):
        raise DataError(
            f"[systems.{system}]: 0 of {len(returned)} returned ids resolve to a chunk of this corpus, "
            f"e.g. '{min(returned)}' (the corpus has e.g. '{known.example()}'); "
            "the ids must be the chunk ids of [corpus]"
        )
    checked = []
    for answer, scope in zip(answers, scopes, strict=True):
        strange = sum(chunk in unknown for chunk in answer.chunk_ids)
        beyond = len(known.hidden(answer.chunk_ids, scope))
        one = _noted(answer, strange, "ids are no chunk of this corpus")
        checked.append(_noted(one, beyond, "ids are beyond the question's scope"))
    return checked


def _noted(answer: Answer, count: int, what: str) -> Answer:
    if not count:
        return answer
    note = f"{count} of {len(answer.chunk_ids)} {what}"
    return replace(answer, detail=f"{answer.detail}; {note}" if answer.detail else note)


def unanswered(status: pa.Table) -> list[str]:
    """Table run_status of one system -> what to say of the questions that it did not answer."""
    states, details = status.column("status").to_pylist(), status.column("detail").to_pylist()
    told = []
    if failed := states.count("failed"):
        told.append(f"{failed} of {len(states)} questions failed, the first with: {details[states.index('failed')]}")
    if missing := states.count("missing"):
        told.append(f"{missing} of {len(states)} questions are not in the run")
    if wordless := states.count("no_tokens"):
        told.append(f"{wordless} of {len(states)} questions have no word to look up, and no list")
    return told


CUT = "the query exceeds the encoder's window and was cut"
"""In the detail of a question of which the encoder saw the beginning only."""

REPEATS = "stands twice in the list"
"""In the detail of a question whose list repeats a chunk."""


def repeated(chunk_ids: Sequence[str]) -> str | None:
    """The first id that stands twice in a list, if any: a list that repeats itself has no honest ranks."""
    seen: set[str] = set()
    for chunk in chunk_ids:
        if chunk in seen:
            return chunk
        seen.add(chunk)
    return None
