"""Relevance judgments from TREC and BEIR files -> tables judgments and gold, with notes on what was odd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import arrow
from goldset.errors import DataError, UsageError
from goldset.formats.columns import has_bom, read_fields, split_fields
from goldset.formats.lines import numbered_lines, read_bytes
from goldset.formats.names import PASSAGE_NAMES, QUESTION_NAMES
from goldset.formats.objects import first_line, is_json
from goldset.formats.pairs import GRADES, grade_of, named_rows, pair_names
from goldset.formats.runs import read_json_pairs
from goldset.formats.sets import Note
from goldset.schemas import RANGE, key_codes, schema_of

_TREC = "question 0 passage grade"
_JSON = "JSON qrels, question, passage, grade"
_BEIR = "question, passage, grade, separated by tabs"
_FORMS = f"'{_TREC}' (TREC), {_BEIR} (BEIR), or a question with its gold (JSON lines, CSV)"
UNJUDGED = -1


@dataclass(frozen=True)
class Qrels:
    """Judgments read from a file; ``judgments`` and ``gold`` conform to their schemas."""

    judgments: pa.Table
    gold: pa.Table
    notes: tuple[Note, ...]
    relevant_from: int
    mapping: str


def read_qrels(path: Path, *, relevant_from: int | None = None, contradictions: bool = False) -> Qrels:
    """Qrels file (TREC: four fields, any white space; BEIR: three fields by tab, header or none; JSON) -> Qrels.

    Grade -1 means pooled but not judged: relevant stays null. Other negative grades are judged not relevant. Blank
    lines, a byte order mark, quotes and repeated lines are read over and noted.

    Args:
        path: gzip too.
        relevant_from: smallest grade that counts as relevant; needed where grades go above 1.
        contradictions: pairs with two grades are noted and count as not judged, instead of an error.

    Raises:
        DataError: a line with another number of fields, a grade that is no whole number, two grades for one pair
            (all name the line), no judgment at all, grades above 1 without ``relevant_from``.
        UsageError: ``relevant_from`` below 1.
    """
    if relevant_from is not None and relevant_from < 1:
        raise UsageError(f"--relevant-from {relevant_from}: grade 0 means not relevant; use 1 or more")
    table, notes, said = (_from_json(path) if is_json(path) and pair_names(path) is None
                          else _from_lines(path, contradictions))
    return _graded(path, table, notes, said, relevant_from, lambda question, span: find_pair(path, question, span))


def qrels_of(judged: Mapping[str, Mapping[str, int]], *, name: str = "qrels",
             relevant_from: int | None = None) -> Qrels:
    """Question -> passage -> grade in memory -> Qrels, by the rules of ``read_qrels``; ``name`` stands in messages."""
    return _graded(name, _pairs(name, judged), [], _JSON, relevant_from,
                   lambda question, span: _place(name, question, span))


def _graded(path: Path | str, table: pa.Table, notes: list[Note], said: str, relevant_from: int | None,
            locate: Callable[[str, str], str | None]) -> Qrels:
    grade = table.column("grade").to_numpy()
    against = sum(note.count for note in notes if note.kind == "two_grades")  # not judged now, but not -1 in the file
    notes = [*notes, *_grade_notes(path, table, grade, against, locate)]
    threshold = _threshold(path, grade, relevant_from)
    judgments = _judgments(table, grade, threshold)
    return Qrels(judgments, gold_of(judgments), tuple(notes), threshold, f"{path}: {said}")


def _from_json(path: Path) -> tuple[pa.Table, list[Note], str]:
    """Question -> passage -> grade, as ranx and pytrec_eval keep qrels."""
    return _pairs(path, read_json_pairs(path, "qrels", "grade")), [], _JSON


def is_pairs(path: Path) -> bool:
    """Whether a file is qrels, an object question -> passage -> grade or a pair a line, and not examples."""
    if pair_names(path) is not None:
        return True
    if not is_json(path):
        return False
    try:
        found = json.loads(first_line(path))
    except json.JSONDecodeError:  # the first line is only the beginning of a document
        try:
            found = json.loads(read_bytes(path))
        except ValueError:
            return False
    if not isinstance(found, dict) or not all(isinstance(passages, dict) for passages in found.values()):
        return False
    values = [value for passages in found.values() for value in passages.values()]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _pairs(path: Path | str, judged: Mapping[str, Mapping[str, float]]) -> pa.Table:
    rows = []
    for question, passages in judged.items():
        for passage, grade in passages.items():
            if grade != int(grade) or abs(grade) >= 2**31:
                raise DataError(f"{path}, question '{question}', passage '{passage}': grade {grade} is not a whole "
                                "number")
            rows.append((question, passage, int(grade)))
    if not rows:
        raise DataError(f'{path}: no judgment; qrels in JSON are {{"q1": {{"d1": 1}}}}')
    questions, spans, grades = zip(*rows, strict=True)
    return pa.table({"question_id": pa.array(questions, pa.string()), "span_id": pa.array(spans, pa.string()),
                     "grade": pa.array(grades, pa.int32())})


def _from_lines(path: Path, contradictions: bool) -> tuple[pa.Table, list[Note], str]:
    shape = shape_of(path)
    table, notes = _plain(path, shape) or _by_line(path, shape)
    if not len(table):
        raise DataError(f"{path}: no judgment; a line is '{_TREC}' (TREC) or {_BEIR} (BEIR)")
    if shape.bom:
        notes = [Note("bom", 1, f"{path}, line 1"), *notes]
    table, repeated = _distinct(path, shape, table, contradictions)
    return table, notes + repeated, shape.said


def find_pair(path: Path, question: str, span: str) -> str | None:
    """File and line of a judgment, None where it is not there. Reads the file; meant for a few first offenders."""
    if is_json(path) and pair_names(path) is None:
        there = span in read_json_pairs(path, "qrels", "grade").get(question, {})
        return _place(path, question, span) if there else None
    return next((f"{path}, line {number}" for number, found, passage, _, _ in _rows(path, shape_of(path))
                 if found == question and passage == span), None)


def _place(path: Path | str, question: str, span: str) -> str:
    return f"{path}, question '{question}', passage '{span}'"


@dataclass(frozen=True)
class Shape:
    """Form of a qrels file: TREC, or BEIR where ``tabs``, or JSON lines or CSV where ``names`` are its columns.

    ``header`` is its line (0: none), ``blank`` counts blank lines above.
    """

    tabs: bool
    header: int
    bom: bool
    blank: int
    names: tuple[str, str, str | None] | None = None

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        """Name -> type in file order."""
        text, number = pa.string(), pa.int32()
        return ({"question_id": text, "span_id": text, "grade": number} if self.tabs
                else {"question_id": text, "iteration": None, "span_id": text, "grade": number})

    @property
    def said(self) -> str:
        """The form in words."""
        if self.names is not None:
            shown = zip(("question", "passage", "grade"), self.names, strict=True)
            return "qrels, a pair a line: " + ", ".join(f"{ours} = '{name}'" for ours, name in shown if name)
        if not self.tabs:
            return f"TREC qrels, {_TREC}"
        return f"BEIR qrels, {_BEIR}, {'with' if self.header else 'without'} a header"


def shape_of(path: Path) -> Shape:
    """Look at the first line that is not blank: three fields by tab are BEIR, names of columns JSON lines or CSV.

    Anything else must be TREC.
    """
    if (names := pair_names(path)) is not None:
        return Shape(False, 0, has_bom(path), 0, names)
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        parts = [_bare(part.strip()) for part in line.split("\t")]
        loose = tuple(_bare(part) for part in split_fields(line))
        header = is_header(loose)
        return Shape(len(parts) == 3, number if header else 0, has_bom(path), number - 1)
    raise DataError(f"{path}: empty; a line is {_FORMS}")


def is_header(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line name the columns of qrels; what the grade is called does not matter."""
    names = [field.lower() for field in fields]
    return len(names) in (3, 4) and names[0] in QUESTION_NAMES and names[-2] in PASSAGE_NAMES


