"""Verdicts as they come: an append-only SQLite file that several processes share.

Write-ahead log with full synchronisation: a row that ``append`` has returned for survives a killed process and a
power cut. Rows are never changed or removed. A row with status ``failed`` is a record, not an answer: it is not
served, so that a second start asks again.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from goldset.errors import DataError, ExternalError
from goldset.judges.verdict import Verdict

_FORMAT = 1
_COLUMNS = tuple(field.name for field in fields(Verdict) if field.name != "cached")
_TYPES = {"vote": "INTEGER", "attempt": "INTEGER", "relevant": "INTEGER", "score": "REAL", "prompt_tokens": "INTEGER",
          "completion_tokens": "INTEGER", "cost": "REAL"}
_CREATE = (
    "CREATE TABLE IF NOT EXISTS verdicts (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
    + ", ".join(f"{name} {_TYPES.get(name, 'TEXT')}" for name in _COLUMNS)
    + ", stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')))"
)
_INDEX = "CREATE INDEX IF NOT EXISTS verdicts_by_key ON verdicts (cache_key) WHERE status <> 'failed'"
_APPEND_ONLY = tuple(
    f"CREATE TRIGGER IF NOT EXISTS verdicts_no_{verb.lower()} BEFORE {verb} ON verdicts "
    "BEGIN SELECT RAISE(ABORT, 'verdicts are append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
_INSERT = f"INSERT INTO verdicts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM verdicts"


class VerdictStore:
    """The verdict store at ``path``; created if it is not there. Safe for threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA busy_timeout = 60000")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._create()
        except sqlite3.OperationalError as error:
            raise ExternalError(f"{path}: the verdict store cannot be opened ({error}); check that the folder can be "
                                "written and no other program holds the file") from error
        except sqlite3.DatabaseError as error:
            raise DataError(f"{path}: not a verdict store ({error}); move the file away, or name another "
                            "workspace") from error

    def _create(self) -> None:
        # The version is read inside the write lock: two processes may open a new file at the same time.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT):
                raise DataError(f"{self.path}: verdict store format {found}, this version reads {_FORMAT}; "
                                "use the version that wrote it, or another workspace")
            for statement in (_CREATE, _INDEX, *_APPEND_ONLY, f"PRAGMA user_version = {_FORMAT}"):
                self._db.execute(statement)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def append(self, verdicts: Sequence[Verdict]) -> None:
        """Add rows in one transaction; they are on disk when this returns."""
        rows = [astuple(verdict)[:-1] for verdict in verdicts]  # cached, the last field, is not stored
        if not rows:
            return
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    self._db.executemany(_INSERT, rows)
                    self._db.execute("COMMIT")
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
            except sqlite3.OperationalError as error:
                raise ExternalError(f"{self.path}: verdicts cannot be written ({error}); free the disk or the lock, "
                                    "then run again: what was stored is kept") from error

    def get(self, cache_key: str) -> Verdict | None:
        """The first answer stored under a key, or None. Failed calls are no answers."""
        with self._lock:
            row = self._db.execute(
                f"{_SELECT} WHERE cache_key = ? AND status <> 'failed' ORDER BY seq LIMIT 1", (cache_key,)
            ).fetchone()
        return None if row is None else _verdict(row)

    def rows(self, judge_id: str | None = None) -> list[Verdict]:
        """All rows in the order in which they were stored, failed calls included; of one judge if named."""
        where, values = ("", ()) if judge_id is None else (" WHERE judge_id = ?", (judge_id,))
        with self._lock:
            found = self._db.execute(f"{_SELECT}{where} ORDER BY seq", values).fetchall()
        return [_verdict(row) for row in found]

    def models(self, judge_id: str) -> list[str]:
        """Models that answered for a judge, as the server named them, by name."""
        with self._lock:
            found = self._db.execute("SELECT DISTINCT model_answered FROM verdicts WHERE judge_id = ? "
                                     "AND model_answered IS NOT NULL ORDER BY 1", (judge_id,)).fetchall()
        return [row[0] for row in found]

    def count(self) -> int:
        """Rows stored."""
        with self._lock:
            return int(self._db.execute("SELECT COUNT(*) FROM verdicts").fetchone()[0])

    def close(self) -> None:
        """Close the file; further calls fail."""
        with self._lock:
            self._db.close()


def _verdict(row: tuple[Any, ...]) -> Verdict:
    values = dict(zip(_COLUMNS, row, strict=True))
    if values["relevant"] is not None:
        values["relevant"] = bool(values["relevant"])
    return Verdict(**values)
