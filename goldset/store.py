"""Workspace, atomic artifacts with manifests, and one exclusive lock for the commands that write.

``artifacts/<stage>/<key>/`` holds one Parquet file a table and ``manifest.json``. The key is the hash of all that can
change the result, so an artifact that exists is finished and right: it was written aside and renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goldset.errors import DataError, ExternalError
from goldset.schemas import SCHEMAS, conform

FORMAT = 1


@dataclass(frozen=True)
class ArtifactRef:
    """What tasks exchange: never a table, only where it lies and what it is."""

    stage: str
    key: str
    path: Path
    reused: bool = False


class Workspace:
    """A folder that belongs to one project: artifacts, caches, databases, published sets."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> Workspace:
        """Create the folder, or check that its format is ours; ExternalError where it cannot be written."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExternalError(f"{self.root}: cannot create the workspace ({error.strerror}); "
                                "set [project] workspace to a folder that can be written") from error
        marker = self.root / "workspace.json"
        if not marker.exists():
            write_json(marker, {"format": FORMAT})
        found = read_json(marker).get("format")
        if found != FORMAT:
            raise DataError(f"{marker}: workspace format {found}, this version reads {FORMAT}; "
                            "use another workspace folder or the version that wrote it")
        return self

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the exclusive lock; ExternalError names the holder if another process has it."""
        path = self.root / "lock"
        with path.open("a+", encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                handle.seek(0)
                holder = handle.read().strip() or "another process"
                raise ExternalError(f"{path}: the workspace is locked by {holder}; wait for it to end, "
                                    "or stop it, then run again") from error
            handle.truncate(0)
            handle.write(f"goldset {what} (process {os.getpid()})")
            handle.flush()
            try:
                yield
            finally:
                handle.truncate(0)

    def artifact(self, stage: str, key: str) -> Path:
        """Folder of one stage's result."""
        return self.root / "artifacts" / stage / key

    def unfinished(self, stage: str, key: str) -> Path:
        """Folder for what a stage has got so far and would be sorry to lose; it goes when the result is written."""
        return self.root / "unfinished" / stage / key

    def has(self, stage: str, key: str) -> bool:
        """Whether the result is there, whole."""
        return (self.artifact(stage, key) / "manifest.json").exists()

    def cache(self, kind: str) -> Path:
        """Folder of a cache that several processes share; GOLDSET_CACHE moves it elsewhere."""
        base = os.environ.get("GOLDSET_CACHE")
        path = (Path(base) if base else self.root / "cache") / kind
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, stage: str, key: str, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any]) -> ArtifactRef:
        """Write conforming tables and the manifest aside, then rename; a finished artifact is never overwritten."""
        target = self.artifact(stage, key)
        if target.exists() and not self.has(stage, key):
            shutil.rmtree(target)  # a copy that broke off; without a manifest it was never a result
        with staged_folder(target) as folder:
            for name, table in tables.items():
                pq.write_table(conform(table, name) if name in SCHEMAS else table, folder / f"{name}.parquet")
            write_json(folder / "manifest.json", {**manifest, "stage": stage, "key": key,
                                                  "rows": {name: len(table) for name, table in tables.items()}})
        shutil.rmtree(self.unfinished(stage, ""), ignore_errors=True)
        with contextlib.suppress(OSError):
            (self.root / "unfinished").rmdir()  # unless another stage has something there
        return ArtifactRef(stage, key, target)


def read_table(folder: Path, name: str) -> pa.Table:
    """One table of an artifact or published set, checked against its schema."""
    path = folder / f"{name}.parquet"
    if not path.exists():
        raise DataError(f"{path}: no such table; the folder holds {sorted(p.name for p in folder.glob('*'))}")
    try:
        table = pq.read_table(path, memory_map=False)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a Parquet file ({error})") from error
    return conform(table, name) if name in SCHEMAS else table


@contextlib.contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """A folder to fill; renamed to ``target`` when the block ends well, removed when it does not.

    What killed processes left beside it is removed first. A process holds a lock on the folder that it fills, which
    ends with it; so what another one is filling stays.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(target.parent)
        aside, held = _held_folder(target)
    except OSError as error:
        raise ExternalError(f"{target}: cannot be written ({error.strerror}); the folder must be writable") from error
    try:
        aside.chmod(0o755)
        yield aside
        if target.exists():
            return
        try:
            aside.rename(target)
        except OSError:
            if not target.exists():
                raise
    finally:
        if aside.exists():
            shutil.rmtree(aside, ignore_errors=True)
        os.close(held)


_STAGED = ".filling"
_STAGED_NAME = re.compile(r"\..+-[a-z0-9_]{8}\.filling")  # as tempfile.mkdtemp makes it


def _held_folder(target: Path) -> tuple[Path, int]:
    """A new folder beside ``target``, and the open file that holds its lock."""
    while True:
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=_STAGED, dir=target.parent))
        try:
            held = os.open(aside, os.O_RDONLY)
        except FileNotFoundError:
            continue  # taken for abandoned in the moment before the lock
        with contextlib.suppress(OSError):  # a file system without locks: then nobody clears either
            fcntl.flock(held, fcntl.LOCK_EX)
        if aside.exists():
            return aside, held
        os.close(held)


def _clear_abandoned(parent: Path) -> None:
    """Remove the folders that nobody fills any more; what cannot be looked at or removed stays."""
    for folder in parent.iterdir():
        if not _STAGED_NAME.fullmatch(folder.name):
            continue
        with contextlib.suppress(OSError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file aside, flush it to disk, then rename; ExternalError where nothing can be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file aside, flush it to disk, then rename; ExternalError where nothing can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise ExternalError(f"{path}: cannot be written ({error.strerror}); name a file in a folder that can be "
                            "written") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, aside then renamed. NaN is refused: an unknown is null."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; DataError names the file and line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
