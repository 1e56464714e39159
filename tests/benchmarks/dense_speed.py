"""Exact dense search beside faiss alone, on the same vectors: ``python tests/benchmarks/dense_speed.py``.

180 questions over made-up unit vectors of 384 dimensions in 100 clusters, top 50. Ours is the whole ``search`` of the
dense system: its own sums for every score, ties by chunk_id, the tables run and run_status. faiss is
``IndexFlatIP.search`` and nothing more. Both are called in turn, and must find the same chunks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from goldset.encoder import PassageVectors
from goldset.progress import Advance
from goldset.retrievers.dense import DenseRetriever
from goldset.retrievers.scope import Scopes
from goldset.schemas import empty
from tests.benchmarks.rows import AtMost, Row, arguments, finish, in_turn

LEAST = 100_000
ASKED, DIMENSION, DEPTH = 180, 384, 50
Vectors = npt.NDArray[np.float32]


class Given:
    """An encoder whose vectors are there: a text is the number of its row."""

    def __init__(self, passages: Vectors, queries: Vectors) -> None:
        self.passages, self.queries = passages, queries
        self.identity: dict[str, Any] = {}
        self.embedded = 0

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> Vectors:
        return self.queries[[int(text) for text in texts]]

    def encode_passages(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False,
                        advance: Advance | None = None) -> PassageVectors:
        return PassageVectors(self.passages[[int(text) for text in texts]], np.arange(len(texts)), 0)

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        return [False] * len(texts)


def vectors(count: int, seed: int) -> Vectors:
    """Unit vectors around the same 100 centres whatever the seed."""
    centres = np.random.default_rng(0).standard_normal((100, DIMENSION))
    draw = np.random.default_rng(seed)
    rows = centres[draw.integers(0, 100, count)] + draw.standard_normal((count, DIMENSION))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def tables(count: int) -> tuple[pa.Table, pa.Table]:
    """Tables chunks and questions, of which search reads ids, texts and scopes."""
    chunks = pa.table({"chunk_id": [f"c{number:07d}" for number in range(count)], "doc_id": ["d"] * count,
                       "text": list(map(str, range(count)))})
    asked = range(ASKED)
    return chunks, pa.table({"question_id": [f"q{number:03d}" for number in asked], "query": list(map(str, asked)),
                             "scope": ["{}"] * ASKED, "u": [0.5] * ASKED})


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is missed."""
    import faiss

    options = arguments(__doc__, least=LEAST, unit="vectors").parse_args()
    passages, queries = vectors(options.n, 1), vectors(ASKED, 2)
    chunks, questions = tables(options.n)
    scopes = Scopes(empty("documents"), chunks.column("doc_id").to_pylist())
    ours = {name: DenseRetriever("dense", "given", encoder=Given(passages, queries), chunks=chunks, scopes=scopes,
                                 most=most, quiet=True)
            for name, most in (("goldset", options.n), ("goldset in 4 shards", options.n // 4))}
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(passages)
    name = f"faiss {faiss.__version__}"
    tools: dict[str, Callable[[], object]] = {
        "goldset": lambda: ours["goldset"].search(questions, DEPTH), name: lambda: index.search(queries, DEPTH),
        "goldset in 4 shards": lambda: ours["goldset in 4 shards"].search(questions, DEPTH)}
    runs = [one.search(questions, DEPTH)[0] for one in ours.values()]  # the vectors are written to disk here, once
    if not runs[0].equals(runs[1]):
        raise SystemExit("the shards' run is another one: nothing was compared")
    theirs = [set(rows.tolist()) for rows in index.search(queries, DEPTH)[1]]
    found: list[set[int]] = [set() for _ in theirs]
    for question, chunk in zip(runs[0].column("question_id").to_pylist(), runs[0].column("chunk_id").to_pylist(),
                               strict=True):
        found[int(question[1:])].add(int(chunk[1:]))
    same = sum(len(a & b) for a, b in zip(found, theirs, strict=True)) / (ASKED * DEPTH)
    if same < 0.999:  # float32 sums may order two near equals otherwise
        raise SystemExit(f"only {same:.4f} of the chunks are the same: nothing was compared")
    work = f"dense search, exact, {ASKED} questions, top {DEPTH}, {options.n:,} vectors"
    note = f"{same:.4f} of the chunks are the same; the run in 4 shards is equal to the bit"
    return finish([
        Row.of_times(work, "s of CPU", in_turn(tools, clock=time.process_time), wanted=AtMost(1.2), note=note),
        Row.of_times(work, "s", in_turn(tools), wanted=AtMost(1.2)),
    ], options)


if __name__ == "__main__":
    sys.exit(main())
