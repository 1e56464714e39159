"""What a stage is made from, its key, and why it is made again: what changed since the last time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from goldset.config import Config
from goldset.errors import DataError
from goldset.pipeline.stages import STAGES, Stage
from goldset.store import ArtifactRef, Workspace, read_json
from goldset.text import content_hash

MOST = 3  # reasons that are named before "and n more"


def writer(table: str) -> Stage:
    """The stage that writes a table."""
    return next(stage for stage in STAGES if table in stage.writes)


def file_hash(path: Path) -> str:
    """SHA-256 of a file, or of all files under a folder with their names."""
    if path.is_dir():
        return content_hash([[str(item.relative_to(path)), file_hash(item)]
                             for item in sorted(path.rglob("*")) if item.is_file()])
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'cannot be read'}; "
                        "paths in the configuration are relative to its file") from error


@dataclass(frozen=True)
class MadeFrom:
    """All that can change a stage's result.

    Attributes:
        version: of the stage's code.
        inputs: table that it reads -> key of the artifact that holds it.
        settings: dotted name of a setting -> hash of its value; the manifest shows no value that may be a secret.
        files: path from the configuration's folder -> hash.
    """

    version: int
    inputs: dict[str, str]
    settings: dict[str, str]
    files: dict[str, str]

    def key(self, stage: str) -> str:
        """The artifact's key."""
        return content_hash(stage, asdict(self))


def made_from(stage: Stage, config: Config, refs: Mapping[str, ArtifactRef]) -> MadeFrom:
    """A stage in this configuration, after the stages before it -> what its result depends on."""
    return MadeFrom(
        stage.version,
        {table: refs[writer(table).name].key for table in stage.reads},
        {name: content_hash(value) for name, value in _leaves("", stage.settings(config))},
        {os.path.relpath(path, config.base): file_hash(path) for path in stage.files(config)},
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    else:
        yield name, value


def last_made(stage: Stage, workspace: Workspace) -> MadeFrom | None:
    """What the newest finished artifact of a stage was made from; None where there is none that says it."""
    folder = workspace.artifact(stage.name, "")
    manifests = [path for path in folder.glob("*/manifest.json") if not path.parent.name.startswith(".")]
    if not manifests:
        return None
    newest = max(manifests, key=lambda path: (path.stat().st_mtime_ns, path.parent.name))
    parts = read_json(newest).get("made_from")
    return None if parts is None else MadeFrom(**parts)


def why(before: MadeFrom | None, now: MadeFrom) -> str:
    """Why a stage is made again: stages before it, files, settings. Empty where it is made for the first time."""
    if before is None:
        return ""
    found = ["this version of goldset makes it otherwise"] if before.version != now.version else []
    redone = [writer(table).name for table, key in now.inputs.items() if before.inputs.get(table) != key]
    *others, last = dict.fromkeys(redone) if redone else [""]
    found += [f"{', '.join(others)} and {last} were redone" if others else f"{last} was redone"] if redone else []
    found += _changes(before.files, now.files, "")
    found += _changes(before.settings, now.settings, "setting ")
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return ", ".join([*found[:MOST], *more])


def _changes(before: Mapping[str, str], now: Mapping[str, str], kind: str) -> list[str]:
    return [f"{kind}{name} {'is new' if name not in before else 'is gone' if name not in now else 'changed'}"
            for name in dict.fromkeys([*now, *before]) if before.get(name) != now.get(name)]
