"""Who labelled what: a table of labels with the name of each assessor, where a set comes with one."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa

from goldset.errors import DataError
from goldset.formats.lines import numbered_lines
from goldset.formats.objects import delimiter_of, first_line

_COLUMNS = {
    "question_id": ("question_id", "query-id", "query_id", "qid", "question", "query", "topic"),
    "span_id": ("span_id", "corpus-id", "corpus_id", "doc_id", "docid", "docno", "document_id", "chunk_id",
                "passage_id", "pid", "passage", "document", "chunk", "span"),
    "assessor": ("assessor", "assessor_id", "rater", "annotator", "labeler", "labeller", "judge", "worker",
                 "worker_id", "user"),
    "grade": ("grade", "rating", "relevance", "relevant", "label", "score"),
}


def columns_of(path: Path) -> dict[str, str] | None:
    """Our column -> theirs, from the file's header; None where it is no table of labels with assessors."""
    line = first_line(path)
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter_of(line)), [])]
    lower = {name.lower(): name for name in names}
    place = {key: next((lower[name] for name in known if name in lower), "") for key, known in _COLUMNS.items()}
    return place if all(place.values()) else None


def find_labels(folder: Path) -> Path | None:
    """The one table of labels with assessors among a folder's TSV and CSV files; None without, or with several."""
    found = [path for path in sorted(folder.iterdir())
             if path.name.removesuffix(".gz").endswith((".tsv", ".csv")) and path.is_file() and columns_of(path)]
    return found[0] if len(found) == 1 else None


def read_labels(path: Path) -> tuple[pa.Table, str]:
    """File with a header (question, passage, assessor, grade) -> (table of these with their places, the mapping).

    Raises:
        DataError: no such header, a line with another number of fields, a grade that is no number.
    """
    place = columns_of(path)
    if place is None:
        raise DataError(f"{path}: no table of labels; its first line must name question, passage, assessor and grade, "
                        "e.g. query-id, corpus-id, rater, rating")
    rows = csv.reader((line for _, line in numbered_lines(path)), delimiter=delimiter_of(first_line(path)))
    names = next(cells for cells in rows if any(cells))
    at = {key: [name.strip() for name in names].index(name) for key, name in place.items()}
    columns: dict[str, list[str]] = {key: [] for key in ("question_id", "span_id", "assessor")}
    grades: list[float] = []
    places: list[str] = []
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            raise DataError(f"{path}, line {rows.line_num}: {len(cells)} fields where the header has {len(names)}")
        try:
            grades.append(float(cells[at["grade"]]))
        except ValueError as error:
            raise DataError(f"{path}, line {rows.line_num}: grade '{cells[at['grade']]}' is not a number") from error
        for key, values in columns.items():
            values.append(cells[at[key]].strip())
        places.append(f"{path}, line {rows.line_num}")
    said = ", ".join(f"{key.replace('_id', '').replace('span', 'passage')} = '{name}'" for key, name in place.items())
    return pa.table({**columns, "grade": pa.array(grades, pa.float64()), "where": pa.array(places, pa.string())}), (
        f"{path}: labels by assessor, {said}")
