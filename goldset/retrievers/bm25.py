"""BM25 over the corpus, from an index that is built once and kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from goldset.lexical import BM25Index, index_key
from goldset.progress import progress
from goldset.retrievers.base import Answer, tabulate
from goldset.retrievers.scope import Scopes
from goldset.text import tokenize


class BM25Retriever:
    """Lexical search; a chunk that shares no word with the question is never returned.

    Args:
        name: system.
        family: systems that share its index.
        chunks: table chunks, in the order of chunk_id.
        scopes: filter over the same chunks.
        k1: term saturation.
        b: length normalisation.
        cache: folder of saved indexes; one is made for each corpus, tokenizer, k1 and b.
        quiet: no progress bar.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        chunks: pa.Table,
        scopes: Scopes,
        k1: float,
        b: float,
        cache: Path,
        quiet: bool = False,
    ) -> None:
        self.name, self.family = name, family
        self._chunks, self._scopes = chunks, scopes
        self._k1, self._b, self._cache, self._quiet = k1, b, cache, quiet

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; a question without any token has the status no_tokens."""
        answers = []
        columns = (questions.column(name).to_pylist() for name in ("query", "scope"))
        for query, scope in zip(*columns, strict=True):
            tokens = tokenize(query)
            found = self._index.search(tokens, depth, visible=self._scopes.visible(scope))
            answers.append(
                Answer(
                    [chunk for chunk, _ in found], [score for _, score in found], status=None if tokens else "no_tokens"
                )
            )
        return tabulate(self.name, self.family, questions.column("question_id").to_pylist(), answers)

    @cached_property
    def _index(self) -> BM25Index:
        ids, texts = self._chunks.column("chunk_id").to_pylist(), self._chunks.column("text")
        folder = self._cache / index_key(ids, (text.as_py() for text in texts), k1=self._k1, b=self._b)
        if not folder.exists():
            BM25Index.build(ids, self._tokens(), k1=self._k1, b=self._b).save(folder)
        return BM25Index.load(folder)

    def _tokens(self) -> Iterator[list[str]]:
        with progress("indexing words", len(self._chunks), quiet=self._quiet) as advance:
            for batch in self._chunks.select(["text"]).to_batches(max_chunksize=1000):
                yield from map(tokenize, batch.column("text").to_pylist())
                advance(len(batch))
