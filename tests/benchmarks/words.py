"""Made-up corpora of Zipf words for the benchmarks: token lists, questions, and the ids they belong to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

VOCABULARY = 100_000
WORDS = 100  # a chunk
ASKED = 180
TERMS = 8  # a question
_BLOCK = 50_000  # chunks drawn at a time


def zipf(count: int, *, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Blocks of chunks, a row each: ranks drawn with a chance of 1 / rank."""
    share = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    rng = np.random.default_rng(seed)
    for low in range(0, count, _BLOCK):
        size = min(_BLOCK, count - low)
        yield np.searchsorted(share / share[-1], rng.random((size, WORDS)), side="right")


def token_lists(count: int, *, seed: int = 1) -> Iterator[list[str]]:
    """Chunks of 100 words; equal words are one object, as a tokenizer's interning would make them."""
    names = np.array([f"w{rank}" for rank in range(VOCABULARY)], dtype=object)
    for block in zipf(count, seed=seed):
        yield from names[block].tolist()


def questions(*, seed: int = 2) -> list[list[str]]:
    """180 questions of eight words from the same distribution."""
    rows = next(zipf(ASKED, seed=seed))[:, :TERMS]
    return [[f"w{rank}" for rank in row] for row in rows.tolist()]


def names(count: int) -> list[str]:
    """Chunk ids, ascending."""
    return [f"c{number:08d}" for number in range(count)]
