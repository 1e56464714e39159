"""A published version ``gold/<name>/v<N>`` -> LabelledSet."""

from __future__ import annotations

import re
from pathlib import Path

from goldset.errors import DataError
from goldset.formats.sets import Corpus, LabelledSet
from goldset.store import read_json, read_table

_VERSION = re.compile(r"v[0-9]+")


def is_published(folder: Path) -> bool:
    """Whether the folder looks like a published version."""
    return (folder / "manifest.json").is_file() and (folder / "judgments.parquet").is_file()


def versions_in(folder: Path) -> list[str]:
    """Names of the versions that lie in a folder ``gold/<name>``, oldest first."""
    found = [path.name for path in folder.glob("v*") if _VERSION.fullmatch(path.name) and is_published(path)]
    return sorted(found, key=lambda name: int(name[1:]))


def read_published(path: Path) -> LabelledSet:
    """Folder of a published version -> LabelledSet; chunks, spans and links are read on demand.

    Raises:
        DataError: a table is missing, is not Parquet or breaks its schema, or the manifest lacks its name.
    """
    manifest = read_json(path / "manifest.json")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("name"), str):
        raise DataError(f"{path / 'manifest.json'}: no 'name'; this is not the manifest of a published version")
    version = manifest.get("version")
    threshold = manifest.get("relevant_from")
    return LabelledSet(
        name=manifest["name"],
        version=None if version is None else f"v{version}" if isinstance(version, int) else str(version),
        kind="published",
        judgments=read_table(path, "judgments"),
        gold=read_table(path, "gold"),
        questions=read_table(path, "questions"),
        manifest=manifest,
        relevant_from=threshold if isinstance(threshold, int) else None,
        load_corpus=lambda: Corpus(chunks=read_table(path, "chunks"), spans=read_table(path, "spans"),
                                   links=read_table(path, "span_links")),
        mapping=(f"{path}: a published version of this project",),
    )
