"""Questions and chunks -> runs: one protocol, ``search(questions, depth)``, and the systems of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

import pyarrow as pa

from goldset.config import (
    BM25System,
    Config,
    DenseSystem,
    HttpSystem,
    HybridSystem,
    PythonSystem,
    RunSystem,
)
from goldset.errors import DataError
from goldset.retrievers.base import Retriever
from goldset.retrievers.scope import Scopes
from goldset.schemas import empty

__all__ = ["Retriever", "build_retrievers", "retrieve"]

_log = logging.getLogger(__name__)


def build_retrievers(
    *, config: Config, documents: pa.Table, chunks: pa.Table, cache: Path, quiet: bool = False
) -> dict[str, Retriever]:
    """The systems of a configuration over a corpus, by name, in the order of the file.

    Args:
        config: its ``systems``; paths are relative to its file.
        documents: table documents; a question's scope filters by their metadata.
        chunks: table chunks.
        cache: root of the caches; ``bm25/`` and ``embeddings/`` are made in it.
        quiet: no progress bars.

    Raises:
        DataError: there is no chunk to search.
        ConfigError: a model or entry that does not exist.
        MissingExtra: a system needs an extra that is not installed.
    """
    if not len(chunks):
        raise DataError("[corpus]: 0 chunks; there is nothing to search, so check the corpus files and field names")
    corpus = _Corpus(documents, chunks.sort_by("chunk_id").combine_chunks(), cache, quiet)
    simple = {
        name: _simple(name, config, corpus)
        for name, system in config.systems.items()
        if not isinstance(system, HybridSystem)
    }
    return {
        name: _hybrid(name, system, config, simple) if isinstance(system, HybridSystem) else simple[name]
        for name, system in config.systems.items()
    }


def retrieve(*, questions: pa.Table, retrievers: Mapping[str, Retriever], depth: int) -> tuple[pa.Table, pa.Table]:
    """Table questions -> tables run and run_status of all systems, one system after the other.

    Every question has a row in run_status for every system, also where its list is empty.
    """
    answers = [retriever.search(questions, depth) for retriever in retrievers.values()]
    if not answers:
        return empty("run"), empty("run_status")
    runs, states = zip(*answers, strict=True)
    return pa.concat_tables(runs), pa.concat_tables(states)


class _Corpus:
    """What the systems share: chunks in the order of chunk_id, their ids, and the filter."""

    def __init__(self, documents: pa.Table, chunks: pa.Table, cache: Path, quiet: bool) -> None:
        self.chunks, self.cache, self.quiet = chunks, cache, quiet
        self.ids = frozenset(chunks.column("chunk_id").to_pylist())
        self.scopes = Scopes(documents, chunks.column("doc_id").to_pylist())


def _simple(name: str, config: Config, corpus: _Corpus) -> Retriever:
    system, family = config.systems[name], config.family(name)
    assert not isinstance(system, HybridSystem)
    if system.family is None:
        _log.warning(
            "[systems.%s] has no family, so its own name is taken: set family if it shares a model or an "
            "index with another system, or circularity cannot be seen",
            name,
        )
    if isinstance(system, BM25System):
        from goldset.retrievers.bm25 import BM25Retriever

        return BM25Retriever(
            name,
            family,
            chunks=corpus.chunks,
            scopes=corpus.scopes,
            k1=system.k1,
            b=system.b,
            cache=corpus.cache / "bm25",
            tokenizer=system.tokenizer,
            most=config.pool.shard_chunks,
            quiet=corpus.quiet,
        )
    if isinstance(system, DenseSystem):
        from goldset.encoder import load_encoder, located
        from goldset.retrievers.dense import DenseRetriever

        encoder = load_encoder(located(system.model, config.base), dtype=system.dtype, cache=corpus.cache)
        return DenseRetriever(
            name,
            family,
            encoder=encoder,
            chunks=corpus.chunks,
            scopes=corpus.scopes,
            query_prompt=system.query_prompt,
            passage_prompt=system.passage_prompt,
            quiet=corpus.quiet,
        )
    if isinstance(system, RunSystem):
        from goldset.retrievers.runfile import RunFileRetriever

        return RunFileRetriever(name, family, path=config.path(system.path), known=corpus.ids)
    if isinstance(system, HttpSystem):
        from goldset.retrievers.http import HttpRetriever

        return HttpRetriever(
            name,
            family,
            url=system.url,
            body=system.body,
            headers=system.headers,
            ids=system.ids,
            scores=system.scores,
            timeout=system.timeout,
            retries=system.retries,
            known=corpus.ids,
            quiet=corpus.quiet,
        )
    if isinstance(system, PythonSystem):
        from goldset.retrievers.entry import PythonRetriever

        return PythonRetriever(name, family, entry=system.entry, known=corpus.ids)
    assert_never(system)


def _hybrid(name: str, system: HybridSystem, config: Config, simple: Mapping[str, Retriever]) -> Retriever:
    from goldset.retrievers.hybrid import HybridRetriever

    return HybridRetriever(
        name,
        config.family(name),
        parts=[simple[part] for part in system.of],
        weights=system.weights or (1.0,) * len(system.of),
        k=system.k,
    )
