"""Dense search: an encoder's vectors, searched shard by shard, exactly unless the configuration says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goldset.encoder import BadVector, PassageVectors
from goldset.errors import DataError, MissingExtra
from goldset.progress import Advance, progress
from goldset.retrievers.base import CUT, Answer, tabulate
from goldset.retrievers.nearest import Kind, Searches, Shard, searcher, shared
from goldset.retrievers.scope import Scopes
from goldset.shards import SHARD, Found, merge_found, shard_slices
from goldset.vectors import VectorFile, Vectors

BLOCK = 8192  # chunks embedded and written at a time
AT_A_TIME = 256  # questions searched at a time
MEASURED = 200  # questions on which an approximate index is compared with exact search


class Encodes(Protocol):
    """The part of ``goldset.encoder.Encoder`` that search needs."""

    identity: dict[str, Any]
    embedded: int

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> npt.NDArray[np.float32]:
        """Texts -> unit vectors."""
        ...

    def encode_passages(
        self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False, advance: Advance | None = None
    ) -> PassageVectors:
        """Texts -> unit vectors of one or more windows each."""
        ...

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text."""
        ...


class _Corpus(NamedTuple):
    shards: list[Shard]
    slices: list[slice]  # chunks of each
    windows: int
    windowed: int
    embedded: int


