"""Where a chunk lies in its document: verified, located in order, stitched from neighbours, declared, or absent."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goldset.formats.corpora import RawChunk
from goldset.spans import shared_length
from goldset.spans.sentences import space_mask
from goldset.text import twin_key

_STITCH = 20
"""Code points that two neighbours must share to be stitched; shorter agreement may be chance."""
_MOST_PLACES = 1000


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk with its place: offsets (None where absent), length of its header, and how far they can be trusted."""

    chunk: RawChunk
    start: int | None
    end: int | None
    body_start: int
    offsets: str

    @property
    def body(self) -> str:
        """Text without the header."""
        return self.chunk.text[self.body_start :]


def title_line(chunk: RawChunk) -> int:
    """Length of the title and the line end that the indexer put before the body; 0 where there is none."""
    header = (chunk.title or "") + "\n"
    return len(header) if chunk.text.startswith(header) and twin_key(chunk.text[len(header) :]) else 0


def in_document(chunks: Sequence[RawChunk], text: str) -> list[Placed]:
    """Chunks of one document in the order of the file, and its text -> verified, located, or absent.

    A chunk whose declared offsets do not hold its text is looked for; of several places the one nearest the declared
    start is taken, without offsets the first after the chunk before.
    """
    finder = _Finder(text)
    placed = []
    reached = -1
    for chunk in chunks:
        found = _verified(chunk, text) or finder.find(chunk, reached)
        if found.start is not None:
            reached = found.start
        placed.append(found)
    return placed


def _verified(chunk: RawChunk, text: str) -> Placed | None:
    if chunk.start is None or chunk.end is None or chunk.end > len(text):
        return None
    body = text[chunk.start : chunk.end]
    if not chunk.text.endswith(body):
        return None
    return Placed(chunk, chunk.start, chunk.end, len(chunk.text) - len(body), "verified")


class _Finder:
    """Looks for chunks in a document: letter by letter first, then without white space."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._visible: tuple[str, list[int]] | None = None

    def find(self, chunk: RawChunk, reached: int) -> Placed:
        """The chunk's place, or absent."""
        headers = list(_headers(chunk))
        for header in headers:
            body = chunk.text[header:]
            places = list(_places(self._text, body))
            if places:
                start = _choose(places, chunk.start, reached)
                return Placed(chunk, start, start + len(body), header, "located")
        for header in headers:
            if found := self._loosely(chunk, header, reached):
                return found
        return Placed(chunk, None, None, title_line(chunk), "absent")

    def _loosely(self, chunk: RawChunk, header: int, reached: int) -> Placed | None:
        visible, positions = self._squeezed()
        body, _ = _squeeze(chunk.text[header:])
        places = {positions[at]: positions[at + len(body) - 1] + 1 for at in _places(visible, body)}
        if not places:
            return None
        start = _choose(list(places), chunk.start, reached)
        lead = len(chunk.text[header:]) - len(chunk.text[header:].lstrip())
        return Placed(chunk, start, places[start], header + lead, "located")

    def _squeezed(self) -> tuple[str, list[int]]:
        if self._visible is None:
            self._visible = _squeeze(self._text)
        return self._visible


def _squeeze(text: str) -> tuple[str, list[int]]:
    """Text without white space, and the position of each code point that is left."""
    return "".join(text.split()), np.flatnonzero(~space_mask(text)).tolist()


def _places(text: str, body: str) -> Iterator[int]:
    at = text.find(body)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        yield at
        at = text.find(body, at + 1)


def _choose(places: list[int], declared: int | None, reached: int) -> int:
    if declared is not None:
        return min(places, key=lambda at: (abs(at - declared), at))
    return next((at for at in places if at > reached), places[-1])


def _headers(chunk: RawChunk) -> Iterator[int]:
    """Lengths of what may stand before the body: nothing, the title's line, blank lines after it, the first line."""
    yield 0
    title = title_line(chunk)
    if title:
        yield title
    first = chunk.text.find("\n") + 1
    if first and first != title and 2 * first <= len(chunk.text):
        yield first


def without_document(chunks: Sequence[RawChunk]) -> list[Placed]:
    """Chunks of a document without text, in the order of the file -> declared, mismatched, stitched, or absent.

    The header is what the text has more than its offsets say, and at least the title's line. Where the text is
    shorter than title and offsets together, the header is the title's line and the offsets are mismatched.
    """
    placed = [_declared(chunk) for chunk in chunks]
    if len(placed) > 1 and all(found.start is None for found in placed):
        return _stitched(placed)
    return placed


def whole_document(chunk: RawChunk) -> Placed:
    """A chunk that is a document of its own."""
    header = title_line(chunk)
    return Placed(chunk, 0, len(chunk.text) - header, header, "declared")


def _declared(chunk: RawChunk) -> Placed:
    title = title_line(chunk)
    if chunk.start is None or chunk.end is None:
        return Placed(chunk, None, None, title, "absent")
    header = len(chunk.text) - (chunk.end - chunk.start)
    # Without a title a line end at the start may be the document's own: then the lengths agree as they are.
    if header >= title or (header == 0 and not chunk.title):
        return Placed(chunk, chunk.start, chunk.end, header, "declared")
    return Placed(chunk, chunk.start, chunk.end, title, "mismatched")


def _stitched(placed: list[Placed]) -> list[Placed]:
    """Runs of neighbours that share text get positions in a made-up document; the others stay absent."""
    shared = [shared_length(left.body, right.body, _STITCH) for left, right in itertools.pairwise(placed)]
    result = []
    at = 0
    for i, found in enumerate(placed):
        before = shared[i - 1] if i else 0
        after = shared[i] if i < len(shared) else 0
        if not before and not after:
            result.append(found)
            continue
        # One code point stands between runs, for whatever lies there.
        start = at - before if before else at + (at > 0)
        at = start + len(found.body)
        result.append(Placed(found.chunk, start, at, found.body_start, "stitched"))
    return result


def shares_text(left: Placed, right: Placed) -> bool:
    """Whether two chunks that overlap by their offsets hold the same text there, or nine tenths of it at their ends."""
    assert left.start is not None and left.end is not None  # noqa: PT018
    assert right.start is not None and right.end is not None  # noqa: PT018
    overlap = min(left.end, right.end) - right.start
    offset = right.start - left.start
    if left.body[offset : offset + overlap] == right.body[:overlap]:
        return True
    return 10 * shared_length(left.body, right.body) >= 9 * overlap
