"""What people decided about near twins: an append-only file of JSON lines, keyed by the texts and not by their ids."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from goldset.errors import DataError, ExternalError
from goldset.formats.lines import numbered_bytes

TWINS = "twins.jsonl"
"""Its name in a workspace."""
ACTIONS = ("merge", "keep", "undo")
Texts = tuple[str, str]


@dataclass(frozen=True)
class TwinDecision:
    """One line: somebody merged two texts, kept them apart, or took back what was decided about them.

    The hashes are those of the column text_hash, smaller first; the span ids are where the texts stood then.
    """

    action: str
    texts: Texts
    spans: tuple[str, str]
    by: str
    time: datetime

    @classmethod
    def of(cls, action: str, *sides: tuple[str, str], by: str, time: datetime) -> TwinDecision:
        """A decision about two (text hash, span id) pairs, in either order."""
        (one, first), (other, second) = sorted(sides)
        return cls(action, (one, other), (first, second), by, time)


def append_decision(path: Path, decision: TwinDecision) -> None:
    """Append one line and flush it to disk; a line that a killed process left unfinished is closed first."""
    row = {**asdict(decision), "time": decision.time.astimezone(UTC).isoformat(timespec="seconds")}
    line = (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n").encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            size = stream.seek(0, os.SEEK_END)
            if size:
                stream.seek(size - 1)
                line = line if stream.read(1) == b"\n" else b"\n" + line
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise ExternalError(f"{path}: cannot be written ({error.strerror}); the workspace must be writable") from error


def read_decisions(path: Path) -> list[TwinDecision]:
    """All lines, oldest first; a line that was never finished is none. No file: nothing was decided.

    Raises:
        DataError: a line that is whole and no decision.
    """
    if not path.exists():
        return []
    found = []
    for number, line in numbered_bytes(path):
        try:
            row = json.loads(line)
        except (ValueError, UnicodeDecodeError):
            continue  # broken off while it was written; its command never reported success
        try:
            assert row["action"] in ACTIONS
            found.append(TwinDecision(row["action"], tuple(row["texts"]), tuple(row["spans"]), row["by"],
                                      datetime.fromisoformat(row["time"])))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}, line {number}: not a decision about near twins; lines are written by 'goldset "
                            "twins' and not by hand") from error
    return found


def in_force(decisions: Iterable[TwinDecision]) -> dict[Texts, TwinDecision]:
    """Decisions in order -> the one that stands for each two texts; what was undone is not there."""
    standing: dict[Texts, TwinDecision] = {}
    for decision in decisions:
        standing.pop(decision.texts, None)
        if decision.action != "undo":
            standing[decision.texts] = decision
    return standing
