"""Dense search: an encoder's vectors in an exact inner-product index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goldset.encoder import PassageVectors
from goldset.errors import DataError, MissingExtra
from goldset.retrievers.base import Answer, tabulate
from goldset.retrievers.scope import Mask, Scopes

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DECIMALS = 6  # scores closer than this tie: sums of the same products differ beyond it
SLACK = 4e-6  # how far the index's float32 scores may be from ours


class Encodes(Protocol):
    """The part of ``goldset.encoder.Encoder`` that search needs."""

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> npt.NDArray[np.float32]:
        """Texts -> unit vectors."""
        ...

    def encode_passages(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> PassageVectors:
        """Texts -> unit vectors of one or more windows each."""
        ...

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text."""
        ...


class _Index(NamedTuple):
    faiss: Any
    vectors: npt.NDArray[np.float32]  # a view into the index
    owners: Rows  # chunk of each window
    windowed: int


class DenseRetriever:
    """Exact cosine search; a chunk beyond the encoder's window counts by its best window.

    Args:
        name: system.
        family: systems that share its model.
        encoder: what embeds.
        chunks: table chunks, in the order of chunk_id.
        scopes: filter over the same chunks.
        query_prompt: put before each query.
        passage_prompt: put before each chunk.
        quiet: no progress bar.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        encoder: Encodes,
        chunks: pa.Table,
        scopes: Scopes,
        query_prompt: str = "",
        passage_prompt: str = "",
        quiet: bool = False,
    ) -> None:
        self.name, self.family = name, family
        self._encoder, self._chunks, self._scopes = encoder, chunks, scopes
        self._query_prompt, self._passage_prompt, self._quiet = query_prompt, passage_prompt, quiet

    @property
    def windowed(self) -> int:
        """Chunks that exceed the encoder's window and were embedded in several."""
        return self._index.windowed

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; score = cosine rounded to 6 decimals, ties by chunk_id."""
        queries = questions.column("query").to_pylist()
        scopes = questions.column("scope").to_pylist()
        ids = questions.column("question_id").to_pylist()
        answers: list[Answer] = [Answer()] * len(queries)
        if len(queries) and len(self._chunks):
            vectors = self._encoder.encode(queries, prompt=self._query_prompt, quiet=self._quiet)
            cut = self._encoder.cut(queries, prompt=self._query_prompt)
            names = self._chunks.column("chunk_id")
            for scope in sorted(set(scopes)):
                group = [number for number, one in enumerate(scopes) if one == scope]
                found = self._nearest(vectors[group], self._scopes.visible(scope), depth)
                for number, (owners, scores) in zip(group, found, strict=True):
                    detail = "the query exceeds the encoder's window and was cut" if cut[number] else None
                    answers[number] = Answer(names.take(pa.array(owners)).to_pylist(), scores.tolist(), detail=detail)
        return tabulate(self.name, self.family, ids, answers)

    def _nearest(self, queries: npt.NDArray[np.float32], visible: Mask | None, depth: int) -> list[tuple[Rows, Floats]]:
        """(chunk rows, scores) a query: exact, with ties by row, whatever other queries are in the batch."""
        index = self._index  # first: it says which extra is missing
        import faiss

        rows = None if visible is None else np.flatnonzero(visible[index.owners])
        total = len(index.owners) if rows is None else len(rows)
        found: list[tuple[Rows, Floats]] = [(np.empty(0, np.int64), np.empty(0))] * len(queries)
        limit: Any = faiss.SearchParameters  # its keywords are made at run time
        params = None if rows is None else limit(sel=faiss.IDSelectorBatch(rows))
        open_queries = np.arange(len(queries)) if total else np.empty(0, np.int64)
        width = 2 * depth + 16
        while len(open_queries):
            width = min(width, total)
            scores, near = index.faiss.search(queries[open_queries], width, params=params)
            still = []
            for number, row_scores, row_near in zip(open_queries, scores, near, strict=True):
                owners, exact = self._score(queries[number], row_near[row_near >= 0])
                found[number] = owners[:depth], exact[:depth]
                # More rows may tie with the last chunk kept, or belong to chunks not seen yet.
                settled = len(owners) >= depth and float(row_scores[-1]) + SLACK < exact[depth - 1]
                if not settled and width < total:
                    still.append(number)
            open_queries = np.array(still, dtype=np.int64)
            width *= 4
        return found

    def _score(self, query: npt.NDArray[np.float32], rows: Rows) -> tuple[Rows, Floats]:
        """Windows -> their chunks, best first, by our own sums: the index's last bits depend on the batch."""
        index = self._index
        products = index.vectors[rows].astype(np.float64) * query.astype(np.float64)
        scores = np.round(products.sum(axis=1), DECIMALS)
        owners = index.owners[rows]
        order = np.lexsort((owners, -scores))
        owners, scores = owners[order], scores[order]
        first = np.sort(np.unique(owners, return_index=True)[1])
        return owners[first], scores[first]

    @cached_property
    def _index(self) -> _Index:
        try:
            import faiss
        except ModuleNotFoundError as error:
            raise MissingExtra("dense retrieval", "dense") from error
        texts = self._chunks.column("text").to_pylist()
        vectors, owners, windowed = self._encoder.encode_passages(texts, prompt=self._passage_prompt, quiet=self._quiet)
        if not np.isfinite(vectors).all():
            row = int(owners[np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0]])
            raise DataError(
                f"[systems.{self.name}]: the vector of chunk '{self._chunks.column('chunk_id')[row]}' "
                "is not finite; look at its text, or use another model or dtype"
            )
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        view = faiss.rev_swig_ptr(index.get_xb(), vectors.size).reshape(vectors.shape)
        return _Index(index, view, owners, windowed)
