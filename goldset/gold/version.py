"""A version on disk: written whole or not at all; the same content gives the same version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goldset.errors import DataError
from goldset.schemas import canonical_hash, conform
from goldset.store import read_json, staged_folder, write_json
from goldset.text import content_hash

# Left out of the content hash: what may differ between two runs that made the same set.
_UNHASHED: dict[str, tuple[str, ...]] = {"questions": (), "spans": (), "judgments": ("label_ids",), "gold": ()}


def content_hash_of(tables: Mapping[str, pa.Table]) -> str:
    """Hash over the canonical rows of questions, spans, judgments and gold: no times, seconds, cost or label ids."""
    return content_hash([canonical_hash(tables[name], name, leave_out=out) for name, out in _UNHASHED.items()])


def version_paths(folder: Path) -> list[Path]:
    """Published versions of one set, oldest first."""
    found = [path for path in folder.glob("v*") if re.fullmatch(r"v[1-9]\d*", path.name)
             and (path / "manifest.json").exists()]
    return sorted(found, key=lambda path: int(path.name[1:]))


def latest_version(folder: Path) -> Path:
    """The newest version of a set; DataError where none is published."""
    paths = version_paths(folder)
    if not paths:
        raise DataError(f"{folder}: no published version; run 'goldset publish'")
    return paths[-1]


def write_version(folder: Path, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any],
                  finish: Callable[[Path], None]) -> tuple[Path, bool]:
    """Write ``folder/v<N>`` -> (path, whether it is new).

    If the newest version has the same content hash, that one is returned. ``finish`` adds exports and the report to
    the folder before it is renamed into place, so that a version is there whole or not at all.
    """
    digest = content_hash_of(tables)
    versions = version_paths(folder)
    if versions and (newest := read_json(versions[-1] / "manifest.json"))["content_hash"] == digest \
            and newest["partial"] == manifest["partial"]:
        return versions[-1], False
    number = int(versions[-1].name[1:]) + 1 if versions else 1
    while (folder / f"v{number}").exists():  # a folder without a manifest is no version, but it is not ours to remove
        number += 1
    target = folder / f"v{number}"
    with staged_folder(target) as staged:
        for name, table in tables.items():
            pq.write_table(conform(table, name), staged / f"{name}.parquet")
        write_json(staged / "manifest.json", {**manifest, "version": f"v{number}", "content_hash": digest})
        finish(staged)
    return target, True
