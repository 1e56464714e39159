"""What every judge reads and writes: a pair, a verdict, and the desk where verdicts are looked up and filed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from goldset.judges.meter import Meter
from goldset.judges.store import VerdictStore
from goldset.judges.verdict import Verdict


@dataclass(frozen=True)
class Pair:
    """One question and one span, as a judge sees them.

    Attributes:
        turns: earlier turns of the conversation, ``(role, text)``, oldest first.
        need: the information need in one sentence, if known.
        heading: heading path of the span.
        before: sentence of context before the span, empty if there is none.
        after: sentence of context after the span.
    """

    question_id: str
    span_id: str
    question: str
    passage: str
    turns: tuple[tuple[str, str], ...] = ()
    need: str | None = None
    heading: str | None = None
    before: str = ""
    after: str = ""


class Desk:
    """Store and meter of one judging run, and its progress."""

    def __init__(self, store: VerdictStore, meter: Meter, advance: Callable[[int], None] = lambda done: None) -> None:
        self.store = store
        self.meter = meter
        self._advance = advance
        self._lock = threading.Lock()

    def known(self, key: str, pair: Pair) -> Verdict | None:
        """The stored verdict under a cache key, in the name of this pair; None if there is none to reuse."""
        found = self.store.get(key)
        if found is None:
            return None
        return replace(found, question_id=pair.question_id, span_id=pair.span_id, cached=True)

    def file(self, verdicts: Sequence[Verdict]) -> None:
        """Store verdicts; they are on disk when this returns."""
        self.store.append(verdicts)

    def done(self, pairs: int = 1) -> None:
        """Move the progress bar."""
        with self._lock:
            self._advance(pairs)


class Judge(Protocol):
    """A judge. It owns no state that the next verdict depends on."""

    @property
    def kind(self) -> str:
        """The config's word for it, e.g. openai."""

    @property
    def judge_id(self) -> str:
        """Model with its prompt and rubric: changes when any setting that can change a verdict does."""

    @property
    def family(self) -> str:
        """Judges and systems that share a model share a family; ``a+b`` belongs to both."""

    @property
    def declared_weak(self) -> bool:
        """Whether its maker says that it only ranks what people should read first."""

    def card_info(self) -> dict[str, Any]:
        """What the judge card says about it, JSON-able: kind, judge_id, family, declared_weak, and its settings."""

    def fingerprint(self, pair: Pair) -> str:
        """Pairs with the same fingerprint get the same verdict; the ids count only for recorded verdicts."""

    def judge(self, pairs: Sequence[Pair], desk: Desk) -> list[Verdict]:
        """Pairs -> their verdicts, every attempt of every vote; filed at the desk as they come.

        Raises:
            BudgetStop: before the call that the budget does not cover.
            ExternalError: the service refuses all calls.
        """
