"""Vectors on disk.

``VectorStore`` is the cache: append-only, one SQLite file that several processes share and a killed one cannot
damage. ``VectorFile`` is what a search reads: the vectors of one corpus in order, mapped, not held in memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from goldset.errors import ExternalError
from goldset.store import write_json

Vectors = npt.NDArray[np.float32]

_WAIT = 60.0  # seconds to wait for another process's transaction
_PAGE = 500  # keys a query
_CREATE = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, windows INTEGER NOT NULL, vector BLOB NOT NULL)",
    *(
        f"CREATE TRIGGER IF NOT EXISTS vectors_no_{verb.lower()} BEFORE {verb} ON vectors "
        "BEGIN SELECT RAISE(ABORT, 'vectors are append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ),
)


class VectorStore:
    """Entries key -> float32 (windows, dimension) in ``<folder>/vectors.sqlite``; an entry never changes.

    Args:
        folder: created at the first write; one folder holds the vectors of one encoder identity.
        identity: written beside them, for people.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.path = folder / "vectors.sqlite"
        self.identity = dict(identity)

    def read(self, keys: Collection[bytes]) -> dict[bytes, Vectors]:
        """The entries that exist among ``keys``."""
        if not keys or not self.path.exists():
            return {}
        found: dict[bytes, Vectors] = {}
        ordered = sorted(keys)
        with self._open() as database:
            for low in range(0, len(ordered), _PAGE):
                page = ordered[low : low + _PAGE]
                marks = ",".join("?" * len(page))
                rows = database.execute(f"SELECT key, windows, vector FROM vectors WHERE key IN ({marks})", page)
                for key, windows, blob in rows:
                    found[key] = np.frombuffer(blob, dtype="<f4").reshape(windows, -1)
        return found

    def append(self, entries: dict[bytes, Vectors]) -> dict[bytes, Vectors]:
        """Write new entries in one transaction and return them; what another process wrote first stays."""
        if entries:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_json(self.path.parent / "identity.json", self.identity)
            rows = [
                (key, len(vectors), np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                for key, vectors in sorted(entries.items())
            ]
            with self._open() as database, database:
                database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
        return entries

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT)) as database:
                database.execute(f"PRAGMA busy_timeout = {int(_WAIT * 1000)}")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                for statement in _CREATE:
                    database.execute(statement)
                yield database
        except sqlite3.Error as error:
            raise ExternalError(
                f"{self.path}: the cache of embeddings cannot be used ({error}); "
                "free the disk or the lock, or delete the file: it is only a cache"
            ) from error


class VectorFile:
    """Float32 vectors in rows, in an unnamed temporary file that goes with the process.

    Args:
        folder: where the file lies; a disk, since it holds 4 bytes for each of rows times dimension. Default: the
            system's folder for temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._rows = self._dimension = 0
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # open as long as this object
        except OSError as error:
            raise self._unusable(error) from error

    def append(self, vectors: Vectors) -> None:
        """Add rows; all have one dimension."""
        if not len(vectors):
            return
        assert self._dimension in (0, vectors.shape[1]), f"{vectors.shape[1]} columns after {self._dimension}"
        self._dimension = vectors.shape[1]
        try:
            self._file.write(np.ascontiguousarray(vectors, dtype=np.float32).data)
            self._file.flush()
        except OSError as error:
            raise self._unusable(error) from error
        self._rows += len(vectors)

    def rows(self, low: int, high: int) -> Vectors:
        """Rows ``low`` to ``high`` (half-open), read from disk as they are touched."""
        if low == high:
            return np.empty((0, self._dimension), np.float32)
        shape = (high - low, self._dimension)
        return np.memmap(self._file, np.float32, "r", offset=low * self._dimension * 4, shape=shape)

    def _unusable(self, error: OSError) -> ExternalError:
        where = self._folder or tempfile.gettempdir()
        return ExternalError(f"{where}: vectors cannot be written ({error.strerror}); free the disk, or let "
                             "GOLDSET_CACHE name a folder on a larger one")
