"""Overlapping chunks of one stretch of text -> disjoint pieces: which chunks are anchors, and where to cut.

All functions work on plain half-open intervals in code points; nothing here knows tables.

Two wishes contradict each other. No sentence that a chunk holds whole is cut; and of each piece nine tenths lie inside
one chunk. Where a chunk is only a few sentences long, the sentence that stays whole is more than a tenth of its
piece, and the first wish wins. What a piece has beyond its best chunk is then at most half a sentence at each end, so
nine tenths hold wherever the best chunk has nine times as much text as that. tests/test_span_promises.py has a case by
hand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from goldset.spans.sentences import Boundaries, ink_counts

Interval = tuple[int, int]


@dataclass(frozen=True)
class Fold:
    """Disjoint pieces in order, and the cuts between overlapping anchors."""

    pieces: list[Interval]
    cuts: int
    at_sentence: int


class Stretch:
    """A stretch of text that chunks share: its text, where it starts, and what is needed to cut it.

    Args:
        text: code points of the stretch.
        base: position of its first code point in the document.
    """

    def __init__(self, text: str, base: int) -> None:
        self.text = text
        self.base = base
        self._ink = memoryview(ink_counts(text))  # gives plain integers, ten times as fast as the array does
        self._boundaries = Boundaries(text)

    def ink(self, low: int, high: int) -> int:
        """Non-space code points in ``[low, high)``."""
        found: int = self._ink[high - self.base] - self._ink[low - self.base] if high > low else 0
        return found

    def sentences(self, low: int, high: int) -> list[Interval]:
        """Sentences that touch ``[low, high]``, whole, in order."""
        found = self._boundaries.around(low - self.base, high - self.base)
        return [(self.base + start, self.base + end) for start, end in found]

    def word_gap(self, low: int, high: int, middle: float) -> int:
        """Position in ``[low, high]`` after white space nearest the middle; the middle itself if there is none."""
        text, base = self.text, self.base
        gaps = [at for at in range(max(low, base + 1), high + 1) if text[at - base - 1].isspace()]
        return min(gaps, key=lambda at: (abs(at - middle), at), default=int(middle))


def fold(chunks: Sequence[Interval], stretch: Stretch) -> Fold:
    """Chunks that overlap -> disjoint pieces that hold every non-space code point of every chunk.

    The rule, on chunks in order of start: parents that their children tile, and chunks inside another one, are no
    anchors; a chunk that overlaps the current anchor by less than half of the shorter of the two is the next anchor;
    a chunk that alone holds text before the next anchor, or after the last, is an anchor too. Between overlapping
    anchors the text is cut at the sentence boundary nearest the middle of their overlap, and through a sentence only
    where no chunk holds it whole.

    Args:
        chunks: intervals inside the stretch; repeats and any order are allowed.
        stretch: their text.
    """
    unique = sorted(set(chunks), key=lambda chunk: (chunk[0], -chunk[1]))
    anchors = _anchors(_outer(unique, stretch), stretch)
    return _cut(anchors, unique, stretch)


def roles(chunks: Sequence[Interval], stretch: Stretch) -> dict[Interval, str]:
    """Chunks that overlap -> what each became: alone, anchor, folded, inside (another chunk), parent."""
    unique = sorted(set(chunks), key=lambda chunk: (chunk[0], -chunk[1]))
    if len(unique) == 1:
        return {unique[0]: "alone" if len(chunks) == 1 else "anchor"}
    outer = _outer(unique, stretch)
    anchors = set(_anchors(outer, stretch))
    return {chunk: "anchor" if chunk in anchors else "folded" if chunk in outer else
            "parent" if _tiled(i, unique, stretch) else "inside" for i, chunk in enumerate(unique)}


def _outer(chunks: list[Interval], stretch: Stretch) -> list[Interval]:
    """Chunks without tiled parents and without chunks inside another: starts and ends both strictly rise."""
    kept = [chunk for i, chunk in enumerate(chunks) if not _tiled(i, chunks, stretch)]
    outer: list[Interval] = []
    for chunk in kept:
        if not outer or chunk[1] > outer[-1][1]:
            outer.append(chunk)
    return outer


def _tiled(i: int, chunks: list[Interval], stretch: Stretch) -> bool:
    """Whether smaller chunks inside chunk ``i`` hold all of its text between them."""
    start, end = chunks[i]
    reached = start
    # Chunks are in order of start, longest first, so all that lie inside come after it.
    for low, high in chunks[i + 1 :]:
        if low >= end or (low > reached and stretch.ink(reached, low)):
            break
        if high <= end:
            reached = max(reached, high)
    return reached > start and not stretch.ink(reached, end)


def _anchors(chunks: list[Interval], stretch: Stretch) -> list[Interval]:
    anchors = [chunks[0]]
    at, i = 0, 1
    while i <= len(chunks):
        start, end = chunks[at]
        if i < len(chunks):
            low, high = chunks[i]
            if 2 * (end - low) >= min(end - start, high - low):
                i += 1
                continue
        # Chunks between the anchor and i overlap it by half or more; the last of them reaches furthest.
        reach = chunks[i - 1][1]
        until = min(chunks[i][0], reach) if i < len(chunks) else reach
        if i - 1 > at and stretch.ink(end, until):
            at = i - 1
        elif i < len(chunks):
            at = i
        else:
            break
        anchors.append(chunks[at])
        i = at + 1
    return anchors


class _Holders:
    """Which stretch of text some chunk holds whole."""

    def __init__(self, chunks: list[Interval]) -> None:
        self._starts = [start for start, _ in chunks]
        self._reach = list(accumulate((end for _, end in chunks), max))

    def holds(self, low: int, high: int) -> bool:
        """Whether one chunk holds all of ``[low, high)``."""
        i = bisect_right(self._starts, low)
        return i > 0 and self._reach[i - 1] >= high


def _cut(anchors: list[Interval], chunks: list[Interval], stretch: Stretch) -> Fold:
    holders = _Holders(chunks)
    pieces: list[Interval] = []
    low, high = anchors[0]
    cuts = clean = 0
    for start, end in anchors[1:]:
        if start >= high:
            # The anchors only touch. A folded chunk may still bridge them and hold a sentence that both break.
            place = _place((high, start), (low, end), holders, stretch) if holders.holds(high - 1, start + 1) else None
            if place and place[0] is None:
                high = end  # a parent holds the sentence, and it fills both
            elif place and place[0] is not None and not high <= place[0] <= start:
                cuts, clean = cuts + 1, clean + 1
                pieces.append((low, place[0]))
                low, high = place[0], end
            else:
                pieces.append((low, high))
                low, high = start, end
            continue
        at, whole = _place((max(start, low + 1), high), (low, end), holders, stretch)
        if at is None:
            high = end  # any cut would go through a sentence that a chunk holds: the two stay one piece
            continue
        cuts, clean = cuts + 1, clean + whole
        pieces.append((low, at))
        low, high = at, end
    pieces.append((low, high))
    return Fold([piece for piece in pieces if stretch.ink(*piece)], cuts, clean)


def _place(overlap: Interval, whole: Interval, holders: _Holders, stretch: Stretch) -> tuple[int | None, bool]:
    """Overlap of two anchors -> (cut, whether it is a sentence boundary); None where no cut is right.

    The cut lies strictly inside ``whole``, the text that it divides.
    """
    low, high = overlap
    middle = (low + high) / 2
    found = stretch.sentences(low, high)
    starts = [start for start, _ in found]

    def nearest(places: list[int]) -> int:
        return min(places, key=lambda at: (abs(at - middle), at))

    def broken_by(at: int) -> Interval | None:
        i = bisect_left(starts, at) - 1
        return found[i] if i >= 0 and at < found[i][1] else None

    clean = [at for at in {*starts, low, high} if low <= at <= high and not broken_by(at)]
    if clean:
        return nearest(clean), True
    sentence = broken_by(low)
    if sentence and holders.holds(*sentence):
        ends = [at for at in sentence if whole[0] < at < whole[1]]
        return (nearest(ends), True) if ends else (None, False)
    return stretch.word_gap(low, high, middle), False


def links(chunks: Any, pieces: list[Interval], stretch: Stretch) -> list[tuple[int, int, float, float]]:
    """Chunks and pieces -> (chunk number, piece number, share of the chunk, share of the piece), by chunk.

    Shares count non-space code points; a chunk is linked to every piece with which it shares one.
    """
    ends = [end for _, end in pieces]
    sizes = [stretch.ink(*piece) for piece in pieces]
    found = []
    for number, (start, end) in enumerate(chunks):
        size = stretch.ink(start, end)
        for piece in range(bisect_right(ends, start), len(pieces)):
            low, high = pieces[piece]
            if low >= end:
                break
            shared = stretch.ink(max(low, start), min(high, end))
            if shared:  # so size and sizes[piece] are positive
                found.append((number, piece, shared / size, shared / sizes[piece]))
    return found
