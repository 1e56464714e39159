"""A folder of somebody's files -> which is the log, which the corpus, and what their columns are called."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from goldset.formats.lines import numbered_bytes
from goldset.formats.markup import SUFFIXES

_ROWS = 200
_DATA = re.compile(r"\.((jsonl|ndjson|csv)(\.gz)?|parquet)$")
_RUN = re.compile(r"\.(run|trec)(\.gz)?$")
_SIGNS = {"markdown": re.compile(r"^#{1,3} \S", re.MULTILINE),
          "html": re.compile(r"</(?:p|div|h[1-6]|body|li)>", re.IGNORECASE)}
_TURNS = {"role", "turn"}
_UBI = {"user_query", "query_id", "timestamp"}
"""What OpenSearch's User Behavior Insights writes of a question."""
_PEOPLE = {"session": ("session", "session_id", "sid", "conversation", "conversation_id"),
           "agent": ("agent", "user_agent", "ua", "client"), "user": ("user", "user_id", "uid")}
_WHO = {name for names in _PEOPLE.values() for name in names}


@dataclass
class Guess:
    """What a folder seems to hold: file names and, for each, our key -> their column."""

    log: tuple[Path, dict[str, str]] | None = None
    documents: tuple[Path, dict[str, str]] | None = None
    chunks: tuple[Path, dict[str, str]] | None = None
    calibration: Path | None = None
    run: Path | None = None
    unused: list[Path] = field(default_factory=list)


def guess_folder(folder: Path) -> Guess:
    """Look at the first 200 rows of each JSONL, CSV and Parquet file of a folder.

    A folder in it is a corpus if it holds text, Markdown or HTML files (the most, of several) and no file is one.
    """
    found = Guess()
    for path in sorted(folder.iterdir()):
        if _RUN.search(path.name):
            found.run = found.run or path
        elif _DATA.search(path.name):
            _place(path, found)
    if found.documents is None and found.chunks is None:
        counts = {path: _pages(path) for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "."}
        most = max(counts, key=lambda path: counts[path], default=None)
        if most is not None and counts[most]:
            found.documents = (most, {})
    return found


def _pages(folder: Path) -> int:
    return sum(path.suffix.lower() in SUFFIXES for path in folder.rglob("*"))


def _place(path: Path, found: Guess) -> None:
    rows = sample_rows(path)
    columns = _by_column(rows)
    if {"question", "passage", "relevant"} <= columns.keys():
        found.calibration = found.calibration or path
        return
    texts = _texts(columns)
    times = [name for name, values in columns.items() if _is_time(values)]
    if times and texts and found.log is None:
        found.log = (path, _log_columns(columns, texts, times[0]))
        return
    if path.suffix == ".parquet":  # readable as a log alone
        found.unused.append(path)
        return
    ids = [name for name, values in columns.items() if _is_id(values, len(rows)) and texts and name != texts[0][1]]
    if texts and texts[0][0] >= 100 and ids:
        place = {"id": _prefer(ids, ("chunk_id", "doc_id", "_id", "id")), "text": texts[0][1]}
        if {"start", "end"} <= columns.keys() and found.chunks is None:
            found.chunks = (path, place)
            return
        if found.documents is None:
            found.documents = (path, {**place, **_markup(columns[place["text"]])})
            return
    found.unused.append(path)


def _markup(texts: list[Any]) -> dict[str, str]:
    """``markup`` where most texts have headings of Markdown, or tags of HTML; readers see them as headings then."""
    for name, sign in _SIGNS.items():
        if sum(isinstance(text, str) and bool(sign.search(text)) for text in texts) > len(texts) / 2:
            return {"markup": name}
    return {}


def _by_column(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows if row.get(name) not in (None, "")] for row in rows for name in row}


def _texts(columns: dict[str, list[Any]]) -> list[tuple[float, str]]:
    """(median length, column) of the columns of strings that are neither times nor people, longest first.

    A few values of another type, as damaged lines have them, do not rule a column out.
    """
    found = []
    for name, values in columns.items():
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) > 0.8 * len(values) and not _is_time(values) and name not in _WHO:
            found.append((statistics.median(map(len, texts)), name))
    return sorted(found, reverse=True)


def log_columns(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Rows of a question log -> our key: their column, for text, time, session, agent, user and format."""
    columns = _by_column(rows)
    times = [name for name, values in columns.items() if _is_time(values)]
    texts = _texts(columns)
    return _log_columns(columns, texts, times[0] if times else None) if texts else {}


def _log_columns(columns: dict[str, list[Any]], texts: list[tuple[float, str]], time: str | None) -> dict[str, str]:
    if columns.keys() >= _UBI:
        people = {"session": "client_id", "user": "client_id"} if "client_id" in columns else {}
        return {"text": "user_query", "time": "timestamp", "format": "ubi", **people}
    names = [name for _, name in texts]
    spaced = [name for name in names
              if sum(isinstance(value, str) and " " in value for value in columns[name]) > len(columns[name]) / 4]
    place = {"text": _prefer(spaced or names, ("text", "query", "q", "question"))}
    if time is not None:
        place["time"] = time
    if columns.keys() >= _TURNS:
        place["format"] = "chat"
    for ours, theirs in _PEOPLE.items():
        name = next((name for name in theirs if name in columns), None)
        if name:
            place[ours] = name
    return place


def _prefer(names: list[str], wanted: tuple[str, ...]) -> str:
    return next((name for name in wanted if name in names), names[0])


def sample_rows(path: Path) -> list[dict[str, Any]]:
    """The first rows that can be read; damaged ones are passed over, ``read_log`` reports them."""
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for number, raw in numbered_bytes(path, limit=1_000_000):
        if number > _ROWS:
            break
        lines.append(raw.decode("utf-8", "replace"))
    if ".csv" in path.name:
        return [dict(row) for row in csv.DictReader(io.StringIO("\n".join(lines)))]
    for line in lines:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict):
            # Hits of a search stand in an envelope.
            rows.append(row["_source"] if isinstance(row.get("_source"), dict) else row)
    return rows


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    """The first rows of a Parquet file; none where it is not one, which ``read_log`` reports."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return next((batch.to_pylist() for batch in file.iter_batches(batch_size=_ROWS)), [])
    except (OSError, pa.ArrowException):
        return []


def _is_time(values: list[Any]) -> bool:
    return bool(values) and sum(map(_time_like, values)) > 0.8 * len(values)


def _time_like(value: Any) -> bool:
    if isinstance(value, datetime):
        return True
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 1e9 < value < 2e9 or 1e12 < value < 2e12
    try:
        return isinstance(value, str) and len(value) >= 10 and datetime.fromisoformat(value).year > 1990
    except ValueError:
        return False


def _is_id(values: list[Any], rows: int) -> bool:
    return len(values) == rows and all(isinstance(value, str | int) for value in values) \
        and len({str(value) for value in values}) == rows
