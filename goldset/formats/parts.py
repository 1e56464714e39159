"""Qrels and runs that are too large to hold -> parts of their questions, each of which fits; in any order of lines.

Every line goes to the part that the hash of its question names, on disk, block by block; then a part is read whole.
Only plain files come apart this way. Whatever is out of the ordinary in one (a field too few, a repeated pair, ids
that do not join) raises OddError and is left to the readers of whole files, which accept or name it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import arrow
from goldset.formats.columns import fields_by_block
from goldset.formats.lines import likely_size
from goldset.formats.objects import is_json
from goldset.formats.qrels import plain_judgments, shape_of, threshold_of
from goldset.formats.resolve import JOIN_AT_LEAST
from goldset.formats.runs import run_form
from goldset.formats.sets import LabelledSet
from goldset.formats.trec import RUN_FIELDS, mixed_rows, ranked, run_table
from goldset.schemas import empty

PART_BYTES = 24 << 20
"""Text that one part is made of: with what is made of it, some 250 MB."""


@dataclass(frozen=True)
class Part:
    """Some of the questions: their judgments, and for each system its run and the questions the qrels lack."""

    labelled: LabelledSet
    runs: Mapping[str, pa.Table]
    outside: Mapping[str, int]


@dataclass(frozen=True)
class Parts:
    """The set without its questions, for what is said of it, and the questions in parts, read one after the other."""

    labelled: LabelledSet
    parts: Iterator[Part]
    count: int


class OddError(Exception):
    """Something that only the readers of whole files can accept or name."""


@contextmanager
def split_files(qrels: Path, runs: Mapping[str, Path], *, relevant_from: int | None = None,
                part_bytes: int = PART_BYTES) -> Iterator[Parts]:
    """Qrels (TREC or BEIR), TREC runs by system -> Parts.

    Needs as much room in the temporary folder as the files have unpacked.

    Raises:
        OddError: here or when a part is read, where the files are not plain or do not join.
        DataError: what ``read_qrels`` raises of grades and thresholds.
    """
    with tempfile.TemporaryDirectory(prefix="goldset-parts-", ignore_cleanup_errors=True) as folder:
        yield _split(qrels, runs, Path(folder), relevant_from, part_bytes)


def _split(qrels: Path, runs: Mapping[str, Path], folder: Path, relevant_from: int | None, part_bytes: int) -> Parts:
    if is_json(qrels) or any(run_form(path) != "trec" for path in runs.values()):
        raise OddError
    shape = shape_of(qrels)
    if shape.bom or shape.blank:
        raise OddError
    count = max(1, -(-sum(likely_size(path) for path in (qrels, *runs.values())) // part_bytes))
    low, high = _scatter(qrels, shape.fields, folder, "qrels", count, tabs=shape.tabs, skip=shape.header)
    threshold = threshold_of(qrels, [low, high], relevant_from)
    for number, path in enumerate(runs.values()):
        _scatter(path, RUN_FIELDS, folder, f"run{number}", count)
    name = qrels.name.removesuffix(".gz").rsplit(".", 1)[0]

    def part(place: int) -> Part:
        found = plain_judgments(_gather(folder, "qrels", place), shape, threshold)
        if found is None:
            raise OddError
        judgments, gold = found
        labelled = LabelledSet(name=name, version=None, kind="trec", judgments=judgments, gold=gold,
                               relevant_from=threshold)
        asked = pc.unique(judgments.column("question_id"))
        tables = {system: _run(folder, number, place, system) for number, system in enumerate(runs)}
        outside = {system: _outside(table, asked) for system, table in tables.items()}
        return Part(labelled, tables, outside)

    _check_joins(folder, count, len(runs))
    whole = LabelledSet(name=name, version=None, kind="trec", judgments=empty("judgments"), gold=empty("gold"),
                        relevant_from=threshold, mapping=(f"{qrels}: {shape.said}",))
    return Parts(whole, (part(place) for place in range(count)), count)


def _scatter(path: Path, fields: Mapping[str, pa.DataType | None], folder: Path, name: str, count: int, *,
             tabs: bool = False, skip: int = 0) -> tuple[int, int]:
    """Rows of a file -> a file a part, in the order of the lines; returns the smallest and the largest grade."""
    low, high = np.iinfo(np.int32).max, np.iinfo(np.int32).min
    files: list[pa.ipc.RecordBatchFileWriter] = []
    streams = [pa.OSFile(str(folder / f"{name}-{place}"), "wb") for place in range(count)]
    try:
        for table in fields_by_block(path, fields, tabs=tabs, skip=skip):
            if table is None:
                raise OddError
            if not files:
                files = [pa.ipc.new_file(stream, table.schema) for stream in streams]
            if "grade" in table.column_names and len(table):
                low = min(low, pc.min(table.column("grade")).as_py())
                high = max(high, pc.max(table.column("grade")).as_py())
            table = table.combine_chunks()
            place = _places(table.column("question_id"), count)
            order = np.argsort(place, kind="stable")
            ends = np.searchsorted(place[order], np.arange(count + 1))
            table = table.take(arrow(order))
            for part, file in enumerate(files):
                if ends[part + 1] > ends[part]:
                    file.write_table(table.slice(int(ends[part]), int(ends[part + 1] - ends[part])))
    finally:
        for file in files:
            file.close()
        for stream in streams:
            stream.close()
    if not files:
        raise OddError
    return low, high


def _places(ids: pa.ChunkedArray, count: int) -> np.ndarray:
    """The part of each question, by the hash of its id."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if not len(whole):
        return np.zeros(0, np.int64)
    change = np.r_[True, pc.not_equal(whole[1:], whole[:-1]).to_numpy(zero_copy_only=False)]
    heads = whole.take(arrow(np.flatnonzero(change)))
    code = mixed_rows(np.zeros(len(heads), np.int64), heads)
    code = (code ^ (code >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    place = ((code >> np.uint64(33)) % np.uint64(count)).astype(np.int64)
    result: np.ndarray = place[np.cumsum(change) - 1]
    return result


def _gather(folder: Path, name: str, place: int, columns: list[str] | None = None) -> pa.Table:
    with pa.OSFile(str(folder / f"{name}-{place}"), "rb") as stream:
        table = pa.ipc.open_file(stream).read_all()
    return (table if columns is None else table.select(columns)).combine_chunks()


def _run(folder: Path, number: int, place: int, system: str) -> pa.Table:
    rows = ranked(_gather(folder, f"run{number}", place))
    if rows is None:
        raise OddError
    return run_table(rows, system, None)


def _outside(run: pa.Table, asked: pa.Array) -> int:
    """Questions of a run that the qrels lack."""
    names = pc.unique(run.column("question_id"))
    return int(pc.sum(pc.invert(pc.is_in(names, value_set=asked))).as_py() or 0)


def _check_joins(folder: Path, count: int, runs: int) -> None:
    """Ids of each run join with those of the qrels; where they hardly do, the readers of whole files say why."""
    for number in range(runs):
        asked = known = chunks = 0
        for place in range(count):
            qrels = _gather(folder, "qrels", place, ["question_id", "span_id"])
            run = _gather(folder, f"run{number}", place, ["question_id", "chunk_id"])
            names = pc.unique(run.column("question_id"))
            asked += len(names)
            known += int(pc.sum(pc.is_in(names, value_set=pc.unique(qrels.column("question_id")))).as_py() or 0)
            chunks += int(pc.sum(pc.is_in(run.column("chunk_id"),
                                          value_set=pc.unique(qrels.column("span_id")))).as_py() or 0)
        if known < JOIN_AT_LEAST * asked or not chunks:
            raise OddError
