"""One exception tree. A message has the value, the place, what is allowed, and the next action.

Every error that a user can cause derives from GoldsetError and carries the exit code that the command line
ends with. Library code raises; only goldset.cli prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ends; the README's table is generated from these docstring lines."""

    DONE = 0
    CHECK_FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    MISSING_EXTRA = 4
    REVIEW_INCOMPLETE = 5
    TOO_LITTLE_DATA = 6
    BUDGET = 8
    EXTERNAL = 9
    INTERRUPTED = 130


EXIT_MEANING: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.CHECK_FAILED: "a check or gate failed",
    ExitCode.USAGE: "wrong usage of the command line",
    ExitCode.BAD_INPUT: "bad configuration or data",
    ExitCode.MISSING_EXTRA: "a missing extra (the message names it)",
    ExitCode.REVIEW_INCOMPLETE: "the review is not complete",
    ExitCode.TOO_LITTLE_DATA: "too little data to tell",
    ExitCode.BUDGET: "stopped by the budget; run again to resume",
    ExitCode.EXTERNAL: "an external service failed, or another process holds the lock",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
}


class GoldsetError(Exception):
    """Something the user can fix. Subclasses differ in exit code only."""

    exit_code: ExitCode = ExitCode.BAD_INPUT


class ConfigError(GoldsetError):
    """The configuration cannot be used."""


class DataError(GoldsetError):
    """A file or table holds something that cannot be used."""


class UsageError(GoldsetError):
    """Arguments that do not fit together."""

    exit_code = ExitCode.USAGE


class MissingExtra(GoldsetError):
    """A feature needs an optional dependency group that is not installed."""

    exit_code = ExitCode.MISSING_EXTRA

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}', which is not installed: "
            f"pip install 'goldset-rebuilder[{extra}]'"
        )


class ReviewIncomplete(GoldsetError):
    """People still have items to answer or conflicts to settle."""

    exit_code = ExitCode.REVIEW_INCOMPLETE


class TooLittleData(GoldsetError):
    """The data cannot decide the question that was asked."""

    exit_code = ExitCode.TOO_LITTLE_DATA


class BudgetStop(GoldsetError):
    """The budget is used up; everything acknowledged is stored, and a second start resumes."""

    exit_code = ExitCode.BUDGET


class ExternalError(GoldsetError):
    """A service did not answer, or another process holds a lock."""

    exit_code = ExitCode.EXTERNAL


_SHOWN = 30


def nearest(value: str, allowed: Iterable[str]) -> str:
    """A closing phrase for an error: the nearest allowed name, else what is allowed, or the first of very many."""
    names = list(allowed)
    close = get_close_matches(value, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    more = f" … ({len(names):,} in all)" if len(names) > _SHOWN else ""
    return "allowed: " + ", ".join(names[:_SHOWN]) + more