def _plain(path: Path, shape: Shape) -> tuple[pa.Table, list[Note]] | None:
    if shape.blank or shape.names is not None:
        return None
    table = read_fields(path, shape.fields, tabs=shape.tabs, skip=shape.header, blank_lines=False)
    return None if table is None or (shape.tabs and _has_odd_ids(table)) else (table, [])


def _has_odd_ids(table: pa.Table) -> bool:
    """Whether an id is empty or has white space around it."""
    return any(pc.any(pc.or_(pc.equal(column, ""), pc.not_equal(column, pc.utf8_trim_whitespace(column)))).as_py()
               for column in (table.column("question_id"), table.column("span_id")))


def _by_line(path: Path, shape: Shape) -> tuple[pa.Table, list[Note]]:
    blank = [number for number, line in numbered_lines(path) if not line.strip()]
    quoted: list[int] = []
    questions, spans, grades = [], [], []
    for number, question, span, grade, quotes in _rows(path, shape):
        if quotes:
            quoted.append(number)
        questions.append(question)
        spans.append(span)
        grades.append(grade)
    notes = [Note(kind, len(lines), f"{path}, line {lines[0]}")
             for kind, lines in (("blank_lines", blank), ("quoted", quoted)) if lines]
    return pa.table({"question_id": pa.array(questions, pa.string()), "span_id": pa.array(spans, pa.string()),
                     "grade": pa.array(grades, pa.int32())}), notes


