"""Documents and chunks from files: JSONL with named fields, or a folder of text, Markdown and HTML files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.config import ChunkSource, DocumentSource
from goldset.errors import DataError, nearest
from goldset.formats.lines import field, json_lines, opaque_id
from goldset.formats.markup import READERS, SUFFIXES, Marked
from goldset.schemas import HEADINGS, from_rows
from goldset.text import canonical_json, text_sha256, twin_key


@dataclass(frozen=True, slots=True)
class RawChunk:
    """A line of a chunk file, checked for types and nothing else."""

    line: int
    chunk_id: str
    doc_id: str
    text: str
    title: str | None
    start: int | None
    end: int | None
    metadata: dict[str, Any]


def read_documents(source: DocumentSource, path: Path, *, quiet: bool = True) -> tuple[pa.Table, dict[str, Any]]:
    """JSONL file or folder -> table ``documents``, and a report.

    Empty documents (nothing visible) are left out. Report: documents, empty_documents, other_files, first_empty.

    Args:
        source: names of the fields, and the markup of the text field.
        path: the file or folder; in a folder doc_id is the path below it, ``guide/reset.md``.
        quiet: no progress bar.

    Raises:
        DataError: a file that cannot be read, a line without id or text, an id that stands twice, no document left.
    """
    report: dict[str, Any] = {"documents": 0, "empty_documents": 0, "first_empty_document": None}
    rows = _folder(path, report) if path.is_dir() else _document_lines(source, path, report, quiet)
    if not rows:
        raise DataError(
            f"{path}: no document with any text in it ({report['empty_documents']} empty); "
            "point [corpus] documents at a JSONL file or at a folder of .txt, .md or .html files"
        )
    report["documents"] = len(rows)
    return from_rows("documents", rows), report


def _folder(path: Path, report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    report["other_files"] = 0
    for file in sorted(path.rglob("*"), key=lambda file: file.relative_to(path).as_posix()):
        name = file.relative_to(path).as_posix()
        if not file.is_file() or any(part.startswith(".") for part in file.relative_to(path).parts):
            continue
        if file.suffix.lower() not in SUFFIXES:
            report["other_files"] += 1
            continue
        marked = SUFFIXES[file.suffix.lower()](_file_text(file))
        if _kept(marked.text, name, report):
            rows.append(_row(name, marked, marked.title, None, {}))
    return rows


def read_document_file(path: Path) -> pa.Table:
    """One text, Markdown or HTML file -> table ``documents`` with one row; other suffixes are read as text."""
    marked = SUFFIXES.get(path.suffix.lower(), READERS["text"])(_file_text(path))
    if not twin_key(marked.text):
        raise DataError(f"{path}: nothing to read in it; name a file with text")
    return from_rows("documents", [_row(path.name, marked, marked.title, None, {})])


def _file_text(file: Path) -> str:
    """UTF-8 text with its line ends as they are; a leading byte order mark is gone."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}: not UTF-8 ({error.reason} at byte {error.start}); convert the file to UTF-8"
        ) from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error


def _document_lines(
    source: DocumentSource, path: Path, report: dict[str, Any], quiet: bool
) -> list[dict[str, Any]]:
    rows = []
    seen: dict[str, int] = {}
    for line, row in json_lines(path, quiet=quiet):
        doc_id = _id(row, source.id, path, line)
        _unique(doc_id, seen, path, line)
        marked = READERS[source.markup](_text(row, source.text, path, line))
        if _kept(marked.text, doc_id, report):
            title = _optional(row, source.title) or marked.title
            rows.append(_row(doc_id, marked, title, _optional(row, source.url), _object(row, source.metadata)))
    return rows


def _row(doc_id: str, marked: Marked, title: str | None, url: str | None, metadata: dict[str, Any]) -> dict[str, Any]:
    if marked.headings:
        metadata = {**metadata, HEADINGS: marked.headings}
    return {
        "doc_id": doc_id,
        "text": marked.text,
        "title": title,
        "url": url,
        "sha256": text_sha256(marked.text),
        "metadata": canonical_json(metadata),
    }


