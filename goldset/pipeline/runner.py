"""Walks the stages: computes each key, skips what is finished, writes what is not, says which and why."""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from goldset.config import Config
from goldset.errors import DataError, UsageError, nearest
from goldset.pipeline.stages import STAGES, Context, Stage
from goldset.store import ArtifactRef, Workspace, read_json, read_table, write_json
from goldset.text import content_hash

CURRENT = "current.json"  # which artifacts belong to the last whole rebuild


class Runner(Protocol):
    """Runs one step of the work: the plain one calls it, Prefect's wraps it in a task."""

    def __call__(self, name: str, step: Callable[[], Any]) -> Any:
        """Run ``step`` under ``name`` and return its (small) result."""
        ...


def plain(name: str, step: Callable[[], Any]) -> Any:
    """The plain runner: just call."""
    return step()


Say = Callable[[str], None]


def silent(line: str) -> None:
    """Say nothing."""


class Artifacts:
    """The finished artifacts of one configuration, as references; tables are read when asked for."""

    def __init__(self, refs: Sequence[ArtifactRef]) -> None:
        self.refs = {ref.stage: ref for ref in refs}

    def table(self, name: str) -> pa.Table:
        """One table of whichever stage writes it."""
        stage = _writer(name)
        return read_table(self.refs[stage.name].path, name)

    def report(self, stage: str) -> dict[str, Any]:
        """What the stage reported about itself."""
        manifest: dict[str, Any] = read_json(self.refs[stage].path / "manifest.json")
        report: dict[str, Any] = manifest["report"]
        return report


def _writer(table: str) -> Stage:
    return next(stage for stage in STAGES if table in stage.writes)


def stages_until(until: str | None) -> tuple[Stage, ...]:
    """The stages up to and with ``until``; all of them without it."""
    names = [stage.name for stage in STAGES]
    if until is None:
        return STAGES
    if until not in names:
        raise UsageError(f"no stage '{until}'; {nearest(until, names)}")
    return STAGES[: names.index(until) + 1]


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


def stage_key(stage: Stage, config: Config, refs: dict[str, ArtifactRef]) -> str:
    """The hash of all that can change the stage's result."""
    inputs = {table: refs[_writer(table).name].key for table in stage.reads}
    files = [file_hash(path) for path in stage.files(config)]
    return content_hash(stage.name, stage.version, stage.settings(config), inputs, files)


def run_stage(stage: Stage, context: Context, refs: dict[str, ArtifactRef], say: Say = silent) -> ArtifactRef:
    """Run one stage, or find its finished artifact."""
    key = stage_key(stage, context.config, refs)
    if context.workspace.has(stage.name, key):
        say(f"{stage.name}: nothing changed, reused")
        return ArtifactRef(stage.name, key, context.workspace.artifact(stage.name, key), reused=True)
    began = time.perf_counter()
    tables = {name: read_table(refs[_writer(name).name].path, name) for name in stage.reads}
    made, report = stage.run(replace(context, key=key), tables)
    assert set(made) == set(stage.writes), f"stage {stage.name} made {sorted(made)}, not {sorted(stage.writes)}"
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ref = context.workspace.write(stage.name, key, made, {
        "inputs": {table: refs[_writer(table).name].key for table in stage.reads}, "seed": context.config.project.seed,
        "seconds": round(seconds, 3), "peak_memory_mb": round(memory, 1), "report": report})
    rows = ", ".join(f"{len(table):,} {name}" for name, table in made.items())
    say("; ".join([f"{stage.name}: {rows} in {seconds:.1f} s", *_remarks(report)]))
    return ref


def _remarks(report: dict[str, Any]) -> list[str]:
    """What of a stage's report people should know at once."""
    remarks = []
    offsets = report.get("offsets", {})
    if set(offsets) - {"verified"}:
        first = "; ".join(f"first {state}: {where}" for state, where in report["first"].items())
        remarks.append("offsets of the chunks: " + ", ".join(f"{count:,} {state}" for state, count in offsets.items())
                       + (f" ({first})" if first else ""))
    unplaced = offsets.get("mismatched", 0) + offsets.get("absent", 0)
    if unplaced:
        remarks.append(f"{unplaced:,} chunks are not known to stand where they say: they can carry no evidence")
    if report.get("near_twins", {}).get("pairs"):
        remarks.append(f"{report['near_twins']['pairs']:,} pairs of passages are almost the same: 'goldset twins list'")
    return remarks


def rebuild(config: Config, *, until: str | None = None, runner: Runner = plain, quiet: bool = False,
            say: Say = silent) -> Artifacts:
    """Run the stages, under the workspace's lock; finished ones are skipped. Killed at any point, it resumes."""
    workspace = Workspace(config.workspace).open()
    context = Context(config, workspace, quiet)
    refs: dict[str, ArtifactRef] = {}
    with workspace.lock("rebuild"):
        for stage in stages_until(until):
            refs[stage.name] = runner(stage.name, partial(run_stage, stage, context, refs, say))
        if until is None or until == STAGES[-1].name:
            write_json(workspace.root / CURRENT, {"stages": {name: ref.key for name, ref in refs.items()}})
    return Artifacts(list(refs.values()))


def finished(config: Config) -> Artifacts:
    """The artifacts of the last whole rebuild in this workspace; DataError where there is none.

    Read from a pointer and not from the keys: between a rebuild and its publication people read for days, and the
    logs go on growing.
    """
    workspace = Workspace(config.workspace).open()
    pointer = workspace.root / CURRENT
    keys = read_json(pointer)["stages"] if pointer.exists() else {}
    for stage in STAGES:
        if stage.name not in keys or not workspace.has(stage.name, keys[stage.name]):
            raise DataError(f"{workspace.root}: no finished rebuild (stage '{stage.name}' is missing); "
                            "run 'goldset rebuild' first")
    return Artifacts([ArtifactRef(name, key, workspace.artifact(name, key), reused=True)
                      for name, key in keys.items()])
