"""The chunks nearest to a question among the vectors of one shard: exactly, or through an approximate index.

Scores are our own sums over one pair of vectors, in float64 and in a fixed order: what the library's block of
products gives in its last bits depends on the block. So neither other questions nor the cut into shards change a
score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from goldset.retrievers.scope import Mask
from goldset.shards import Found, Rows
from goldset.vectors import Vectors

DECIMALS = 6  # scores closer than this tie: sums of the same products differ beyond it
LEAST_A_LIST = 39  # vectors that faiss wants for each list that it trains


@dataclass(frozen=True)
class Shard:
    """Vectors of consecutive chunks.

    Attributes:
        vectors: float32, (windows, dimension), unit length.
        owners: chunk of each window, ascending, counted from the first chunk of the shard.
        first: that chunk's row in the corpus.
    """

    vectors: Vectors
    owners: Rows
    first: int

    def score(self, query: npt.NDArray[np.float32], windows: Rows) -> Found:
        """Windows -> their chunks, each by its best window, best first, equal scores by chunk."""
        products = self.vectors[windows].astype(np.float64) * query.astype(np.float64)
        scores = np.round(products.sum(axis=1), DECIMALS)
        owners = self.owners[windows]
        order = np.lexsort((owners, -scores))
        owners, scores = owners[order], scores[order]
        kept = np.sort(np.unique(owners, return_index=True)[1])
        return owners[kept], scores[kept]


class Searches(Protocol):
    """Finds the nearest chunks of a shard."""

    def search(
        self, queries: Vectors, depth: int, *, visible: Mask | None, floors: npt.NDArray[np.float64]
    ) -> list[Found]:
        """Queries -> the ``depth`` best chunks of the corpus that lie in this shard; less than a floor need not be."""
        ...


class Exact:
    """Every product is computed, by faiss.

    Args:
        shard: what is searched.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        # A float32 dot product of unit vectors is at most dimension x 2^-24 off; rounding adds half a unit.
        self._slack = shard.vectors.shape[1] * 2.0**-24 + 10.0**-DECIMALS

    def search(
        self, queries: Vectors, depth: int, *, visible: Mask | None, floors: npt.NDArray[np.float64]
    ) -> list[Found]:
        """See ``Searches``; exact, with ties by chunk, whatever other queries there are."""
        import faiss

        shard = self._shard
        windows = None if visible is None else np.flatnonzero(visible[shard.owners])
        vectors = shard.vectors if windows is None else np.ascontiguousarray(shard.vectors[windows])
        found: list[Found] = [(np.empty(0, np.int64), np.empty(0))] * len(queries)
        waiting = np.arange(len(queries)) if len(vectors) else np.empty(0, np.int64)
        width = 2 * depth + 16
        while len(waiting):
            width = min(width, len(vectors))
            rough, near = faiss.knn(queries[waiting], vectors, width, metric=faiss.METRIC_INNER_PRODUCT)
            still = []
            for number, last, places in zip(waiting, rough[:, -1], near, strict=True):
                owners, scores = shard.score(queries[number], places if windows is None else windows[places])
                found[number] = owners[:depth] + shard.first, scores[:depth]
                # More windows may tie with the last chunk kept, or belong to chunks not seen yet.
                wanted = max(scores[depth - 1] if len(scores) >= depth else -np.inf, floors[number])
                if not float(last) + self._slack < wanted and width < len(vectors):
                    still.append(number)
            waiting = np.array(still, dtype=np.int64)
            width *= 4
        return found


class Approximate:
    """An index of faiss that looks at a part of the vectors. A scope is searched exactly: it hides what was looked at.

    Args:
        shard: what is searched.
        index: a faiss index over its vectors.
    """

    def __init__(self, shard: Shard, index: Any) -> None:
        self._shard, self._index, self._exact = shard, index, Exact(shard)

    def search(
        self, queries: Vectors, depth: int, *, visible: Mask | None, floors: npt.NDArray[np.float64]
    ) -> list[Found]:
        """See ``Searches``; chunks that the index does not look at are missed."""
        if visible is not None or not len(self._shard.vectors):
            return self._exact.search(queries, depth, visible=visible, floors=floors)
        _, near = self._index.search(queries, min(2 * depth + 16, len(self._shard.vectors)))
        found = []
        for query, windows in zip(queries, near, strict=True):
            owners, scores = self._shard.score(query, windows[windows >= 0])
            found.append((owners[:depth] + self._shard.first, scores[:depth]))
        return found


@dataclass(frozen=True)
class HNSW:
    """A graph of near neighbours.

    Attributes:
        links: a vector's neighbours in the graph.
        build: vectors looked at to place one.
        search: vectors looked at to answer a question.
    """

    links: int
    build: int
    search: int

    def over(self, shard: Shard) -> Searches:
        """The graph of one shard."""
        import faiss

        index = faiss.IndexHNSWFlat(shard.vectors.shape[1], self.links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = self.build, self.search
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # several threads place vectors in any order: another graph at each start
        try:
            index.add(shard.vectors)
        finally:
            faiss.omp_set_num_threads(threads)
        return Approximate(shard, index)


@dataclass(frozen=True)
class IVF:
    """Lists of vectors around centres.

    Attributes:
        lists: how many, at most one for each 39 vectors; None = four times the root of the number of vectors.
        probes: lists looked at to answer a question.
    """

    lists: int | None
    probes: int

    def over(self, shard: Shard) -> Searches:
        """The lists of one shard."""
        import faiss

        count, dimension = shard.vectors.shape
        lists = max(1, min(self.lists or int(4 * count**0.5), count // LEAST_A_LIST))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT)
        index.nprobe = self.probes
        if count:
            index.train(shard.vectors)
            index.add(shard.vectors)
        return Approximate(shard, index)


Kind = HNSW | IVF | None
"""How a shard is searched; None = exactly."""


def searcher(kind: Kind, shard: Shard) -> Searches:
    """A shard and how it is to be searched -> what searches it."""
    return Exact(shard) if kind is None else kind.over(shard)


def shared(found: Sequence[str], wanted: Sequence[str]) -> float:
    """Share of ``wanted`` that was found."""
    return len(set(found) & set(wanted)) / len(wanted)
