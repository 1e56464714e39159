"""TREC run files: read with ranks that decide and errors that name the line; written back for other tools."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import arrow
from goldset.errors import DataError
from goldset.formats.columns import read_fields, split_fields
from goldset.formats.lines import numbered_lines
from goldset.schemas import schema_of

_FORM = "question Q0 chunk rank score system"
RUN_FIELDS = {"question_id": pa.string(), "q0": None, "chunk_id": pa.string(), "rank": pa.int32(),
              "score": pa.float64(), "tag": None}
_ROWS = 1 << 14
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Masks of the first so many bytes of a little-endian word."""


def read_run(path: Path, *, system: str, family: str | None = None) -> pa.Table:
    """TREC run file -> table ``run`` of one system, by question in file order, then rank.

    The rank column decides, not the score and not the line order. Ranks are made dense from 1, so files that count
    from 0 and files with gaps read the same. A score that is not a number (``nan``) becomes null. Ids are opaque.

    Args:
        path: six fields a line, any white space between; gzip too.
        system: name of the system in the table; the file's own tag is ignored.
        family: systems that share an index or a model; default: the system's name.

    Raises:
        DataError: a line with another number of fields, a rank or score that is no number, a rank or a chunk that
            repeats within a question (all name the line), or a file without a line.
    """
    fields = read_fields(path, RUN_FIELDS)
    table = None if fields is None else ranked(fields)
    if table is None:
        table = ranked(_read_lines(path))
        assert table is not None, "the line loop refuses what cannot be ranked"
    if not len(table):
        raise DataError(f"{path}: no result in the run; a line is '{_FORM}', e.g. 'q1 Q0 d7 1 12.5 bm25'")
    return run_table(table, system, family)


def run_table(table: pa.Table, system: str, family: str | None) -> pa.Table:
    """Rows by question and dense rank -> table ``run`` of one system."""
    constant = {"system": system, "family": family or system}
    columns = [pa.repeat(pa.scalar(constant[name]), len(table)) if name in constant else table.column(name)
               for name in schema_of("run").names]
    # Names, types, keys and ranges hold by construction; conform() would sort a million keys to find that out again.
    return pa.Table.from_arrays(columns, schema=schema_of("run"))


def smallest_rank(path: Path) -> int | None:
    """The smallest rank of a TREC run file that can be read; None in a file without a line."""
    kinds = {"question_id": None, "q0": None, "chunk_id": None, "rank": pa.int32(), "score": None, "tag": None}
    fields = read_fields(path, kinds)
    ranks = (_read_lines(path) if fields is None else fields).column("rank")
    smallest: int | None = pc.min(ranks).as_py()
    return smallest


