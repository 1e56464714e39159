"""How a service is asked: rate, new tries, pauses that it asks for, and when to give up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from goldset.config import Service
from goldset.errors import ExternalError
from goldset.retrievers import asking
from goldset.retrievers.asking import AgainError, Manners, Pace, asked_pause
from goldset.retrievers.base import Answer
from goldset.retrievers.kept import Kept

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _manners(**changes: Any) -> Manners:
    return Manners(Service(**changes), pause=0.001)


def ask_all(name: str, questions: Sequence[int], ask: Any, manners: Manners, *, quiet: bool) -> list[Answer]:
    """Nothing is known yet."""
    return asking.ask_all(name, questions, ask, manners, kept=Kept(name), keys=[str(one) for one in questions], depth=5,
                          quiet=quiet)


def _ask(fails: set[int]) -> Any:
    return lambda number: Answer(status="failed", detail=f"no {number}") if number in fails else Answer(["c"], [None])


def test_requests_begin_evenly_at_the_rate() -> None:
    now = 100.0
    pace = Pace(4, clock=lambda: now)
    # A quarter of a second apart, however many threads ask at once; who comes late does not wait.
    assert [pace.due() for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    now = 100.9
    assert pace.due() == pytest.approx(0.1)  # the fifth turn is at 101
    now = 105.0
    assert pace.due() == 0.0
    assert pace.due() == 0.25
    assert [Pace(None, clock=lambda: now).due() for _ in range(3)] == [0.0, 0.0, 0.0]


def test_the_rate_of_the_configuration_holds_tries_back(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def wait(event: threading.Event, seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(threading.Event, "wait", wait)
    failures = [AgainError("HTTP 429", 7.0), AgainError("HTTP 500")]

    def ask(number: int) -> Answer:
        if failures:
            raise failures.pop(0)
        return Answer(["c"], [None])

    manners = Manners(Service(per_second=0.5, in_flight=1), pause=0.25)
    # Out of a thread pool, so that the waits are this test's only ones.
    class Here:
        def __init__(self, count: int) -> None:
            pass

        def map(self, function: Any, *items: Any) -> Any:
            return map(function, *items)

        def shutdown(self, cancel_futures: bool) -> None:
            pass

    monkeypatch.setattr(asking, "ThreadPoolExecutor", Here)
    assert ask_all("s", [1], ask, manners, quiet=True)[0].chunk_ids == ["c"]
    # turn, pause that the server asked for, turn two seconds later, the second own pause (.25 doubled), turn
    assert waited == [0.0, 7.0, pytest.approx(2.0, abs=0.1), 0.5, pytest.approx(4.0, abs=0.1)]


def test_retry_after_is_seconds_or_a_date() -> None:
    assert asked_pause("7", now=NOON) == 7.0
    assert asked_pause(" 0 ", now=NOON) == 0.0
    assert asked_pause("Mon, 02 Mar 2026 12:00:09 GMT", now=NOON) == 9.0
    assert asked_pause("Mon, 02 Mar 2026 11:59:00 GMT", now=NOON) == 0.0
    assert asked_pause("Mon, 02 Mar 2026 13:00:09 +0100", now=NOON) == 9.0
    for nothing in (None, "", "soon", "-3"):
        assert asked_pause(nothing, now=NOON) is None


def test_a_question_that_goes_on_failing_is_tried_and_told() -> None:
    tried: list[int] = []

    def ask(number: int) -> Answer:
        tried.append(number)
        if number == 2:
            raise AgainError("HTTP 503")
        return Answer(["c"], [None])

    answers = ask_all("s", [1, 2, 3], ask, _manners(retries=2), quiet=True)
    assert [answer.status for answer in answers] == [None, "failed", None]
    assert answers[1].detail == "HTTP 503 (tried 3 times)"
    assert (tried.count(1), tried.count(2)) == (1, 3)


@pytest.mark.parametrize(("share", "questions", "may"), [(0.1, 40, 4), (0.1, 5, 1), (0.0, 40, 0), (1.0, 5, 4)])
def test_more_failures_than_the_share_stop_the_stage(share: float, questions: int, may: int) -> None:
    """The share of the questions, but one may always fail, unless none may; all of them never."""
    manners = _manners(failed_share=share)
    numbers = range(questions)
    answers = ask_all("s", numbers, _ask(set(range(may))), manners, quiet=True)
    assert [answer.status for answer in answers].count("failed") == may
    with pytest.raises(ExternalError) as told:
        ask_all("s", numbers, _ask(set(range(may + 1))), manners, quiet=True)
    assert told.value.exit_code == 9
    if share < 1:
        assert str(told.value) == (
            f"[systems.s]: {may + 1} of the first {may + 1} questions failed (of {questions}), the first with: no 0; "
            f"failed_share = {share:g} allows no more, so mend the service and run again, or raise it")
    else:
        assert "none of 5 questions was answered, the first with: no 0" in str(told.value)


def test_after_giving_up_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    gate = threading.Event()

    class Workers(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            gate.set()  # it has given up: whoever waits for an answer gets it now
            super().shutdown(wait, cancel_futures=cancel_futures)

    def ask(number: int) -> Answer:
        asked.append(number)
        if number:
            gate.wait(30)
        return Answer(status="failed", detail="down")

    monkeypatch.setattr(asking, "ThreadPoolExecutor", Workers)
    with pytest.raises(ExternalError):
        ask_all("s", range(1000), ask, _manners(failed_share=0.0, in_flight=2), quiet=True)
    assert set(asked) <= {0, 1, 2}  # the second was on its way, and the third took the first one's place


def test_as_many_at_once_as_configured() -> None:
    barrier = threading.Barrier(3, timeout=30)

    def ask(number: int) -> Answer:
        barrier.wait()  # three have to be here at the same time, else it breaks
        return Answer(["c"], [None])

    assert len(ask_all("s", range(6), ask, _manners(in_flight=3), quiet=True)) == 6
    barrier = threading.Barrier(3, timeout=0.05)
    with pytest.raises(threading.BrokenBarrierError):
        ask_all("s", range(6), ask, _manners(in_flight=2), quiet=True)
