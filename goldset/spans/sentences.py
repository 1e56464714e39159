"""Sentences of a text, and the counting of non-space code points that all coverage rests on."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from typing import Any

import numpy as np

_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_LIST_MARK = re.compile(r"^\s*(?:[-*•·]|\(?\w{1,3}[.)])\s*\t\s*")
_CLOSED = re.compile(r"[.!?;。！？；][\"'’”»)\]]*\s+|[。！？；]")
_LONG = 1000
_SPACES = np.zeros(0x3001, dtype=bool)
_SPACES[[code for code in range(0x3001) if chr(code).isspace()]] = True


def is_table_row(line: str) -> bool:
    """Whether a line is a row of a table: cells between bars, or between tabs (a list mark's tab does not count)."""
    row = line.strip()
    if len(row) > 2 and row.startswith("|") and row.endswith("|"):
        return True
    return "\t" in _LIST_MARK.sub("", row)


def is_heading(line: str) -> bool:
    """Whether a line is a Markdown heading (one to six number signs and a space)."""
    return re.match(r" {0,3}#{1,6}(?:\s|$)", line) is not None


def sentences(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Text -> half-open ranges of its sentences, in order; together they hold every non-space code point.

    Line ends are boundaries; a table row and a heading are one sentence each; other lines are cut by sentencex,
    and what it leaves longer than 1,000 code points after each closing mark.
    Ranges neither start nor end with white space, and offsets count code points.
    """
    ranges: list[tuple[int, int]] = []
    for match in _LINE.finditer(text):
        start = match.start()
        ranges.extend((start + low, start + high) for low, high in _line_sentences(match.group(), language))
    return ranges


def _line_sentences(line: str, language: str) -> list[tuple[int, int]]:
    if is_heading(line) or is_table_row(line):
        pieces = [line]
    else:
        pieces = [part for piece in _segment(line, language) for part in _shortened(piece)]
    ranges, at = [], 0
    for piece in pieces:
        body = piece.strip()
        if body:
            low = at + len(piece) - len(piece.lstrip())
            ranges.append((low, low + len(body)))
        at += len(piece)
    return ranges


def _segment(line: str, language: str) -> list[str]:
    import sentencex

    pieces: list[str] = sentencex.segment(language, line)
    if sum(map(len, pieces)) == len(line):
        return pieces
    # segment() drops paragraph breaks; the boundaries do not, but leave it to us to keep what lies between them.
    marks = [
        0,
        *(found["end_index"] for found in sentencex.get_sentence_boundaries(language, line)),
        len(line),
    ]
    return [line[low:high] for low, high in itertools.pairwise(marks) if low < high]


def _shortened(piece: str) -> list[str]:
    """A piece too long to be one sentence, cut after each closing mark: sentencex never cuts inside quotes."""
    if len(piece) <= _LONG:
        return [piece]
    marks = [0, *(match.end() for match in _CLOSED.finditer(piece)), len(piece)]
    return [piece[low:high] for low, high in itertools.pairwise(marks) if low < high]


class Boundaries:
    """Sentences around a position of a long text; each line is cut once, and only where somebody asks.

    Args:
        text: the text; positions count its code points.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [match.span() for match in _LINE.finditer(text)]
        self._ends = [end for _, end in self._lines]
        self._cut: dict[int, tuple[list[tuple[int, int]], list[int]]] = {}

    def _sentences(self, line: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Sentences of a line, and their ends."""
        if line not in self._cut:
            start, end = self._lines[line]
            found = [(start + low, start + high) for low, high in _line_sentences(self._text[start:end], "en")]
            self._cut[line] = found, [high for _, high in found]
        return self._cut[line]

    def around(self, low: int, high: int) -> list[tuple[int, int]]:
        """Sentences that touch ``[low, high]``, whole, in order."""
        found: list[tuple[int, int]] = []
        for line in range(bisect_left(self._ends, low), len(self._lines)):
            if self._lines[line][0] > high:
                break
            ranges, ends = self._sentences(line)
            for i in range(bisect_left(ends, low), len(ranges)):
                if ranges[i][0] > high:
                    break
                found.append(ranges[i])
        return found


_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BREAK = re.compile(f"[{_BREAKS}]")


def line_start(text: str, at: int) -> int:
    """Start of the line that holds the position ``at``."""
    step, low = 256, at
    while low > 0:
        low = max(0, low - step)
        found = max(text.rfind(mark, low, at) for mark in _BREAKS)
        if found >= 0:
            return found + 1
        step *= 2
    return 0


def line_end(text: str, at: int) -> int:
    """End of the line that holds the position ``at``, without its line end."""
    match = _BREAK.search(text, at)
    return match.start() if match else len(text)


def space_mask(text: str) -> Any:
    """Text -> bool array, one a code point: whether it is white space."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _SPACES[np.minimum(codes, 0x3000)] & (codes <= 0x3000)


def ink_counts(text: str) -> Any:
    """Text -> int64 array of length n + 1: non-space code points before each position."""
    counts = np.zeros(len(text) + 1, dtype=np.int64)
    np.cumsum(~space_mask(text), out=counts[1:])
    return counts
