"""The project's own chunker: words by step, whole sentences up to a number of words, or a model's tokens."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from itertools import pairwise

from goldset.config import ChunkerConfig
from goldset.corpus.tokens import TokenStarts
from goldset.spans import sentences
from goldset.text import word_ranges

Range = tuple[int, int]
_JOINER = "\u200d"


def cut_document(text: str, config: ChunkerConfig, token_starts: TokenStarts | None = None) -> list[Range]:
    """Document text -> half-open ranges of its chunks, in order; each starts and ends at a word.

    Tokens are those of the document as a whole, and a chunk has as many whole words as fit; only a word of more
    tokens than a chunk may have is cut between two of them. The last chunk is the first that reaches the last word, and
    a chunk that would lie inside the one before is left out.

    Args:
        text: the document.
        config: unit, size and step.
        token_starts: the tokenizer, for unit ``tokens``.
    """
    words = word_ranges(text)
    if not words:
        return []
    units, before = _units(text, words, config, token_starts)
    size = config.size
    step = config.step or size

    def reach(first: int) -> int:
        return max(first + 1, bisect_left(before, before[first] + size + 1) - 1)

    chunks = []
    first, last = 0, reach(0)
    while True:
        chunks.append((units[first][0], units[last - 1][1]))
        if last >= len(units):
            return chunks
        following = max(first + 1, bisect_left(before, before[first] + step))
        # Units are long and uneven: a step must not leave one out, unless steps longer than chunks were asked for.
        first = min(following, last) if step <= size else following
        if first >= len(units):
            return chunks
        while reach(first) <= last:
            first += 1
        last = reach(first)


def _units(text: str, words: list[Range], config: ChunkerConfig,
           token_starts: TokenStarts | None) -> tuple[list[Range], list[int]]:
    """What is never cut, and how many words or tokens stand before each and in all: one loop cuts all kinds."""
    if config.unit == "tokens":
        assert token_starts is not None, "the caller loads the tokenizer"
        return _token_units(text, words, token_starts(text), config.size)
    units = words if config.unit == "words" else sentences(text)
    starts = [start for start, _ in words]
    return units, [bisect_left(starts, start) for start, _ in units] + [len(words)]


def _token_units(text: str, words: list[Range], starts: list[int], size: int) -> tuple[list[Range], list[int]]:
    """Words, those of too many tokens in pieces, with the tokens before each."""
    units: list[Range] = []
    before = [0]
    for start, end in words:
        # White space before a word may belong to its first token, so a token goes to the first word that ends after it.
        upto = bisect_left(starts, end)
        edges = [start, *_cuts(text, starts[before[-1] : upto], start, size), end]
        units += pairwise(edges)
        before += [*(bisect_left(starts, edge) for edge in edges[1:-1]), upto]
    return units, before


def _cuts(text: str, starts: list[int], first: int, size: int) -> list[int]:
    """Where to cut a word that starts at ``first``: pieces of at most ``size`` tokens, each letter with its marks."""
    cuts: list[int] = []
    places = [start for start in dict.fromkeys(starts) if start > first and not _joined(text, start)]
    at = 0
    while len(starts) - at > size:
        # The last place that is not too far; where one letter alone has too many tokens, the end of it.
        near = [place for place in places if place <= starts[at + size]]
        if not (near or places):
            break
        cuts.append(near[-1] if near else places[0])
        places = [place for place in places if place > cuts[-1]]
        at = bisect_left(starts, cuts[-1])
    return cuts


def _joined(text: str, at: int) -> bool:
    """Whether the code point belongs to the letter before it: a mark, a variation, one end of a joiner."""
    return unicodedata.category(text[at]) in ("Mn", "Me", "Mc") or _JOINER in text[at - 1 : at + 1]
