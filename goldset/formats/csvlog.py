"""CSV as records with line numbers that survive bad bytes, overlong lines and a quote that is never closed."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from goldset.formats.lines import numbered_bytes

_UNFINISHED = "unexpected end of data"


@dataclass(frozen=True)
class Record:
    """One record: its first line, how many lines it takes, its values as written, or why it has none."""

    line: int
    lines: int
    raw: str
    values: list[str] = field(default_factory=list)
    reason: str | None = None


def csv_records(path: Path, limit: int, *, quiet: bool = True) -> Iterator[Record]:
    """A CSV file -> records; the separator (comma, semicolon or tab) is the commonest in the first line.

    No word stands for a missing value. A record may span lines within quotes, up to ``limit`` bytes; a quote that is
    not closed within them, or that closes into a record of another width than the header, costs its own line only:
    reading goes on with the next line. Reasons: ``empty_line``, ``not_utf8``, ``overlong``, ``quoting``.
    """
    source = numbered_bytes(path, limit=limit, quiet=quiet)
    waiting: deque[tuple[int, bytes]] = deque()
    separator, width = "", 0
    while (item := waiting.popleft() if waiting else next(source, None)) is not None:
        number, first = item
        raw = first.decode("utf-8", "replace")
        if len(first) > limit:
            yield Record(number, 1, raw, reason="overlong")
            continue
        if not first.strip():
            yield Record(number, 1, raw, reason="empty_line")
            continue
        separator = separator or max(",;\t", key=raw.count)
        values, reason = _parse(first, separator)
        taken = [item]
        if reason == _UNFINISHED:
            size = len(first)
            while reason == _UNFINISHED and size <= limit:
                following = waiting.popleft() if waiting else next(source, None)
                if following is None:
                    break
                taken.append(following)
                size += len(following[1]) + 1
                if b'"' in following[1] and size <= limit:
                    values, reason = _parse(b"\n".join(line for _, line in taken), separator)
            if reason is not None or (width and len(values) != width):
                waiting.extendleft(reversed(taken[1:]))
                yield Record(number, 1, raw, reason="quoting")
                continue
        if reason is not None:
            yield Record(number, 1, raw, reason=reason)
            continue
        width = width or len(values)
        yield Record(number, len(taken), raw, values)


def _parse(block: bytes, separator: str) -> tuple[list[str], str | None]:
    """(values, None) of one record, else ([], reason)."""
    try:
        rows = list(csv.reader([block.decode("utf-8")], delimiter=separator, strict=True))
    except UnicodeDecodeError:
        return [], "not_utf8"
    except csv.Error as error:
        if _UNFINISHED in str(error):
            return [], _UNFINISHED
        return [], "overlong" if "field larger" in str(error) else "quoting"
    return (rows[0], None) if len(rows) == 1 else ([], "quoting")
