"""Judged pairs whose columns have names: JSON lines or CSV, as MTEB, Hugging Face and pandas write qrels."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path

from goldset.errors import DataError
from goldset.formats.lines import opaque_id
from goldset.formats.names import GRADE, PASSAGE_NAMES, QUESTION, QUESTION_NAMES
from goldset.formats.objects import delimiter_of, first_line, read_objects

GRADES = (-2, 10)
"""Grades that relevance scales use: TREC's -1 (not judged) and -2 (junk), up to ten steps. Others need a look."""


def pair_names(path: Path) -> tuple[str, str, str | None] | None:
    """Columns of question, passage and grade (None: a named pair is gold) of JSON lines or a CSV of pairs, else None.

    As MTEB and Hugging Face write qrels (query-id, corpus-id, score); a file with texts of questions is none.
    """
    line = first_line(path)
    if line.lstrip().startswith("{"):
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            return None
        names = list(found) if isinstance(found, dict) else []
    else:
        delimiter = delimiter_of(line)
        cells = [] if delimiter == "\t" else next(csv.reader([line], delimiter=delimiter), [])
        names = [cell.strip() for cell in cells]
    lower = {name.lower(): name for name in names}
    question, passage, grade = (next((lower[name] for name in known if name in lower), None)
                                for known in (sorted(QUESTION_NAMES), sorted(PASSAGE_NAMES), GRADE))
    return None if question is None or passage is None or lower.keys() & {*QUESTION} else (question, passage, grade)


def named_rows(path: Path, question: str, passage: str,
               grade: str | None) -> Iterator[tuple[int, str, str, int, bool]]:
    """(line number, question, passage, grade, False) of every pair; blank lines do not count as pairs."""
    for where, row in read_objects(path).rows:
        ids = [(opaque_id(row.get(name)) or "").strip() for name in (question, passage)]
        if not all(ids):
            raise DataError(f"{where}: no id in '{question}' or '{passage}'; a pair needs both, as texts or whole "
                            "numbers")
        value = 1 if grade is None else grade_of(str(row.get(grade, "")).strip(), where)
        yield int(where.rpartition(" ")[2]), ids[0], ids[1], value, False


def grade_of(text: str, where: str) -> int:
    """A grade as it stands in a file; DataError names the place where it is no whole number."""
    try:
        value = float(text)
        grade = int(value)
    except (ValueError, OverflowError):
        value, grade = math.nan, 0
    if grade != value:
        raise DataError(f"{where}: grade '{text}' is not a whole number; write 1 for a passage that answers and 0 for "
                        "one that does not, or the steps of a scale")
    if abs(grade) >= 2**31:
        raise DataError(f"{where}: grade '{text}' is too large; relevance scales go from {GRADES[0]} to {GRADES[1]}")
    return grade
