"""BM25 over the corpus, from an index that is built once and kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.lexical import SavedIndex, index_key
from goldset.progress import progress
from goldset.retrievers.base import Answer, tabulate
from goldset.retrievers.scope import Scopes
from goldset.shards import SHARD
from goldset.text import Tokenizer

_PLAIN = Tokenizer()


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
        tokenizer: what cuts questions and chunks into words.
        most: chunks that are indexed and searched at a time.
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
        tokenizer: Tokenizer = _PLAIN,
        most: int = SHARD,
        quiet: bool = False,
    ) -> None:
        self.name, self.family = name, family
        self._chunks, self._scopes = chunks, scopes
        self._k1, self._b, self._tokenizer, self._most = k1, b, tokenizer, most
        self._cache, self._quiet = cache, quiet

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; a question without any token has the status no_tokens."""
        queries = [self._tokenizer(query) for query in questions.column("query").to_pylist()]
        visible = [self._scopes.visible(scope) for scope in questions.column("scope").to_pylist()]
        index = self._index
        with progress("searching words", len(queries) * len(index.shard_ends), quiet=self._quiet) as advance:
            found = index.search(queries, depth, visible=visible, advance=advance)
        answers = [
            Answer(
                [chunk for chunk, _ in best], [score for _, score in best], status=None if tokens else "no_tokens"
            )
            for tokens, best in zip(queries, found, strict=True)
        ]
        return tabulate(self.name, self.family, questions.column("question_id").to_pylist(), answers)

    @cached_property
    def _index(self) -> SavedIndex:
        ids, texts = self._chunks.column("chunk_id").to_pylist(), self._chunks.column("text")
        same: dict[str, Any] = {"k1": self._k1, "b": self._b, "tokenizer": self._tokenizer.version, "most": self._most}
        folder = self._cache / index_key(ids, (text.as_py() for text in texts), **same)
        if folder.exists():
            return SavedIndex(folder, tokenizer=self._tokenizer.version)
        return SavedIndex.build(folder, ids, self._tokens(), **same)

    def _tokens(self) -> Iterator[list[str]]:
        with progress("indexing words", len(self._chunks), quiet=self._quiet) as advance:
            for batch in self._chunks.select(["text"]).to_batches(max_chunksize=1000):
                yield from map(self._tokenizer, batch.column("text").to_pylist())
                advance(len(batch))
