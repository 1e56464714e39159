"""Text files as numbered lines: gzip, byte order marks and line ends are dealt with here and nowhere else."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from goldset.errors import DataError
from goldset.progress import progress

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 32  # bytes that show UTF-16 without a mark
_PACKED = 5  # what gzip makes of runs and qrels
_MB = 1_000_000
_KINDS = ((b"PAR1", "a Parquet file", "write it as JSON lines (pandas: to_json(path, orient='records', lines=True))"),
          (b"PK", "a spreadsheet or an archive", "save the sheet as CSV in UTF-8, or unpack the archive"))
_BOM = b"\xef\xbb\xbf"
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes; gzip is recognised by its first two bytes, not by its name."""
    try:
        raw = path.open("rb")
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    magic = raw.read(2)
    raw.seek(0)
    if magic in _UTF16:
        raw.close()
        raise DataError(f"{path}: UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
    head = raw.read(_HEAD)
    raw.seek(0)
    if len(head) > 2 and not (any(head[::2]) and any(head[1::2])):  # every other byte is zero: no mark, but UTF-16
        raw.close()
        order = "BE" if not any(head[::2]) else "LE"
        raise DataError(f"{path}: UTF-16 text without a byte order mark; convert it to UTF-8 "
                        f"(iconv -f UTF-16{order} -t UTF-8)")
    return gzip.open(raw) if magic == b"\x1f\x8b" else raw  # type: ignore[return-value]


def likely_size(path: Path) -> int:
    """Bytes of a file unpacked, as far as can be told without unpacking it; 0 where there is no such file."""
    if not path.is_file():
        return 0
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return path.stat().st_size * (_PACKED if packed else 1)


def read_bytes(path: Path, count: int = -1) -> bytes:
    """The first ``count`` bytes of a file, unpacked; all of them by default."""
    with open_bytes(path) as stream:
        try:
            return stream.read(count)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path}: the gzip file is damaged ({error}); fetch or write it again") from error


def numbered_bytes(path: Path, *, limit: int | None = None, quiet: bool = True) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, bytes without line end); a leading byte order mark is gone.

    A line longer than ``limit`` bytes comes cut to ``limit + 1`` bytes, so that the caller can see and refuse it
    without ever holding it. Unless ``quiet``, a bar counts the megabytes of the file.
    """
    with open_bytes(path) as stream, progress(f"reading {path.name}, MB", _megabytes(path), quiet=quiet) as advance:
        number = done = 0
        on_disk = getattr(stream, "fileobj", stream)  # below gzip
        try:
            while piece := stream.readline(-1 if limit is None else limit + 1):
                number += 1
                if not quiet and (at := on_disk.tell() // _MB) > done:
                    advance(at - done)
                    done = at
                while limit is not None and len(piece) > limit and not piece.endswith(b"\n"):
                    rest = stream.readline(limit + 1)
                    if not rest or rest.endswith(b"\n"):
                        break
                line = piece.rstrip(b"\r\n")
                yield number, line.removeprefix(_BOM) if number == 1 else line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path}, after line {number}: the gzip file is damaged ({error}); "
                            "fetch or write it again") from error


def _megabytes(path: Path) -> int:
    return path.stat().st_size // _MB if path.is_file() else 0


def numbered_lines(path: Path, *, quiet: bool = True) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without line end) of a UTF-8 file; DataError names the line that is not UTF-8."""
    for number, line in numbered_bytes(path, quiet=quiet):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(_not_text(path, number, error)) from error


def _not_text(path: Path, number: int, error: UnicodeDecodeError) -> str:
    """What a file is that is not UTF-8, and how to make it so."""
    head = read_bytes(path, 4)
    for magic, kind, remedy in _KINDS:
        if head.startswith(magic):
            return f"{path}: {kind}, and text is needed; {remedy}"
    return (f"{path}, line {number}: not UTF-8 ({error.reason} at byte {error.start}); convert the file to UTF-8 "
            "(iconv -f WINDOWS-1252 -t UTF-8, if it was written on Windows)")


def json_lines(path: Path, *, quiet: bool = True) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL file; blank lines are skipped; anything but an object is a DataError.

    Half surrogate pairs become the replacement character, one code point for one, so that offsets hold.
    """
    for number, line in numbered_lines(path, quiet=quiet):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number}: {not_json(error)}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: {type(row).__name__} where an object was expected, "
                            'e.g. {"doc_id": "d1", "text": "…"}')
        yield number, storable(row) if _ESCAPED.search(line) else row


def not_json(error: json.JSONDecodeError) -> str:
    """Why a text is not JSON, and what to do."""
    return (f"not JSON ({error.msg.removesuffix(' at')} at column {error.colno}); mend the line, or write the file "
            "again if it was cut off")


def storable(value: Any) -> Any:
    """JSON value -> the same with half surrogate pairs, which no encoding can store, replaced by U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {storable(name): storable(part) for name, part in value.items()}
    return [storable(part) for part in value] if isinstance(value, list) else value


def field(row: dict[str, Any], dotted: str) -> Any:
    """The value at a dotted name (``metadata.start``), None if any part is missing. A literal key wins."""
    if dotted in row:
        return row[dotted]
    value: Any = row
    for part in dotted.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def opaque_id(value: Any) -> str | None:
    """An id as text: strings as they are, JSON integers as their digits (``7`` and ``07`` stay different)."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