def _kept(text: str, doc_id: str, report: dict[str, Any]) -> bool:
    if twin_key(text):
        return True
    report["empty_documents"] += 1
    report["first_empty_document"] = report["first_empty_document"] or doc_id
    return False


def read_chunks(source: ChunkSource, path: Path, *, quiet: bool = True) -> tuple[list[RawChunk], dict[str, Any]]:
    """JSONL file -> chunks in the order of the file, and a report.

    Where no line has the document field under its default name, each chunk is a document of its own, as in BEIR.
    Report: lines, own_documents.

    Raises:
        DataError: a line without id, document or text, offsets that are no offsets, an id that stands twice.
    """
    chunks: list[RawChunk] = []
    seen: dict[str, int] = {}
    without: list[RawChunk] = []
    for line, row in json_lines(path, quiet=quiet):
        chunk_id = _id(row, source.id, path, line)
        _unique(chunk_id, seen, path, line)
        doc_id = opaque_id(field(row, source.doc_id))
        start, end = _offsets(row, source, path, line)
        chunk = RawChunk(
            line,
            chunk_id,
            chunk_id if doc_id is None else doc_id,
            _text(row, source.text, path, line),
            _optional(row, source.title),
            start,
            end,
            _object(row, source.metadata),
        )
        chunks.append(chunk)
        if doc_id is None:
            without.append(chunk)
            renamed = source.doc_id != ChunkSource.model_fields["doc_id"].default
            if renamed or len(without) < len(chunks):
                raise DataError(
                    f"{path}, line {line}: no document id in the field '{source.doc_id}'; "
                    + nearest(source.doc_id, _names(row))
                )
        elif without:
            raise DataError(
                f"{path}, line {without[0].line}: no document id in the field '{source.doc_id}', which "
                f"line {line} has; give every chunk its document, or none"
            )
    return chunks, {"lines": len(chunks), "own_documents": len(without)}


def _offsets(row: dict[str, Any], source: ChunkSource, path: Path, line: int) -> tuple[int | None, int | None]:
    start, end = (field(row, name) if name else None for name in (source.start, source.end))
    if start is None and end is None:
        return None, None
    if (
        type(start) is not int
        or type(end) is not int
        or not 0 <= start <= end
        or (start == end and twin_key(_text(row, source.text, path, line)))
    ):
        raise DataError(
            f"{path}, line {line}: offsets {source.start} = {start!r}, {source.end} = {end!r}; they must be "
            "whole numbers with 0 <= start < end, in code points of the document, or both be absent"
        )
    return start, end


def _id(row: dict[str, Any], name: str, path: Path, line: int) -> str:
    value = opaque_id(field(row, name))
    if value is None or not value:
        raise DataError(
            f"{path}, line {line}: no id in the field '{name}' (a text or a whole number); "
            + nearest(name, _names(row))
        )
    return value


def _unique(value: str, seen: dict[str, int], path: Path, line: int) -> None:
    if value in seen:
        raise DataError(f"{path}, lines {seen[value]} and {line}: the id '{value}' stands twice; ids must be unique")
    seen[value] = line


def _text(row: dict[str, Any], name: str, path: Path, line: int) -> str:
    value = field(row, name)
    if isinstance(value, str):
        return value
    if value is None and (name in row or field(row, name.rpartition(".")[0]) is not None):
        return ""  # an explicit null: nothing to read there, counted as empty
    if value is None:
        raise DataError(f"{path}, line {line}: no text in the field '{name}'; " + nearest(name, _names(row)))
    raise DataError(f"{path}, line {line}: the field '{name}' is {value!r:.40}, where text was expected")


def _optional(row: dict[str, Any], name: str | None) -> str | None:
    value = field(row, name) if name else None
    return value if isinstance(value, str) else None


def _object(row: dict[str, Any], name: str | None) -> dict[str, Any]:
    value = field(row, name) if name else None
    return value if isinstance(value, dict) else {}


def _names(row: dict[str, Any]) -> list[str]:
    """Dotted names of a row's fields, two levels deep."""
    inner = [f"{name}.{part}" for name, value in row.items() if isinstance(value, dict) for part in value]
    return [*row, *inner]
