"""A TREC run file: what production, or another tool, returned."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.retrievers.base import Answer, check_known, tabulate
from goldset.retrievers.scope import KnownChunks

DISAGREE = "score and rank order disagree; the rank decides"

_log = logging.getLogger(__name__)


class RunFileRetriever:
    """Looks questions up in a run file. The rank column decides; where scores say otherwise, that is said.

    Args:
        name: system.
        family: systems that share its index or model.
        path: TREC run file; gzip too.
        known: the corpus' chunks.
    """

    def __init__(self, name: str, family: str, *, path: Path, known: KnownChunks) -> None:
        self.name, self.family = name, family
        self._path, self._known = path, known

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; a question that the file does not hold is ``missing``.

        Raises:
            DataError: the file cannot be read, none of its ids is a chunk, or none of the questions is in it.
        """
        ids = questions.column("question_id").to_pylist()
        mine = self._run.filter(pc.is_in(self._run.column("question_id"), pa.array(ids, pa.string())))
        if ids and not len(mine):
            example = self._run.column("question_id")[0].as_py()
            raise DataError(
                f"{self._path}: 0 of {len(ids)} questions are in the run, whose question ids are like "
                f"'{example}' where the sample's are like '{ids[0]}'; write the sample's question_id"
            )
        lists: dict[str, tuple[list[str], list[float | None]]] = {}
        top = mine.filter(pc.less_equal(mine.column("rank"), depth)).sort_by("rank")
        columns = (top.column(name).to_pylist() for name in ("question_id", "chunk_id", "score"))
        for question, chunk, score in zip(*columns, strict=True):
            chunks, scores = lists.setdefault(question, ([], []))
            chunks.append(chunk)
            scores.append(score)
        missing = Answer(status="missing", detail="not in the run file")
        answers = [Answer(*lists[question]) if question in lists else missing for question in ids]
        odd = [place for place, answer in enumerate(answers) if _disagrees(answer)]
        for place in odd:
            answers[place] = replace(answers[place], detail=DISAGREE)
        if odd:
            _log.warning(
                "[systems.%s] %s: %s: in %d of %d questions, first in '%s'",
                self.name, self._path, DISAGREE, len(odd), len(lists), ids[odd[0]],
            )
        scopes = questions.column("scope").to_pylist()
        return tabulate(self.name, self.family, ids, check_known(self.name, answers, self._known, scopes))

    @cached_property
    def _run(self) -> pa.Table:
        from goldset.formats.runs import first_rank, read_run

        run = read_run(self._path, system=self.name, family=self.family)
        if first_rank(self._path) == 0:
            _log.warning("[systems.%s] %s: ranks count from 0 and are read as from 1", self.name, self._path)
        return run


def _disagrees(answer: Answer) -> bool:
    """Whether a later rank has a higher score."""
    scores = [score for score in answer.scores if score is not None]
    return any(later > earlier for earlier, later in pairwise(scores))
