"""White-space or tab separated text -> Arrow columns, fast where plain; the caller's line loop is the judge.

``read_fields`` answers None for anything out of the ordinary (a field too few, a quote, a word where a number should
be, damaged gzip). Callers then walk the file line by line, which accepts what can be accepted and names the line that
cannot. So there is one set of rules and messages, and clean files of a million lines take about a second.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from goldset.errors import DataError
from goldset.formats.lines import open_bytes

_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACES = re.compile(r"[ \t\x0b\x0c\r]+")
_BOM = b"\xef\xbb\xbf"
_OTHER_TEXT = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")  # gzip, UTF-16
_SPACE = ord(" ")
_BLOCK = 1 << 18
_OTHER_SPACE = bytes.maketrans(b"\t\x0b\x0c\r", b"    ")


def read_fields(path: Path, columns: Mapping[str, pa.DataType | None], *, tabs: bool = False,
                skip: int = 0, blank_lines: bool = True) -> pa.Table | None:
    """File without header -> table, or None where only a look at each line can tell.

    Args:
        path: text file, gzip too.
        columns: name -> type in file order; None for a field that is not kept.
        tabs: fields are separated by single tabs, not by any white space.
        skip: lines to leave out at the top.
        blank_lines: read over blank lines; False answers None instead, so that the caller can count them.
    """
    data: pa.Buffer | bytes | None = _mapped(path, tabs=tabs)
    if data is None:
        data = _plain_bytes(path, tabs=tabs)
        if data is None or (not blank_lines and (b"\n\n" in data or data.startswith(b"\n"))):
            return None
    return _parsed(data, columns, tabs=tabs, skip=skip)


def fields_by_block(path: Path, columns: Mapping[str, pa.DataType | None], *, tabs: bool = False,
                    skip: int = 0, block: int = 1 << 24) -> Iterator[pa.Table | None]:
    """The same of a file of any size, block by block; None in place of a block that only a look at each line can tell.

    A block is some ``block`` bytes, unpacked, and ends with a line.
    """
    for lines in _line_blocks(path, block):
        data = None if lines is None else _tidied(lines, tabs=tabs)
        if data is None or b"\n\n" in data or data.startswith(b"\n"):
            yield None
        elif data:
            yield _parsed(data, columns, tabs=tabs, skip=skip)
            skip = 0


def _line_blocks(path: Path, block: int) -> Iterator[bytes | None]:
    """A file in blocks of whole lines; None where it is damaged gzip."""
    rest = b""
    with open_bytes(path) as stream:
        while True:
            try:
                piece = stream.read(block)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                yield None
                return
            whole, end, rest = (rest + piece).rpartition(b"\n") if piece else (rest, b"", b"")
            yield whole + end
            if not piece:
                return


def objects_by_block(path: Path, columns: Mapping[str, pa.DataType], *, block: int = 1 << 24,
                     ) -> Iterator[pa.Table | None]:
    """JSON lines -> the named members of each object, block by block, null where one is missing.

    None in place of a block that only a look at each line can tell: what is no object, a member of another type, half
    of a surrogate pair.
    """
    import pyarrow.json as json

    parse = json.ParseOptions(explicit_schema=pa.schema(list(columns.items())), unexpected_field_behavior="ignore")
    first = True
    for lines in _line_blocks(path, block):
        data = None if lines is None else lines.removeprefix(_BOM) if first else lines
        first = False
        if data is not None and not data.strip():
            continue
        try:
            if data is None or _ESCAPED.search(data):
                yield None
                continue
            data.decode()
            # A block as large as the data: a line is never cut, and one thread keeps the order.
            options = json.ReadOptions(use_threads=False, block_size=len(data) + 1)
            yield json.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)
        except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            yield None


def _parsed(data: pa.Buffer | bytes, columns: Mapping[str, pa.DataType | None], *, tabs: bool,
            skip: int) -> pa.Table | None:
    import pyarrow.csv as csv

    kept = {name: kind for name, kind in columns.items() if kind is not None}
    try:
        return csv.read_csv(
            pa.BufferReader(data),
            # One thread and one block for most files: no chunks to join, and no slower on a busy machine.
            read_options=csv.ReadOptions(column_names=list(columns), skip_rows=skip, block_size=1 << 26,
                                         use_threads=False),
            parse_options=csv.ParseOptions(delimiter="\t" if tabs else " ", quote_char=False, escape_char=False),
            convert_options=csv.ConvertOptions(column_types=kept, include_columns=list(kept), null_values=[],
                                               strings_can_be_null=False, check_utf8=True),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None


def split_fields(line: str) -> list[str]:
    """Fields of a line between ASCII white space; any other space is part of an id, as for other TREC tools."""
    return [part for part in _SPACES.split(line) if part]


def _plain_bytes(path: Path, *, tabs: bool) -> bytes | None:
    """The file with one separator between fields and none at line ends; None where quotes or damage need a look."""
    try:
        with open_bytes(path) as stream:
            data = stream.read()
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return None
    return _tidied(data.removeprefix(_BOM), tabs=tabs)


def _tidied(data: bytes, *, tabs: bool) -> bytes | None:
    """Text with one separator between fields and none at line ends; None where there are quotes."""
    if b'"' in data:
        return None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if tabs:
        return data
    if any(space in data for space in (b"\t", b"\x0b", b"\x0c", b"\r")):
        data = data.translate(_OTHER_SPACE)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    if b" \n" in data:
        data = data.replace(b" \n", b"\n")
    if b"\n " in data:
        data = data.replace(b"\n ", b"\n")
    return data.strip(b" ")


def _mapped(path: Path, *, tabs: bool) -> pa.Buffer | None:
    """The file in place where it needs no work: no quote, no carriage return, one separator between fields.

    None where it does, or where it is compressed or no regular file. Each byte is looked at once.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        data = pa.memory_map(str(path)).read_buffer()
    except OSError:
        return None
    codes = np.frombuffer(data, np.uint8)
    if codes[0] <= _SPACE or bytes(data[:2]) in _OTHER_TEXT or bytes(data[:3]) == _BOM:
        return None
    usual = (ord("\n"), _SPACE, ord("!"), *((ord("\t"),) if tabs else ()))
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK + 1]
        space = block <= _SPACE
        low = int(np.count_nonzero(block <= ord('"')))
        if np.any(space[1:] & space[:-1]) or low != sum(int(np.count_nonzero(block == code)) for code in usual):
            return None
    return data


def has_bom(path: Path) -> bool:
    """Whether the file starts with a UTF-8 byte order mark."""
    with open_bytes(path) as stream:
        try:
            return stream.read(3) == _BOM
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path}: the gzip file is damaged ({error}); fetch or write it again") from error