def _rows(path: Path, shape: Shape) -> Iterator[tuple[int, str, str, int, bool]]:
    """(line number, question, passage, grade, quotes stripped) of every judgment; the one place for line errors."""
    if shape.names is not None:
        yield from named_rows(path, *shape.names)
        return
    expected = 3 if shape.tabs else 4
    for number, line in numbered_lines(path):
        if not line.strip() or number == shape.header:
            continue
        raw = [part.strip() for part in line.split("\t")] if shape.tabs else split_fields(line)
        parts = [_bare(part) for part in raw]
        where = f"{path}, line {number}"
        if len(parts) != expected:
            form = _BEIR if shape.tabs else f"'{_TREC}'"
            raise DataError(f"{where}: {len(parts)} fields where {expected} were expected ({form})")
        question, span, text = parts[0], parts[-2], parts[-1]
        if not question or not span:
            raise DataError(f"{where}: an empty id; a line needs question and passage")
        yield number, question, span, grade_of(text, where), parts != raw


def _bare(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


def _distinct(path: Path, shape: Shape, table: pa.Table, contradictions: bool) -> tuple[pa.Table, list[Note]]:
    """One row a pair; a repeated line is noted, two grades for one pair are refused, or noted and not judged."""
    codes = np.sort(key_codes(table, ["question_id", "span_id"]))
    if not np.any(codes[1:] == codes[:-1]):
        return table, []
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    keep: list[bool] = []
    again: list[int] = []
    against: dict[tuple[str, str], int] = {}
    for number, question, span, grade, _ in _rows(path, shape):
        line, before = seen.setdefault((question, span), (number, grade))
        if before != grade and contradictions:
            against.setdefault((question, span), number)
        elif before != grade:
            raise DataError(f"{path}, line {number}: grade {grade} for question '{question}', passage '{span}', "
                            f"but line {line} says {before}; keep one of them")
        keep.append(line == number)
        if line != number and before == grade:
            again.append(number)
    notes = [Note(kind, len(lines), f"{path}, line {lines[0]}") for kind, lines in
             (("repeated_judgment", again), ("two_grades", list(against.values()))) if lines]
    left = table.filter(pa.array(keep))
    pairs = zip(left.column("question_id").to_pylist(), left.column("span_id").to_pylist(), strict=True)
    unknown = pa.array([pair in against for pair in pairs])
    grades = pc.if_else(unknown, pa.scalar(UNJUDGED, pa.int32()), left.column("grade"))
    return left.set_column(left.schema.get_field_index("grade"), "grade", grades), notes


def _grade_notes(path: Path | str, table: pa.Table, grade: np.ndarray, against: int,
                 locate: Callable[[str, str], str | None]) -> list[Note]:
    unjudged, below = int((grade == UNJUDGED).sum()) - against, int((grade < UNJUDGED).sum())
    notes = [Note("unjudged_grade", unjudged, str(path), "-1")] if unjudged else []
    notes += [Note("negative_grade", below, str(path), str(grade.min()))] if below else []
    odd = (grade < GRADES[0]) | (grade > GRADES[1])
    if odd.any():
        first = int(np.argmax(odd))
        where = locate(table.column("question_id")[first].as_py(), table.column("span_id")[first].as_py())
        notes.append(Note("odd_grade", int(odd.sum()), where or str(path), str(grade[first])))
    return notes


def threshold_of(path: Path, grades: list[int], relevant_from: int | None) -> int:
    """The smallest grade that counts as relevant, as read_qrels takes it; same errors."""
    if relevant_from is not None and relevant_from < 1:
        raise UsageError(f"--relevant-from {relevant_from}: grade 0 means not relevant; use 1 or more")
    return _threshold(path, np.array(grades), relevant_from)


def judgments_of(questions: list[str], spans: list[str], grades: list[int | None],
                 threshold: int) -> tuple[pa.Table, pa.Table]:
    """Distinct pairs with a grade, or None where they are simply named as gold -> tables judgments and gold."""
    table = pa.table({"question_id": pa.array(questions, pa.string()), "span_id": pa.array(spans, pa.string())})
    judgments = _judgments(table, np.array([threshold if grade is None else grade for grade in grades]), threshold)
    graded = pa.array(grades, pa.int32())
    judgments = judgments.set_column(judgments.schema.get_field_index("grade"), schema_of("judgments").field("grade"),
                                     graded)
    return judgments, gold_of(judgments)


def _threshold(path: Path | str, grade: np.ndarray, relevant_from: int | None) -> int:
    low, high = int(grade.min()), int(grade.max())
    if relevant_from is None:
        if high > GRADES[1]:
            raise DataError(f"{path}: grades go from {low} to {high}, and no scale of relevance reaches {high}: is the "
                            f"last column the grade ('{_TREC}')? If it is, pass --relevant-from G")
        if high > 1:
            raise DataError(f"{path}: grades go from {low} to {high}, and nothing says which of them answer; "
                            f"pass --relevant-from G (2 to {high} leave out the lowest)")
        return 1
    if relevant_from > high:
        raise DataError(f"{path}: no judgment reaches --relevant-from {relevant_from}; grades go from {low} to {high}")
    return relevant_from


def _judgments(table: pa.Table, grade: np.ndarray, threshold: int) -> pa.Table:
    count = len(table)
    columns = {
        "question_id": table.column("question_id"),
        "span_id": table.column("span_id"),
        "relevant": arrow(grade >= threshold, null=grade == UNJUDGED),
        "grade": arrow(grade.astype(np.int32)),
        "basis": pa.repeat(pa.scalar("imported"), count),
        "inclusion_prob": pa.repeat(pa.scalar(1.0), count),
        "stratum": pa.nulls(count, pa.string()),
        "label_ids": _empty_lists(count, pa.string()),
    }
    schema = schema_of("judgments")
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def plain_judgments(table: pa.Table, shape: Shape, threshold: int) -> tuple[pa.Table, pa.Table] | None:
    """Fields of plain lines -> tables judgments and gold; None where a pair repeats or an id needs a look."""
    codes = np.sort(key_codes(table, ["question_id", "span_id"]))
    if np.any(codes[1:] == codes[:-1]) or (shape.tabs and _has_odd_ids(table)):
        return None
    judgments = _judgments(table, table.column("grade").to_numpy(), threshold)
    return judgments, gold_of(judgments)


def gold_of(judgments: pa.Table) -> pa.Table:
    """Relevant rows of imported ``judgments`` -> table ``gold``: no evidence, weight 1, each its own twin group."""
    relevant = judgments.filter(pc.fill_null(judgments.column("relevant"), False))
    count = len(relevant)
    columns = {
        "question_id": relevant.column("question_id"),
        "span_id": relevant.column("span_id"),
        "evidence": _empty_lists(count, RANGE),
        "evidence_source": pa.nulls(count, pa.string()),
        "facet": pa.nulls(count, pa.string()),
        "weight": pa.repeat(pa.scalar(1.0), count),
        "twin_group": relevant.column("span_id"),
    }
    schema = schema_of("gold")
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _empty_lists(count: int, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(arrow(np.zeros(count + 1, np.int32)), pa.array([], kind))
