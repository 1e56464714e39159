"""The project's own chunker: words by step, or whole sentences up to a number of words."""

from __future__ import annotations

from bisect import bisect_left

from goldset.config import ChunkerConfig
from goldset.spans import sentences
from goldset.text import word_ranges


def cut_document(text: str, config: ChunkerConfig) -> list[tuple[int, int]]:
    """Document text -> half-open ranges of its chunks, in order; each starts and ends at a word.

    The last chunk is the first that reaches the last word, so that no chunk lies inside another.
    """
    words = word_ranges(text)
    if not words:
        return []
    units = words if config.unit == "words" else sentences(text)
    # Number of words before each unit, so that both kinds are cut by the same loop.
    starts = [start for start, _ in words]
    before = [bisect_left(starts, start) for start, _ in units] + [len(words)]
    step = config.step or config.words
    chunks = []
    first = 0
    while True:
        last = max(first + 1, bisect_left(before, before[first] + config.words + 1) - 1)
        chunks.append((units[first][0], units[last - 1][1]))
        if last >= len(units):
            return chunks
        following = max(first + 1, bisect_left(before, before[first] + step))
        # Sentences are long and uneven: a step must not leave one out, unless steps longer than chunks were asked for.
        first = min(following, last) if step <= config.words else following
        if first >= len(units):
            return chunks
