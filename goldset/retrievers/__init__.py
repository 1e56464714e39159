"""Questions and chunks -> runs: one protocol, ``search(questions, depth)``, and the systems of the configuration."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import assert_never

import pyarrow as pa

from goldset.config import (
    BM25System,
    Config,
    DenseSystem,
    GoldSetSystem,
    HttpSystem,
    HybridSystem,
    PythonSystem,
    QdrantSystem,
    RunSystem,
)
from goldset.errors import DataError
from goldset.retrievers.base import Retriever, unanswered
from goldset.retrievers.kept import Kept
from goldset.retrievers.nearest import HNSW, IVF, Kind
from goldset.retrievers.scope import KnownChunks, Scopes
from goldset.schemas import empty

__all__ = ["KnownChunks", "Retriever", "build_retrievers", "deepest", "retrieve", "reused", "unanswered"]

_log = logging.getLogger(__name__)


def build_retrievers(
    *,
    config: Config,
    documents: pa.Table,
    chunks: pa.Table,
    cache: Path,
    kept: Path | None = None,
    quiet: bool = False,
    names: Collection[str] | None = None,
) -> dict[str, Retriever]:
    """The systems of a configuration over a corpus, by name, in the order of the file.

    Old labelled sets rank nothing and are none of them.

    Args:
        config: its ``systems``; paths are relative to its file.
        documents: table documents; a question's scope filters by their metadata.
        chunks: table chunks.
        cache: root of the caches; ``bm25/`` and ``embeddings/`` are made in it.
        kept: folder in which answers of services and functions are kept as they come; default: in memory.
        quiet: no progress bars.
        names: only these of the systems that are no hybrids; default: all, hybrids too.

    Raises:
        DataError: there is no chunk to search.
        ConfigError: a model or entry that does not exist.
        MissingExtra: a system needs an extra that is not installed.
    """
    if not len(chunks):
        raise DataError("[corpus]: 0 chunks; there is nothing to search, so check the corpus files and field names")
    corpus = _Corpus(documents, chunks.sort_by("chunk_id").combine_chunks(), cache, kept, quiet)
    simple = {
        name: _simple(name, config, corpus)
        for name, system in config.systems.items()
        if not isinstance(system, HybridSystem | GoldSetSystem) and (names is None or name in names)
    }
    if names is not None:
        return simple
    return {
        name: _hybrid(name, system, config, simple, corpus) if isinstance(system, HybridSystem) else simple[name]
        for name, system in config.systems.items()
        if not isinstance(system, GoldSetSystem)
    }


def retrieve(*, questions: pa.Table, retrievers: Mapping[str, Retriever], depth: int) -> tuple[pa.Table, pa.Table]:
    """Table questions -> tables run and run_status of all systems, one system after the other.

    Every question has a row in run_status for every system, also where its list is empty. Hybrids go first: they ask
    deeper, and a service that is also a system of its own is asked once (its list is the head of the deeper one).
    """
    from goldset.retrievers.hybrid import HybridRetriever

    found = {name: retrievers[name].search(questions, depth)
             for name in sorted(retrievers, key=lambda name: not isinstance(retrievers[name], HybridRetriever))}
    if not found:
        return empty("run"), empty("run_status")
    runs, states = zip(*(found[name] for name in retrievers), strict=True)
    return pa.concat_tables(runs), pa.concat_tables(states)


def deepest(name: str, config: Config) -> int:
    """Results a question that a rebuild asks of a system: a hybrid's parts give deeper lists."""
    from goldset.retrievers.hybrid import DEEPER

    parts = {part for system in config.systems.values() if isinstance(system, HybridSystem) for part in system.of}
    return config.pool.depth * (DEEPER if name in parts else 1)


def reused(retrievers: Mapping[str, Retriever]) -> list[str]:
    """What to say of systems that answered some questions before an earlier start was stopped."""
    counts = {name: len(one.kept.reused) for name, one in retrievers.items() if hasattr(one, "kept")}
    return [f"{name}: {count:,} questions had been answered before the stage was stopped, and were not asked again"
            for name, count in counts.items() if count]


class _Corpus:
    """What the systems share: chunks in the order of chunk_id, their ids, and the filter."""

    def __init__(self, documents: pa.Table, chunks: pa.Table, cache: Path, kept: Path | None, quiet: bool) -> None:
        self.chunks, self.cache, self.quiet = chunks, cache, quiet
        self._kept = kept
        self.scopes = Scopes(documents, chunks.column("doc_id").to_pylist())
        self.known = KnownChunks(chunks.column("chunk_id").to_pylist(), self.scopes)

    def answers(self, system: str) -> Kept:
        """Answers of one system so far."""
        return Kept(system, None if self._kept is None else self._kept / f"{system}.jsonl")


def _simple(name: str, config: Config, corpus: _Corpus) -> Retriever:
    system, family = config.systems[name], config.family(name)
    assert not isinstance(system, HybridSystem | GoldSetSystem)
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

        model = located(system.model, config.base)
        return DenseRetriever(
            name,
            family,
            encoder=load_encoder(model, dtype=system.dtype, device=system.device, cache=corpus.cache),
            chunks=corpus.chunks,
            scopes=corpus.scopes,
            query_prompt=system.query_prompt,
            passage_prompt=system.passage_prompt,
            kind=_kind(system),
            most=config.pool.shard_chunks,
            scratch=corpus.cache,
            quiet=corpus.quiet,
        )
    if isinstance(system, RunSystem):
        from goldset.retrievers.runfile import RunFileRetriever

        return RunFileRetriever(name, family, path=config.path(system.path), known=corpus.known)
    if isinstance(system, HttpSystem):
        from goldset.retrievers.http import HttpRetriever

        return HttpRetriever(
            name, family, system=system, known=corpus.known, quiet=corpus.quiet, kept=corpus.answers(name)
        )
    if isinstance(system, QdrantSystem):
        from goldset.encoder import load_encoder, located
        from goldset.retrievers.qdrant import QdrantRetriever

        return QdrantRetriever(
            name,
            family,
            system=system,
            folder=None if system.path is None else config.path(system.path),
            encoder=load_encoder(located(system.model, config.base), dtype=system.dtype, cache=corpus.cache),
            known=corpus.known,
            quiet=corpus.quiet,
            kept=corpus.answers(name),
        )
    if isinstance(system, PythonSystem):
        from goldset.retrievers.entry import PythonRetriever

        return PythonRetriever(name, family, entry=system.entry, known=corpus.known, kept=corpus.answers(name))
    assert_never(system)


def _kind(system: DenseSystem) -> Kind:
    """How a dense system's shards are searched."""
    if system.index == "hnsw":
        return HNSW(system.hnsw_links, system.hnsw_build, system.hnsw_search)
    return IVF(system.ivf_lists, system.ivf_probes) if system.index == "ivf" else None


def _hybrid(
    name: str, system: HybridSystem, config: Config, simple: Mapping[str, Retriever], corpus: _Corpus
) -> Retriever:
    from goldset.retrievers.hybrid import HybridRetriever

    return HybridRetriever(
        name,
        config.family(name),
        parts=[simple[part] for part in system.of],
        weights=system.weights or (1.0,) * len(system.of),
        known=corpus.known,
        k=system.k,
    )
