"""Answers of a service, kept as they come: no question is asked twice, and a stage that was stopped asks the rest."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from goldset.errors import DataError, ExternalError
from goldset.retrievers.base import Answer, check_known
from goldset.retrievers.scope import KnownChunks
from goldset.text import content_hash

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Held:
    """An answer, and how many results were asked for."""

    depth: int
    answer: Answer


class Kept:
    """What one system has answered: in memory, and a line an answer in a file that the next start reads.

    A deeper answer also stands for a shallower one. Failures are not kept. A line holds hashes, ids and scores, never
    a question's text; one that a kill broke off is left out. What an earlier start left is served only once an answer
    of this start has said the same again: a service that answers otherwise has changed, and is asked everything anew.

    Args:
        system: its name.
        path: the file; None = memory only.

    Attributes:
        reused: questions answered by what an earlier start left.
    """

    def __init__(self, system: str, path: Path | None = None) -> None:
        self.reused: set[str] = set()
        self._system, self._path, self._lock = system, path, threading.Lock()
        self._now: dict[str, _Held] = {}
        self._before = {} if path is None else _read(path)
        self._agreed = False

    def get(self, key: str, depth: int) -> Answer | None:
        """The first ``depth`` results that are known for a question; None where it has to be asked."""
        with self._lock:
            held = self._now.get(key)
            if held is None and self._agreed:
                held = self._before.get(key)
                if held is not None and held.depth >= depth:
                    self.reused.add(key)
        if held is None or held.depth < depth:
            return None
        answer = held.answer
        return replace(answer, chunk_ids=answer.chunk_ids[:depth], scores=answer.scores[:depth])

    def add(self, key: str, depth: int, answer: Answer) -> None:
        """Keep an answer; it is on disk when this returns.

        Raises:
            ExternalError: the file cannot be written.
        """
        if answer.status is not None:
            return
        held = _Held(depth, answer)
        with self._lock:
            self._now[key] = held
            before = self._before.get(key)
            if before is not None and not _same(before, held):
                _log.warning("[systems.%s] answers otherwise than when it was stopped: every question is asked again",
                             self._system)
                self._before, self._agreed = {}, False
                self._write("w", self._now)
                return
            self._agreed = self._agreed or before is not None
            self._write("a", {key: held})

    def checked(self, answers: Sequence[Answer], known: KnownChunks, scopes: Sequence[str]) -> list[Answer]:
        """See ``check_known``; answers of which none can be used are not kept, so that the next start asks again."""
        try:
            return check_known(self._system, answers, known, scopes)
        except DataError:
            with self._lock:
                self._before, self._now = {}, {}
                if self._path is not None:
                    self._path.unlink(missing_ok=True)
            raise

    def _write(self, mode: str, entries: dict[str, _Held]) -> None:
        if self._path is None:
            return
        lines = [json.dumps({"key": key, "depth": held.depth, "ids": list(held.answer.chunk_ids),
                             "scores": list(held.answer.scores)}, ensure_ascii=False) for key, held in entries.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode, encoding="utf-8") as stream:
                # The first line end closes a line that a kill broke off.
                stream.write("".join(f"\n{line}\n" for line in lines))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise ExternalError(f"{self._path}: answers of [systems.{self._system}] cannot be written "
                                f"({error.strerror}); free the disk, then run again: what was stored is kept"
                                ) from error


def question_keys(queries: Sequence[str], scopes: Sequence[str]) -> list[str]:
    """What is sent for each question, hashed: the same query under the same scope has the same answer."""
    return [content_hash(query, scope) for query, scope in zip(queries, scopes, strict=True)]


def _same(before: _Held, now: _Held) -> bool:
    """Whether two lists are one as far as both go; results of equal scores may change places."""
    depth = min(before.depth, now.depth)
    one, other = (list(zip(held.answer.chunk_ids[:depth], held.answer.scores[:depth], strict=True))
                  for held in (before, now))
    if any(score is None for _, score in (*one, *other)):
        return one == other
    return one == other or sorted(one, key=_by_score) == sorted(other, key=_by_score)


def _by_score(result: tuple[str, float | None]) -> tuple[float, str]:
    return -(result[1] or 0.0), result[0]


def _read(path: Path) -> dict[str, _Held]:
    found: dict[str, _Held] = {}
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        try:
            row = json.loads(line)
            found[row["key"]] = _Held(row["depth"], Answer(row["ids"], row["scores"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found
