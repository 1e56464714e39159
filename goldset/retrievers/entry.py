"""Your own function as a system: ``package.module:function``."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from goldset.errors import ConfigError, DataError, ExternalError, GoldsetError
from goldset.formats.lines import opaque_id
from goldset.retrievers.base import REPEATS, Answer, repeated, tabulate
from goldset.retrievers.kept import Kept
from goldset.retrievers.scope import KnownChunks


class PythonRetriever:
    """Calls ``function(questions, depth)`` with the rows of table questions that it has not answered yet.

    The function returns rows with ``question_id`` and ``chunk_id``, best first within a question, and optionally
    ``score``: an Arrow table, a data frame, or an iterable of mappings. Questions without rows are ``empty``; rows
    beyond ``depth`` are cut.

    Args:
        name: system.
        family: systems that share its index or model.
        entry: ``package.module:function``.
        known: the corpus' chunks.
        kept: answers so far.

    Attributes:
        seconds: what the last call took, shared out over its questions.
    """

    def __init__(self, name: str, family: str, *, entry: str, known: KnownChunks, kept: Kept | None = None) -> None:
        self.name, self.family, self.kept = name, family, kept or Kept(name)
        self._entry, self._known = entry, known
        self.seconds: list[float | None] = []
        module, _, function = entry.partition(":")
        try:
            self._function = getattr(importlib.import_module(module), function)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"[systems.{name}] entry = '{entry}': no module '{error.name}'; install it, or put its "
                "folder on PYTHONPATH"
            ) from error
        except AttributeError as error:
            raise ConfigError(
                f"[systems.{name}] entry = '{entry}': the module has no '{function}'; "
                "the form is package.module:function"
            ) from error

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status.

        Raises:
            DataError: a row without ids, a question that was not asked, or a chunk that stands twice in a list.
            ExternalError: the function raised.
        """
        ids = questions.column("question_id").to_pylist()
        new = [place for place, question in enumerate(ids) if self.kept.get(question, depth) is None]
        answered = self._answers(questions.take(pa.array(new, pa.int64())), depth) if new else {}
        for question, answer in answered.items():
            self.kept.add(question, depth, answer)
        answers = [self.kept.get(question, depth) or answered[question] for question in ids]
        scopes = questions.column("scope").to_pylist()
        return tabulate(self.name, self.family, ids, self.kept.checked(answers, self._known, scopes))

    def _answers(self, questions: pa.Table, depth: int) -> dict[str, Answer]:
        """What the function says to each question."""
        lists: dict[str, tuple[list[str], list[float | None]]] = {
            question: ([], []) for question in questions.column("question_id").to_pylist()}
        for number, row in enumerate(self._rows(questions, depth), 1):
            question, chunk = opaque_id(row.get("question_id")), opaque_id(row.get("chunk_id"))
            if question not in lists or chunk is None:
                raise DataError(
                    f"[systems.{self.name}] {self._entry}, row {number}: question_id "
                    f"{row.get('question_id')!r}, chunk_id {row.get('chunk_id')!r}; a row needs the id of "
                    "a question that was asked and the id of a chunk"
                )
            chunks, scores = lists[question]
            score = row.get("score")
            chunks.append(chunk)
            scores.append(None if score is None or pd.isna(score) else float(score))
        for question, (chunks, _) in lists.items():
            twice = repeated(chunks)
            if twice is not None:
                raise DataError(
                    f"[systems.{self.name}] {self._entry}: chunk '{twice}' {REPEATS} of question {question}; a list "
                    "must not repeat a chunk"
                )
        return {question: Answer(chunks[:depth], scores[:depth]) for question, (chunks, scores) in lists.items()}

    def _rows(self, questions: pa.Table, depth: int) -> Iterable[Mapping[str, Any]]:
        """What the function returns, as rows; how long it took is kept."""
        began = time.perf_counter()
        try:
            rows = _rows(self._function(questions, depth), self._entry)
        except GoldsetError:
            raise
        except Exception as error:  # somebody else's code: whatever it raises, the user needs the place
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise ExternalError(
                f"[systems.{self.name}] {self._entry} raised {type(error).__name__} in {last.filename}, line "
                f"{last.lineno}: {error}; mend the function and run again"
            ) from error
        self.seconds = [(time.perf_counter() - began) / len(questions)] * len(questions)
        return rows


def _rows(result: Any, entry: str) -> Iterable[Mapping[str, Any]]:
    if isinstance(result, pa.Table):
        return list(result.to_pylist())
    if isinstance(result, pd.DataFrame):
        return [{str(key): value for key, value in row.items()} for row in result.to_dict("records")]
    rows = list(result) if isinstance(result, Iterable) and not isinstance(result, str | bytes) else None
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(
            f"{entry} returned {type(result).__name__}; it must return rows with question_id and chunk_id: "
            "an Arrow table, a data frame, or mappings"
        )
    return rows