def ranked(fields: pa.Table) -> pa.Table | None:
    """Fields in file order -> rows by question and dense rank; None if one repeats or is negative."""
    if not len(fields):
        return fields
    codes = _question_codes(_whole(fields.column("question_id")))
    rank = fields.column("rank").to_numpy().astype(np.int64)
    if rank.min() < 0:
        return None
    place = codes << 32 | rank
    if not np.all(place[1:] > place[:-1]):
        order = np.argsort(place, kind="stable")
        fields, codes, place = fields.take(arrow(order)).combine_chunks(), codes[order], place[order]
        if not np.all(place[1:] > place[:-1]):
            return None
    if _repeats(codes, _whole(fields.column("chunk_id"))):
        return None
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    length = np.diff(np.r_[first, len(codes)])
    dense = (np.arange(len(codes)) - np.repeat(first, length) + 1).astype(np.int32)
    score = fields.column("score")
    if pc.any(pc.is_nan(score)).as_py():
        score = pc.if_else(pc.is_nan(score), pa.scalar(None, pa.float64()), score)
    return pa.table({"question_id": fields.column("question_id"), "rank": arrow(dense),
                     "chunk_id": fields.column("chunk_id"), "score": score})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _question_codes(ids: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers of the questions in order of appearance; files that keep a question together need no hash table."""
    change = np.zeros(len(ids), np.bool_)
    change[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    change[0] = True
    blocks: npt.NDArray[np.int64] = np.cumsum(change) - 1
    heads = pc.dictionary_encode(ids.take(arrow(np.flatnonzero(change))))
    if len(heads.dictionary) == len(heads):
        return blocks
    numbers: npt.NDArray[np.int64] = heads.indices.to_numpy().astype(np.int64)[blocks]
    return numbers


def _repeats(codes: npt.NDArray[np.int64], ids: pa.Array) -> bool:
    """Whether a chunk stands twice in a question; the bytes are mixed first, since equal ids mix alike."""
    mixed = np.sort(mixed_rows(codes, ids))
    if not np.any(mixed[1:] == mixed[:-1]):
        return False
    chunk = pc.dictionary_encode(ids)
    pair = np.sort(codes * len(chunk.dictionary) + chunk.indices.to_numpy())
    return bool(np.any(pair[1:] == pair[:-1]))


def mixed_rows(codes: npt.NDArray[np.int64], ids: pa.Array) -> npt.NDArray[np.uint64]:
    """A 64-bit number a row from question and id, eight bytes of the id at a time; equal rows get equal numbers."""
    offsets = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(ids.buffers()[2] or b"", np.uint8)
    padded = np.concatenate([text, np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded.data, strides=(1,))
    odd = np.uint64(0x9E3779B97F4A7C15)
    result = np.empty(len(ids), np.uint64)
    for at in range(0, len(ids), _ROWS):  # what is computed on the way stays in the processor's cache
        part = slice(at, at + _ROWS)
        bounds = offsets[at : at + _ROWS + 1].astype(np.int64)
        start, length = bounds[:-1], np.diff(bounds)
        mixed = codes[part].astype(np.uint64) * odd + length.astype(np.uint64)
        for done in range(0, int(length.max()), 8):
            left = np.clip(length - done, 0, 8)
            word = words[np.minimum(start + done, len(words) - 1)]
            word &= _KEEP[left]
            mixed ^= mixed >> np.uint64(29)
            mixed = mixed * odd + word
        result[part] = mixed
    return result


def _read_lines(path: Path) -> pa.Table:
    """The same fields line by line: accepts all that can be accepted, and names the first line that cannot."""
    questions: list[str] = []
    chunks: list[str] = []
    ranks: list[int] = []
    scores: list[float] = []
    seen: dict[tuple[str, str | int], int] = {}
    for number, line in numbered_lines(path):
        parts = split_fields(line)
        if not parts:
            continue
        where = f"{path}, line {number}"
        if len(parts) != 6:
            qrels = "; four fields are judgments, which --qrels takes" if len(parts) == 4 else ""
            raise DataError(f"{where}: {len(parts)} fields where 6 were expected ({_FORM}){qrels}")
        question, _, chunk, rank_text, score_text, _ = parts
        try:
            rank = int(rank_text)
        except ValueError as error:
            raise DataError(f"{where}: rank '{rank_text}' is not a whole number; a line is '{_FORM}'") from error
        if not 0 <= rank < 2**31:
            raise DataError(f"{where}: rank {rank}; ranks count from 1 (or 0)")
        try:
            score = float(score_text)
        except ValueError as error:
            raise DataError(f"{where}: score '{score_text}' is not a number; a line is '{_FORM}'") from error
        # The rank is an int and the chunk a str, so the two kinds of key cannot meet.
        for key, what in ((rank, f"rank {rank}"), (chunk, f"chunk '{chunk}'")):
            before = seen.setdefault((question, key), number)
            if before != number:
                raise DataError(f"{where}: {what} of question '{question}' stands in line {before} already; "
                                "each rank and each chunk may stand once a question")
        questions.append(question)
        chunks.append(chunk)
        ranks.append(rank)
        scores.append(score)
    return pa.table({"question_id": pa.array(questions, pa.string()), "chunk_id": pa.array(chunks, pa.string()),
                     "rank": pa.array(ranks, pa.int32()), "score": pa.array(scores, pa.float64())})


def write_run(run: pa.Table, path: Path) -> None:
    """Table ``run`` of one system -> TREC run file (gzip where the name ends in .gz), written aside then renamed.

    Tools that re-sort by score see 1/rank where the system gave no score.
    """
    rows = zip(*(run.column(name).to_pylist() for name in ("question_id", "chunk_id", "rank", "score", "system")),
               strict=True)
    lines = []
    for question, chunk, rank, score, system in rows:
        number = 1 / rank if score is None else score
        lines.append(f"{_word(question)} Q0 {_word(chunk)} {rank} {number!r} {_word(system)}\n")
    _write(path, "".join(lines))


def write_qrels(judgments: pa.Table, path: Path) -> None:
    """Table ``judgments`` -> TREC qrels, grade as imported, else 1 or 0; pairs without a decision are left out."""
    rows = zip(*(judgments.column(name).to_pylist() for name in ("question_id", "span_id", "relevant", "grade")),
               strict=True)
    lines = [f"{_word(question)} 0 {_word(span)} {int(relevant) if grade is None else grade}\n"
             for question, span, relevant, grade in sorted(rows, key=lambda row: row[:2]) if relevant is not None]
    _write(path, "".join(lines))


def _word(value: str) -> str:
    if "\n" in value or split_fields(value) != [value]:
        raise DataError(f"id {value!r} is empty or holds white space, which TREC files cannot carry; "
                        "export to BEIR instead")
    return value


def _write(path: Path, text: str) -> None:
    if path.suffix != ".gz":
        from goldset.store import write_text  # brings pyarrow.parquet, which readers of text can do without

        write_text(path, text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(gzip.compress(text.encode(), mtime=0))
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
