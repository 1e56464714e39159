"""Two versions of a set, each with its run: how recall has changed from one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.errors import DataError, UsageError, nearest
from goldset.formats.sets import LabelledSet
from goldset.pipeline.curves import interval, number
from goldset.pipeline.scores import Compared, same_family


@dataclass(frozen=True)
class ComparedVersions(Compared):
    """The difference of recall between two versions."""

    def text(self) -> str:
        """The answer on a terminal."""
        found = self.document
        both, rest = found["paired"], found["rest"]
        b = f"{found['system_b']} on {found['version_b']}"
        told = (f"{b} is {found['verdict']}" if found["verdict"] in ("better", "worse")
                else found["verdict"].replace("_", " "))
        lines = [f"recall@{found['k']} of {found['system_a']} on {found['version_a']}: {number(found['recall_a'])}, "
                 f"{found['n_a']} questions; of {b}: {number(found['recall_b'])}, {found['n_b']} questions",
                 f"difference: {_difference(found)}",
                 f"  the {both['n']} questions in both, paired: {_difference(both)}"]
        if rest["n_a"] or rest["n_b"]:
            lines.append(f"  the rest, unpaired ({rest['n_a']} and {rest['n_b']} questions): {_difference(rest)}")
        warned = "".join(f"; but {warning}" for warning in found["warnings"])
        return "\n".join([*lines, f"smallest difference these versions can show: {number(found['detectable'])}",
                          f"verdict: {told}{warned}"])


def _difference(part: Mapping[str, Any]) -> str:
    shown = interval(part["difference"], part["low"], part["high"])
    if part.get("p") is None:
        return shown
    return f"{shown}, " + (f"p = {number(part['p'])}" if part["p"] >= 0.001 else "p < 0.001")


def compare_versions_any(old: LabelledSet, new: LabelledSet, runs: Mapping[str, pa.Table], *, k: int,
                         chunks: Mapping[str, Path] | None = None,
                         fields: Mapping[str, str] | None = None) -> ComparedVersions:
    """The first run on the older version, the second on the newer; a single run on both.

    ``chunks``: system -> file of the chunking that its ids are of; ``fields``: what the fields of these are called.

    Raises:
        UsageError: another chunking for a system that is not compared.
        DataError: no question is in both sets.
    """
    from goldset.metrics import compare_versions
    from goldset.metrics.questions import Questions
    from goldset.pipeline.chunking import read_chunking

    names = list(runs)
    a, b = names[0], names[-1]
    for name in chunks or {}:
        if name not in runs:
            raise UsageError(f"--chunks {name}=…: no --run is called '{name}'; {nearest(name, runs)}")
    if not set(Questions.of(old).ids) & set(Questions.of(new).ids):
        raise DataError(f"{old.label} and {new.label} have no question in common: they are no versions of one set; "
                        "measure each with goldset recall")
    own = [read_chunking(labelled, chunks[name], fields) if chunks and name in chunks else None
           for labelled, name in ((old, a), (new, b))]
    document = compare_versions(old, new, runs[a], runs[b], k, names=(a, b), chunks=(own[0], own[1]))
    document["warnings"] += dict.fromkeys([*same_family(old, {a: runs[a]}), *same_family(new, {b: runs[b]})])
    return ComparedVersions(document)
