"""A file of examples (JSON, JSON lines, CSV with or without a header) -> objects, each with the place it stands at."""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldset.errors import DataError
from goldset.formats.columns import has_bom
from goldset.formats.lines import json_lines, not_json, numbered_lines
from goldset.formats.names import IDS, PASSAGE_NAMES, QUESTION, QUESTION_NAMES, TEXTS
from goldset.formats.sets import Note

_DELIMITERS = (",", ";", "\t", "|")
_SEP = re.compile(r'"?sep=.?"?\s*$', re.IGNORECASE)


@dataclass(frozen=True)
class Objects:
    """What a file holds: ``rows`` of (place, object), or one JSON object in ``document``.

    ``header`` is None for JSON, else whether a CSV names its columns; without, they are called ``column 1`` …
    """

    form: str
    rows: list[tuple[str, dict[str, Any]]]
    document: dict[str, Any] | None = None
    header: bool | None = None
    notes: tuple[Note, ...] = ()


def first_line(path: Path) -> str:
    """The first line that says something, neither blank nor a spreadsheet's ``sep=;``; empty where there is none."""
    return next((line for _, line in numbered_lines(path) if line.strip() and not _SEP.match(line)), "")


def is_json(path: Path) -> bool:
    """Whether the file starts as JSON or JSON lines do."""
    return first_line(path).lstrip().startswith(("{", "["))


def read_objects(path: Path) -> Objects:
    """Any file of examples -> Objects. Raises DataError naming the line that cannot be read."""
    read = _json(path) if is_json(path) else _csv(path)
    notes = [Note("bom", 1, f"{path}, line 1")] if has_bom(path) else []
    blank = [number for number, line in numbered_lines(path) if not line.strip()] if read.form != "JSON" else []
    if blank:
        notes.append(Note("blank_lines", len(blank), f"{path}, line {blank[0]}"))
    return Objects(read.form, read.rows, read.document, read.header, tuple(notes))


def _json(path: Path) -> Objects:
    try:
        whole = isinstance(json.loads(first_line(path)), list)
    except json.JSONDecodeError:
        whole = True  # the first line is only the beginning of a document
    if not whole:
        rows = [(f"{path}, line {number}", row) for number, row in json_lines(path)]
        return Objects("JSON", [], rows[0][1]) if _is_document(rows) else Objects("JSON lines", rows)
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: {not_json(error)}") from error
    if isinstance(value, dict):
        return Objects("JSON", [], value)
    for number, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, item {number}: {type(row).__name__} where an object was expected, "
                            'e.g. {"question": "…", "gold_ids": ["d1"]}')
    return Objects("JSON", [(f"{path}, item {number}", row) for number, row in enumerate(value, 1)])


def _is_document(rows: list[tuple[str, dict[str, Any]]]) -> bool:
    """One line that holds a whole data set: an object whose values are the examples."""
    return len(rows) == 1 and any(isinstance(rows[0][1].get(name), dict | list) for name in ("queries", "examples"))


def _csv(path: Path) -> Objects:
    delimiter = delimiter_of(first_line(path))
    table = list(_csv_rows(path, delimiter))
    if not table:
        raise DataError(f"{path}: empty; a line is a question and its gold, e.g. question,gold_ids")
    width = len(table[0][1])
    for number, cells in table:
        if len(cells) != width:
            raise DataError(f"{path}, line {number}: {len(cells)} fields where line {table[0][0]} has {width}; "
                            "put quotes around fields that hold the separator")
    header = _is_header(table)
    names = [(header and cell.strip()) or f"column {i}" for i, cell in enumerate(table[0][1], 1)]
    rows = [(f"{path}, line {number}", dict(zip(names, cells, strict=True))) for number, cells in table[header:]]
    return Objects({",": "CSV", "\t": "TSV"}.get(delimiter, f"CSV separated by '{delimiter}'"), rows, header=header)


def delimiter_of(line: str) -> str:
    """The separator that gives the first line most fields; a comma if none does."""
    counts = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in _DELIMITERS}
    if counts["\t"] > 1:
        return "\t"  # nobody writes tabs by accident
    return max(_DELIMITERS, key=lambda mark: counts[mark]) if line else ","


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line a record begins at, cells); quoted cells may run over several lines."""
    reader = csv.reader((line + "\n" for _, line in numbered_lines(path)), delimiter=delimiter, strict=True)
    begins = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and not (begins == 1 and _SEP.match(delimiter.join(cells))):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error}); quotes must come in pairs") from error


def _is_header(table: list[tuple[int, list[str]]]) -> bool:
    """A first row that names question and gold, or the columns of qrels, or else short distinct names.

    None of which is a value of the rows below.
    """
    first = [cell.strip() for cell in table[0][1]]
    if len(set(first)) < len(first):
        return False
    known = {cell.lower() for cell in first}
    if (known & {*QUESTION} and known & {*IDS, *TEXTS}) or (known & QUESTION_NAMES and known & PASSAGE_NAMES):
        return True  # also where a cell is empty, as above the index that pandas writes
    if not all(first) or any(len(cell.split()) > 3 or cell.endswith("?") for cell in first):
        return False
    if len(table) == 1:
        return True
    below = [[len(cells[i].split()) for _, cells in table[1:]] for i in range(len(first))]
    return any(statistics.median(words) >= 3 for words in below)


