"""A run in any form (TREC, JSON as ranx and pytrec_eval write it, JSONL, Parquet) -> table ``run`` of one system.

TREC, JSONL and Parquet may carry a rank, which then decides. A JSON run is question -> chunk -> score and has none:
the score decides, and equal scores keep the order of the file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import arrow
from goldset.errors import DataError
from goldset.formats.columns import fields_by_block, objects_by_block
from goldset.formats.lines import field, json_lines, opaque_id, read_bytes
from goldset.formats.objects import first_line
from goldset.formats.trec import RUN_FIELDS, ranked, run_table, smallest_rank
from goldset.formats.trec import read_run as read_trec
from goldset.schemas import from_rows

QUESTION_FIELDS = ("question_id", "query_id", "qid", "query-id")
CHUNK_FIELDS = ("chunk_id", "doc_id", "docid", "docno", "corpus-id", "id")
_PARQUET = b"PAR1"
_EMPTY = re.compile(rb":\s*(\{\s*\}|\[\s*\])")
_FORMS = 'TREC lines, {"q1": {"d1": 12.5}}, one {"question_id", "chunk_id", "rank", "score"} a line, or Parquet'


def read_run(path: Path, *, system: str, family: str | None = None) -> pa.Table:
    """Run file -> table ``run`` of one system; the form is recognised by the content, gzip too.

    Raises:
        DataError: a line, key or column that cannot be read (named), a rank or chunk that repeats within a question,
            or nothing in it.
    """
    form = run_form(path)
    if form == "trec":
        return read_trec(path, system=system, family=family)
    if form == "pairs":
        return run_of(read_json_pairs(path, "a run", "score"), system=system, family=family, name=str(path))
    blocks = list(run_blocks(path))
    plain = [block for block in blocks if block is not None]
    rows = in_order(pa.concat_tables(plain).combine_chunks()) if plain and len(plain) == len(blocks) else None
    return _ranked(path, _READERS[form](path), system, family) if rows is None else run_table(rows, system, family)


def run_blocks(path: Path) -> Iterator[pa.Table | None]:
    """A run in lines (TREC, JSONL) or Parquet, of any size -> its rows, block by block, in the order of the file.

    Columns question_id, chunk_id, rank (null in all rows or in none) and score. None in place of a block that only a
    look at each row can tell, which accepts what can be accepted and names the row that cannot.
    """
    form = run_form(path)
    if form == "trec":
        yield from fields_by_block(path, RUN_FIELDS)
    elif form == "parquet":
        yield from map(_plain_rows, _parquet_blocks(path))
    else:
        yield from map(_plain_rows, objects_by_block(path, _types(json.loads(first_line(path)))))


def _starts_as_json(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def likely_rows(path: Path) -> int | None:
    """Rows of a Parquet file, 0 where it cannot be read; None for a file of another form."""
    if not read_bytes(path, 4).startswith(_PARQUET):
        return None
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return 0


def in_order(rows: pa.Table) -> pa.Table | None:
    """Rows of ``run_blocks`` -> by question and dense rank; None where only a look at each row can tell."""
    rank, score = rows.column("rank"), rows.column("score")
    if not rank.null_count:
        return ranked(rows)
    if rank.null_count < len(rows):
        return None
    # No number at all stands below every number.
    value = pc.fill_null(pc.if_else(pc.is_nan(score), -math.inf, score), -math.inf).to_numpy()
    codes = pc.dictionary_encode(rows.column("question_id").combine_chunks()).indices.to_numpy()
    order = np.lexsort((-value, codes))
    place = np.empty(len(rows), np.int32)
    place[order] = np.arange(len(rows), dtype=np.int32)
    return ranked(rows.set_column(rows.schema.get_field_index("rank"), "rank", arrow(place)))


def _types(first: dict[str, Any]) -> dict[str, pa.DataType]:
    """Types of the members of a line that matter, by the first line; a line that has others needs a look."""
    ids = {name: pa.int64() if isinstance(first.get(name), int) else pa.string()
           for name in (*QUESTION_FIELDS, *CHUNK_FIELDS)}
    return {**ids, "rank": pa.int64(), "score": pa.float64()}


def _parquet_blocks(path: Path) -> Iterator[pa.Table | None]:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names = [name for name in (*QUESTION_FIELDS, *CHUNK_FIELDS, "rank", "score") if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=1 << 17, columns=names):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError):
        yield None


def _plain_rows(table: pa.Table | None) -> pa.Table | None:
    """A block with columns as they are called in the file -> with ours; None where ``_row`` has to look."""
    if table is None:
        return None
    columns: dict[str, Any] = {}
    for ours, names in (("question_id", QUESTION_FIELDS), ("chunk_id", CHUNK_FIELDS)):
        found = next((column for name in names if (column := _given(table, name)) is not None), None)
        if found is None or found.null_count or not (pa.types.is_integer(found.type) or _is_text(found.type)):
            return None
        columns[ours] = found.cast(pa.string())
    rank, score = _given(table, "rank"), _given(table, "score")
    if rank is None and (score is None or score.null_count):
        return None
    if rank is not None and (rank.null_count or not pa.types.is_integer(rank.type)
                             or pc.any(pc.or_(pc.less(rank, 0), pc.greater_equal(rank, 2**31))).as_py()):
        return None
    if score is not None and not (pa.types.is_floating(score.type) or pa.types.is_integer(score.type)):
        return None
    empty = pa.nulls(len(table), pa.int32()), pa.nulls(len(table), pa.float64())
    columns["rank"] = empty[0] if rank is None else rank.cast(pa.int32())
    columns["score"] = empty[1] if score is None else score.cast(pa.float64(), safe=False)
    return pa.table(columns)


def _given(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """A column that says something: it is there, and not null throughout."""
    if name not in table.column_names:
        return None
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return None if len(table) and column.null_count == len(table) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def first_rank(path: Path) -> int | None:
    """The smallest rank in a run file that ``read_run`` has read: 0 where it counts from 0; None where it has none."""
    form = run_form(path)
    if form == "trec":
        return smallest_rank(path)
    rows = [] if form == "pairs" else _READERS[form](path)
    return min((row[3] for row in rows if row[3] is not None), default=None)


def run_form(path: Path) -> str:
    """``parquet``, ``trec``, ``lines`` (an object a line) or ``pairs`` (question -> chunk -> score), by the content."""
    head = read_bytes(path, 64)
    if head.startswith(_PARQUET):
        return "parquet"
    if not _starts_as_json(head):
        return "trec"
    return "lines" if _is_lines(path) else "pairs"


def empty_lists(path: Path) -> list[str]:
    """Questions that a run answers with an empty list; only a JSON object of questions can say so."""
    # A look at the bytes first: to parse a large run once more takes as long as to read it.
    if not _starts_as_json(read_bytes(path, 64)) or not _EMPTY.search(read_bytes(path)) or run_form(path) != "pairs":
        return []
    return [question for question, chunks in read_json_pairs(path, "a run", "score").items() if not chunks]


def status_of(system: str, empty: Sequence[str]) -> pa.Table:
    """Questions that a system answered with an empty list -> table ``run_status``."""
    return from_rows("run_status", [{"system": system, "question_id": question, "status": "empty", "returned": 0,
                                     "detail": None} for question in empty])


def run_of(results: Mapping[str, Mapping[str, float] | Sequence[str]], *, system: str, family: str | None = None,
           name: str = "run") -> pa.Table:
    """Question -> chunk -> score, or question -> chunks in order, in memory -> table ``run`` of one system."""
    rows: list[_Row] = []
    for question, chunks in results.items():
        where = f"question '{question}'"
        if isinstance(chunks, Mapping):
            rows += [(where, question, chunk, None, float(value)) for chunk, value in chunks.items()]
        else:
            rows += [(f"{where}, place {place}", question, chunk, place, None) for place, chunk in enumerate(chunks, 1)]
    return _ranked(name, rows, system, family)


_Row = tuple[str, str, str, int | None, float | None]


def _is_lines(path: Path) -> bool:
    """Whether the first line is an object with ids of its own, and not the whole of a question -> chunk mapping."""
    try:
        row = json.loads(first_line(path))
    except json.JSONDecodeError:
        return False
    return isinstance(row, dict) and not all(isinstance(value, dict) for value in row.values())


def read_json_pairs(path: Path, what: str, number: str) -> dict[str, dict[str, float]]:
    """JSON object question -> passage -> number, as ranx and pytrec_eval keep runs and qrels.

    Raises:
        DataError: not JSON, another shape, a key that stands twice, or a value that is no number (all named).
    """
    form = f'{what} is an object like {{"q1": {{"d1": 1}}}}: question, passage, {number}'
    try:
        found = json.loads(read_bytes(path).decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno}"
        raise DataError(f"{where}: not JSON ({error.msg} at column {error.colno}); {form}") from error
    except _TwiceError as error:
        raise DataError(f"{path}: the key '{error}' stands twice in one object; keep one of them") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: {type(found).__name__} where an object was expected; {form}")
    for question, passages in found.items():
        if not isinstance(passages, dict):
            raise DataError(f"{path}, question '{question}': {type(passages).__name__} where an object was expected; "
                            f"{form}")
        for passage, value in passages.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise DataError(f"{path}, question '{question}', passage '{passage}': {number} {value!r} is no number")
    return found


class _TwiceError(Exception):
    pass


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _TwiceError(key)
        result[key] = value
    return result


def _line_rows(path: Path) -> Iterable[_Row]:
    for number, row in json_lines(path):
        yield _row(f"line {number}", row)


def _parquet_rows(path: Path) -> Iterable[_Row]:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}); write it again") from error
    for number, row in enumerate(table.to_pylist(), 1):
        yield _row(f"row {number}", row)


_READERS = {"parquet": _parquet_rows, "lines": _line_rows}


def _row(where: str, row: dict[str, Any]) -> _Row:
    ids = []
    for what, names in (("question", QUESTION_FIELDS), ("chunk", CHUNK_FIELDS)):
        value = next((found for name in names if (found := opaque_id(field(row, name)))), None)
        if value is None:
            raise DataError(f"{where}: no {what} id; one of {', '.join(names)} must hold a text or whole number")
        ids.append(value)
    rank, value = row.get("rank"), row.get("score")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < 2**31):
        raise DataError(f"{where}: rank {rank!r}; ranks are whole numbers from 1 (or 0)")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DataError(f"{where}: score {value!r} is not a number")
    if rank is None and value is None:
        raise DataError(f"{where}: neither rank nor score; one of them must give the order")
    return where, ids[0], ids[1], rank, None if value is None or math.isnan(value) else float(value)


def _ranked(path: Path | str, rows: Iterable[_Row], system: str, family: str | None) -> pa.Table:
    """Rows in file order -> dense ranks by question; by rank where rows have one, else by score."""
    questions: dict[str, list[_Row]] = {}
    seen: dict[tuple[str, str | int], str] = {}
    for row in _named(path, rows):
        where, question, chunk, rank, _ = row
        mine = questions.setdefault(question, [])
        if mine and (mine[0][3] is None) != (rank is None):
            raise DataError(f"{path}, {where}: question '{question}' has results with a rank and without; give all")
        for key, what in ((chunk, f"chunk '{chunk}'"), *(() if rank is None else ((rank, f"rank {rank}"),))):
            if (before := seen.setdefault((question, key), where)) != where:
                raise DataError(f"{path}, {where}: {what} of question '{question}' stands in {before} already; each "
                                "rank and each chunk may stand once a question")
        mine.append(row)
    if not questions:
        raise DataError(f"{path}: no result in the run; it may be {_FORMS}")
    result = []
    for question, mine in questions.items():
        order = sorted(mine, key=lambda row: row[3] if row[3] is not None else math.inf if row[4] is None else -row[4])
        result += [{"system": system, "family": family or system, "question_id": question, "rank": place,
                    "chunk_id": chunk, "score": value} for place, (_, _, chunk, _, value) in enumerate(order, 1)]
    return from_rows("run", result)


def _named(path: Path | str, rows: Iterable[_Row]) -> Iterable[_Row]:
    """The rows; an error that names a row gets the file put before it."""
    try:
        yield from rows
    except DataError as error:
        if str(error).startswith(str(path)):
            raise
        raise DataError(f"{path}, {error}") from error
