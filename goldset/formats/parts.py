"""A set and runs that are too large to hold -> parts of their questions, each of which fits; in any order of lines.

Every row goes to the part that the hash of its question names, on disk, block by block; then a part is read whole.
Where the questions have texts, near-duplicates go to one part. Only plain files come apart this way. Whatever is out of
the ordinary in one (a field too few, a repeated pair, ids that do not join) raises OddError and is left to the readers
of whole files, which accept or name it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import arrow
from goldset.formats.beir import find_file, find_qrels, id_blocks, is_beir, question_batches
from goldset.formats.columns import fields_by_block
from goldset.formats.lines import likely_size
from goldset.formats.objects import is_json
from goldset.formats.qrels import Shape, plain_judgments, shape_of, threshold_of
from goldset.formats.resolve import JOIN_AT_LEAST, other_spelling
from goldset.formats.runs import in_order, likely_rows, run_blocks, run_form
from goldset.formats.sets import LabelledSet
from goldset.formats.trec import mixed_rows, run_table
from goldset.schemas import empty

PART_BYTES = 24 << 20
"""Text that one part is made of: with what is made of it, some 250 MB."""
_ROW_BYTES = 32
"""What a row of a run takes as text."""
Ints = np.ndarray


@dataclass(frozen=True)
class Source:
    """The files of a set: judgments, and texts where there are any."""

    qrels: Path
    questions: Path | None
    corpus: Path | None
    name: str
    kind: str

    @classmethod
    def of(cls, labelled: Path | None, qrels: Path | None, questions: Path | None = None,
           corpus: Path | None = None) -> Source | None:
        """The files that a command names; None where it names none that may come apart (a version, a missing file)."""
        path = qrels if labelled is None else labelled if qrels is None else None
        if path is None:
            return None
        if path.is_dir():
            from goldset.formats.published import is_published  # brings pyarrow.parquet

            if is_published(path) or not is_beir(path):
                return None
            return cls(find_qrels(path), questions or find_file(path, "queries.jsonl"),
                       corpus or find_file(path, "corpus.jsonl"), path.resolve().name, "beir")
        return cls(path, questions, corpus, path.name.removesuffix(".gz").rsplit(".", 1)[0], "trec")

    def size(self, runs: Iterable[Path]) -> int:
        """Bytes of what has to be held where the set and these runs are read whole, about."""
        given = [path for path in (self.qrels, self.questions, self.corpus) if path is not None]
        return sum(map(likely_size, given)) + sum(map(_run_size, runs))


@dataclass(frozen=True)
class Part:
    """Some of the questions: their judgments, and for each system its run and the questions the set lacks."""

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
def split_files(source: Source, runs: Mapping[str, Path], *, relevant_from: int | None = None,
                part_bytes: int = PART_BYTES) -> Iterator[Parts]:
    """A set (qrels TREC or BEIR), runs by system (TREC, JSONL, Parquet) -> Parts.

    Needs as much room in the temporary folder as the files have unpacked, without the texts of the corpus.

    Raises:
        OddError: here or when a part is read, where the files are not plain or do not join.
        DataError: what ``read_qrels`` raises of grades and thresholds.
    """
    with tempfile.TemporaryDirectory(prefix="goldset-parts-", ignore_cleanup_errors=True) as folder:
        given = [path for path in (source.qrels, source.questions) if path is not None]
        size = sum(map(likely_size, given)) + sum(map(_run_size, runs.values()))
        yield _Split(Path(folder), max(1, -(-size // part_bytes))).split(source, runs, relevant_from)


def _run_size(path: Path) -> int:
    rows = likely_rows(path) if path.is_file() else None
    return likely_size(path) if rows is None else rows * _ROW_BYTES


@dataclass
class _Split:
    """Where the rows go: ``count`` parts in ``folder``; ``codes`` and ``places`` are those of questions with a text."""

    folder: Path
    count: int
    codes: Ints = field(default_factory=lambda: np.zeros(0, np.uint64))
    places: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def split(self, source: Source, runs: Mapping[str, Path], relevant_from: int | None) -> Parts:
        """Scatter all the files, and say how the parts are read."""
        if is_json(source.qrels) or any(run_form(path) == "pairs" for path in runs.values()):
            raise OddError
        shape = shape_of(source.qrels)
        if shape.bom or shape.blank:
            raise OddError
        if source.questions is not None:
            self._questions(source.questions)
        grades = self._qrels(source.qrels, shape)
        threshold = threshold_of(source.qrels, grades, relevant_from)
        for number, path in enumerate(runs.values()):
            self._scatter(run_blocks(path), f"run{number}", "question_id")
        lost = None if source.corpus is None else self._lost(source.corpus)
        self._check_joins(source, len(runs))

        def part(place: int) -> Part:
            found = plain_judgments(self._gather("qrels", place), shape, threshold)
            if found is None:
                raise OddError
            judgments, gold = found
            ids = None if lost is None else pc.unique(_but(judgments.column("span_id"), lost))
            labelled = LabelledSet(
                name=source.name, version=None, kind=source.kind, judgments=judgments, gold=gold,
                questions=None if source.questions is None else self._gather("questions", place),
                relevant_from=threshold, load_ids=None if ids is None else lambda: ids)
            tables = {system: self._run(number, place, system) for number, system in enumerate(runs)}
            known = self._known(source, place)
            outside = {system: len(_but(pc.unique(table.column("question_id")), known))
                       for system, table in tables.items()}
            return Part(labelled, tables, outside)

        whole = LabelledSet(name=source.name, version=None, kind=source.kind, judgments=empty("judgments"),
                            gold=empty("gold"), relevant_from=threshold, mapping=(f"{source.qrels}: {shape.said}",))
        return Parts(whole, (part(place) for place in range(self.count)), self.count)

    def _questions(self, path: Path) -> None:
        """Questions with text, near-duplicates in one part; remembers the part of each."""
        codes, places = [], []

        def remembered() -> Iterator[pa.Table]:
            for batch in question_batches(path):
                codes.append(_codes(batch.column("question_id")))
                places.append(_hashed(batch.column("cluster_id"), self.count))
                yield batch

        self._scatter(remembered(), "questions", "cluster_id")
        found = np.concatenate(codes)
        order = np.argsort(found, kind="stable")
        self.codes, self.places = found[order], np.concatenate(places)[order]
        if np.any(self.codes[1:] == self.codes[:-1]):
            raise OddError  # an id that stands twice

    def _qrels(self, path: Path, shape: Shape) -> list[int]:
        """Judgments; returns the smallest and the largest grade."""
        grades = [np.iinfo(np.int32).max, np.iinfo(np.int32).min]

        def seen() -> Iterator[pa.Table | None]:
            for table in fields_by_block(path, shape.fields, tabs=shape.tabs, skip=shape.header):
                if table is not None and len(table):
                    ends = pc.min_max(table.column("grade")).as_py()
                    grades[:] = min(grades[0], ends["min"]), max(grades[1], ends["max"])
                yield table

        self._scatter(seen(), "qrels", "question_id")
        return grades

    def _lost(self, corpus: Path) -> pa.Array:
        """Judged passages that the corpus does not have."""
        self._scatter(id_blocks(corpus), "corpus", "passage_id")
        judged = (self._gather("qrels", place, ["span_id"]) for place in range(self.count))
        self._scatter(judged, "judged", "span_id")
        return pa.concat_arrays([_but(pc.unique(self._gather("judged", place).column("span_id")),
                                      self._gather("corpus", place).column("passage_id"))
                                 for place in range(self.count)])

    def _scatter(self, tables: Iterable[pa.Table | None], name: str, column: str) -> None:
        """Rows -> a file a part, in the order they come in; the part of a row is that of its question, or passage."""
        files: list[pa.ipc.RecordBatchFileWriter] = []
        streams = [pa.OSFile(str(self.folder / f"{name}-{place}"), "wb") for place in range(self.count)]
        try:
            for table in tables:
                if table is None:
                    raise OddError
                if not files:
                    files = [pa.ipc.new_file(stream, table.schema) for stream in streams]
                table = table.combine_chunks()
                place = self._places(table.column(column), column)
                order = np.argsort(place, kind="stable")
                ends = np.searchsorted(place[order], np.arange(self.count + 1))
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

    def _places(self, ids: pa.ChunkedArray, column: str) -> Ints:
        """The part of each row."""
        if column != "question_id" or not len(self.codes):
            return _hashed(ids, self.count)
        whole, back = _heads(ids)
        codes = _codes(whole)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        place: Ints = np.where(self.codes[at] == codes, self.places[at], _hashed(whole, self.count))[back]
        return place

    def _gather(self, name: str, place: int, columns: list[str] | None = None) -> pa.Table:
        with pa.OSFile(str(self.folder / f"{name}-{place}"), "rb") as stream:
            table = pa.ipc.open_file(stream).read_all()
        return (table if columns is None else table.select(columns)).combine_chunks()

    def _run(self, number: int, place: int, system: str) -> pa.Table:
        rows = in_order(self._gather(f"run{number}", place))
        if rows is None:
            raise OddError
        return run_table(rows, system, None)

    def _known(self, source: Source, place: int) -> pa.Array:
        """Ids of the questions of a part: those with a text, and those judged."""
        names = ["qrels"] if source.questions is None else ["questions", "qrels"]
        columns = [self._gather(name, place, ["question_id"]).column(0).chunks for name in names]
        return pc.unique(pa.chunked_array([chunk for chunks in columns for chunk in chunks], pa.string()))

    def _check_joins(self, source: Source, runs: int) -> None:
        """Ids of each run join with those of the set; where they hardly do, the readers of whole files say why."""
        if source.questions is not None and not any(
                pc.any(pc.is_in(self._gather("qrels", place, ["question_id"]).column(0),
                                value_set=self._gather("questions", place, ["question_id"]).column(0))).as_py()
                for place in range(self.count)):
            raise OddError
        for number in range(runs):
            asked = known = chunks = found = respelt = 0
            for place in range(self.count):
                run = self._gather(f"run{number}", place, ["question_id", "chunk_id"])
                names, ids = pc.unique(run.column("question_id")), pc.unique(run.column("chunk_id"))
                judged = pc.unique(self._gather("qrels", place, ["span_id"]).column(0))
                asked += len(names)
                known += len(names) - len(_but(names, self._known(source, place)))
                missing = _but(ids, judged)
                chunks, found = chunks + len(ids), found + len(ids) - len(missing)
                respelt += other_spelling(missing, judged)
            if known < JOIN_AT_LEAST * asked or not found or (
                    respelt and found < JOIN_AT_LEAST * chunks <= found + respelt):
                raise OddError


def _but(ids: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ids that are not among the others."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    return whole.filter(pc.invert(pc.is_in(whole, value_set=others)))


def _heads(ids: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Ints]:
    """The first of each stretch of equal ids, and for each row the number of its stretch."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if not len(whole):
        return whole, np.zeros(0, np.int64)
    change = np.r_[True, pc.not_equal(whole[1:], whole[:-1]).to_numpy(zero_copy_only=False)]
    return whole.take(arrow(np.flatnonzero(change))), np.cumsum(change) - 1


def _codes(ids: pa.ChunkedArray | pa.Array) -> Ints:
    """A number an id, well mixed."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    code = mixed_rows(np.zeros(len(whole), np.int64), whole)
    return (code ^ (code >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)


def _hashed(ids: pa.ChunkedArray | pa.Array, count: int) -> Ints:
    """One of ``count`` parts for each id."""
    heads, back = _heads(ids)
    place: Ints = ((_codes(heads) >> np.uint64(33)) % np.uint64(count)).astype(np.int64)[back]
    return place