class DenseRetriever:
    """Cosine search; a chunk beyond the encoder's window counts by its best window.

    Args:
        name: system.
        family: systems that share its model.
        encoder: what embeds.
        chunks: table chunks, in the order of chunk_id.
        scopes: filter over the same chunks.
        query_prompt: put before each query.
        passage_prompt: put before each chunk.
        kind: how a shard is searched; None = exactly.
        most: chunks that are searched at a time; it bounds memory and changes no result of exact search.
        scratch: folder for the file of vectors (see ``VectorFile``).
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
        kind: Kind = None,
        most: int = SHARD,
        scratch: Path | None = None,
        quiet: bool = False,
    ) -> None:
        self.name, self.family = name, family
        self._encoder, self._chunks, self._scopes = encoder, chunks, scopes
        self._query_prompt, self._passage_prompt = query_prompt, passage_prompt
        self._kind, self._most, self._scratch, self._quiet = kind, most, scratch, quiet
        self._file = VectorFile(scratch)
        self._measured: dict[int, dict[str, Any]] = {}

    @property
    def windowed(self) -> int:
        """Chunks that exceed the encoder's window and were embedded in several."""
        return self._corpus.windowed

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; score = cosine rounded to 6 decimals, ties by chunk_id."""
        queries = questions.column("query").to_pylist()
        scopes = questions.column("scope").to_pylist()
        ids = questions.column("question_id").to_pylist()
        answers: list[Answer] = [Answer()] * len(queries)
        if len(queries) and len(self._chunks):
            vectors = self._queries(queries, ids)
            cut = self._encoder.cut(queries, prompt=self._query_prompt)
            found = self._nearest(vectors, scopes, depth)
            names = self._chunks.column("chunk_id")
            for number, (rows, scores) in enumerate(found):
                answers[number] = Answer(names.take(pa.array(rows)).to_pylist(), scores.tolist(),
                                         detail=CUT if cut[number] else None)
            if self._kind is not None:
                self._measure(vectors, scopes, questions.column("u").to_pylist(), depth, found)
        return tabulate(self.name, self.family, ids, answers)

    def report(self) -> dict[str, Any]:
        """What was embedded, from where, and how it was searched; ``notes`` are the lines that a reader must see."""
        identity, total = self._encoder.identity, len(self._chunks)
        if "_corpus" not in vars(self):
            return {"encoder": identity, "chunks": total, "notes": [f"{self.name}: nothing was searched"]}
        corpus = self._corpus
        place = " on ".join(str(identity[part]) for part in ("dtype", "device") if part in identity)
        known = {0: ", all were known", total: ""}.get(corpus.embedded, ", the others were known")
        notes = [f"{self.name}: {corpus.embedded:,} of {total:,} chunks embedded ({place}){known}"]
        if corpus.windowed:
            several = corpus.windows - total + corpus.windowed
            notes.append(f"{self.name}: {corpus.windowed:,} of {total:,} chunks exceed the encoder's window and were "
                         f"embedded in {several:,} windows; the best one counts")
        notes += [f"{self.name}: {_named(self._kind)} finds {row['recall']:.3f} of what exact search finds in its top "
                  f"{row['depth']} ({row['n']} questions without a scope)" for row in self._measured.values()]
        if self._kind is not None and not self._measured:
            notes.append(f"{self.name}: every question has a scope, and a scope is searched exactly")
        return {"encoder": identity, "chunks": total, "embedded": corpus.embedded,
                "windows": corpus.windows, "windowed": corpus.windowed, "shards": len(corpus.shards),
                "search": _named(self._kind), "recall_against_exact": list(self._measured.values()), "notes": notes}

    def _queries(self, queries: list[str], ids: list[str]) -> Vectors:
        try:
            vectors = self._encoder.encode(queries, prompt=self._query_prompt, quiet=self._quiet)
        except BadVector as error:
            raise DataError(f"[systems.{self.name}]: question '{ids[error.number]}': {error.why}") from error
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _nearest(self, queries: Vectors, scopes: Sequence[str], depth: int, *, exactly: bool = False) -> list[Found]:
        """(chunk rows, scores) a query; see ``nearest``. Shard by shard, so that one is in memory at a time."""
        corpus = self._corpus
        searchers = [searcher(None, shard) for shard in corpus.shards] if exactly else self._searchers
        best: list[Found] = [(np.empty(0, np.int64), np.empty(0))] * len(queries)
        groups: dict[str, list[int]] = {}
        for number, scope in enumerate(scopes):
            groups.setdefault(scope, []).append(number)
        with progress("searching vectors", len(queries) * len(searchers), quiet=self._quiet) as advance:
            for one, chunks in zip(searchers, corpus.slices, strict=True):
                for scope, group in groups.items():
                    mask = self._scopes.visible(scope)
                    visible = None if mask is None else mask[chunks]
                    for low in range(0, len(group), AT_A_TIME):
                        block = group[low : low + AT_A_TIME]
                        floors = np.array([scores[-1] if len(scores) == depth else -np.inf
                                           for _, scores in (best[number] for number in block)])
                        part = one.search(queries[block], depth, visible=visible, floors=floors)
                        for number, found in zip(block, part, strict=True):
                            best[number] = merge_found([best[number], found], depth)
                        advance(len(block))
        return best

    def _measure(
        self, queries: Vectors, scopes: Sequence[str], draws: Sequence[float], depth: int, found: Sequence[Found]
    ) -> None:
        """Compare what an approximate index found with exact search, on the questions with the smallest draws."""
        free = [number for number, scope in enumerate(scopes) if self._scopes.visible(scope) is None]
        taken = sorted(sorted(free, key=lambda number: draws[number])[:MEASURED])
        if taken:
            exact = self._nearest(queries[taken], [scopes[number] for number in taken], depth, exactly=True)
            shares = [shared(found[number][0].tolist(), rows.tolist())
                      for number, (rows, _) in zip(taken, exact, strict=True)]
            self._measured[depth] = {"depth": depth, "recall": float(np.mean(shares)), "n": len(taken)}

    @cached_property
    def _searchers(self) -> list[Searches]:
        return [searcher(self._kind, shard) for shard in self._corpus.shards]

    @cached_property
    def _corpus(self) -> _Corpus:
        """Every chunk's vectors, written to disk block by block."""
        try:
            import faiss  # noqa: F401  # before hours of embedding
        except ModuleNotFoundError as error:
            raise MissingExtra("dense retrieval", "dense") from error
        before, total = self._encoder.embedded, len(self._chunks)
        file, owners, windowed = self._file, [], 0
        with progress("embedding chunks", total, quiet=self._quiet) as advance:
            for low in range(0, total, BLOCK):
                made = self._block(low, advance)
                file.append(made.vectors)
                owners.append(made.owners + low)
                windowed += made.windowed
        owner = np.concatenate(owners) if owners else np.empty(0, np.int64)
        slices = shard_slices(total, self._most)
        ends = np.searchsorted(owner, [0, *(chunks.stop for chunks in slices)]).tolist()
        shards = [Shard(file.rows(low, high), owner[low:high] - chunks.start, chunks.start)
                  for (low, high), chunks in zip(pairwise(ends), slices, strict=True)]
        return _Corpus(shards, slices, len(owner), windowed, self._encoder.embedded - before)

    def _block(self, low: int, advance: Advance) -> PassageVectors:
        texts = self._chunks.column("text").slice(low, BLOCK).to_pylist()
        names = self._chunks.column("chunk_id")
        try:
            made = self._encoder.encode_passages(texts, prompt=self._passage_prompt, quiet=True, advance=advance)
        except BadVector as error:
            raise DataError(f"[systems.{self.name}]: chunk '{names[low + error.number]}': {error.why}") from error
        if not np.isfinite(made.vectors).all():
            row = int(made.owners[np.flatnonzero(~np.isfinite(made.vectors).all(axis=1))[0]])
            raise DataError(f"[systems.{self.name}]: chunk '{names[low + row]}': its vector is not finite; look at its "
                            "text, or use another model or dtype")
        return made


def _named(kind: Kind) -> str:
    return "exact" if kind is None else type(kind).__name__.lower()
