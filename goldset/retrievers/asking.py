"""Questions -> a service, several at a time: rate, new tries with pauses, and when it is no use to go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from goldset.config import Service
from goldset.errors import ExternalError
from goldset.progress import progress
from goldset.retrievers.base import Answer
from goldset.retrievers.kept import Kept

LONGEST_PAUSE = 30.0  # seconds, also where the server asks for more
FIRST_PAUSE = 0.5

T = TypeVar("T")


class AgainError(Exception):
    """This try failed in a way that a later one may not; ``wait``: seconds that the server asks for."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Pace:
    """Lets at most ``per_second`` requests begin in a second, evenly; None lets all through."""

    def __init__(self, per_second: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap = 0.0 if per_second is None else 1 / per_second
        self._clock, self._lock, self._next = clock, threading.Lock(), float("-inf")

    def due(self) -> float:
        """Seconds to wait before the next request may begin; the turn is taken."""
        with self._lock:
            now = self._clock()
            start = max(now, self._next)
            self._next = start + self._gap
            return start - now


@dataclass(frozen=True)
class Manners:
    """How a service is asked: the keys of [systems.NAME], and the first pause, which doubles."""

    service: Service
    pause: float = FIRST_PAUSE

    def allowed(self, questions: int) -> float:
        """How many of so many questions may fail: the configured share, at least one, none at share 0."""
        share = self.service.failed_share
        return max(1.0, share * questions) if share else 0.0


def ask_all(
    name: str,
    questions: Sequence[T],
    ask: Callable[[T], Answer],
    manners: Manners,
    *,
    kept: Kept,
    keys: Sequence[str],
    depth: int,
    quiet: bool,
) -> list[Answer]:
    """One answer a question, in their order, with the seconds that it took; what is known is not asked.

    A question that still fails after all tries is ``failed``, with the reason. When more fail than the configuration
    allows, or all do, no further question is asked.

    Args:
        name: system.
        questions: what ``ask`` gets.
        ask: asks once; raises AgainError where a new try makes sense.
        manners: rate, tries, share.
        kept: answers so far; new ones are put there as they come.
        keys: of each question there.
        depth: results asked for.
        quiet: no progress bar.

    Raises:
        ExternalError: too many failures.
    """
    service, stop = manners.service, threading.Event()
    pace = Pace(service.per_second)

    def timed(question: T, key: str) -> Answer:
        known = kept.get(key, depth)
        if known is not None:
            return known
        began = time.perf_counter()
        answer = replace(patiently(question), seconds=time.perf_counter() - began)
        kept.add(key, depth, answer)
        return answer

    def patiently(question: T) -> Answer:
        failure = ""
        for attempt in range(service.retries + 1):
            stop.wait(pace.due())
            if stop.is_set():
                break
            try:
                return ask(question)
            except AgainError as error:
                failure = f"{error} (tried {attempt + 1} times)"
                pause = manners.pause * 2**attempt if error.wait is None else error.wait
            if attempt < service.retries:
                stop.wait(min(pause, LONGEST_PAUSE))
        return Answer(status="failed", detail=failure)

    answers: list[Answer] = []
    workers = ThreadPoolExecutor(service.in_flight)
    try:
        with progress(f"asking {name}", len(questions), quiet=quiet) as advance:
            for answer in workers.map(timed, questions, keys):
                answers.append(answer)
                advance(1)
                _give_up(name, answers, len(questions), manners)
    finally:
        stop.set()
        workers.shutdown(cancel_futures=True)
    return answers


def _give_up(name: str, answers: Sequence[Answer], total: int, manners: Manners) -> None:
    failed = [answer for answer in answers if answer.status == "failed"]
    if len(failed) == total:
        raise ExternalError(
            f"[systems.{name}]: none of {total} questions was answered, the first with: {failed[0].detail}; "
            "check the address and that the service runs"
        )
    if len(failed) > manners.allowed(total):
        raise ExternalError(
            f"[systems.{name}]: {len(failed)} of the first {len(answers)} questions failed (of {total}), the first "
            f"with: {failed[0].detail}; failed_share = {manners.service.failed_share:g} allows no more, so mend the "
            "service and run again, or raise it"
        )


def asked_pause(header: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds of a Retry-After header, which may be a number or an HTTP date; None where it says nothing readable."""
    text = (header or "").strip()
    if text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
