"""A labelled set from anywhere -> LabelledSet: a published version, a BEIR folder, or TREC qrels with their texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.errors import DataError, UsageError


@dataclass(frozen=True)
class Corpus:
    """Texts behind a set: tables chunks, spans, span_links. In BEIR and TREC each id is document, chunk and span."""

    chunks: pa.Table
    spans: pa.Table
    links: pa.Table


@dataclass(frozen=True)
class Note:
    """Something the reader saw and the integrity check reports: kind, how often, where first."""

    kind: str
    count: int
    where: str
    example: str = ""


@dataclass(frozen=True)
class LabelledSet:
    """Questions and the passages that answer them, wherever they come from.

    ``judgments`` holds every judged pair, ``gold`` the relevant ones; ``load_corpus`` reads the texts on demand
    (None where the set has none), ``load_ids`` only the ids of the passages.
    """

    name: str
    version: str | None
    kind: str  # published | beir | trec
    judgments: pa.Table
    gold: pa.Table
    questions: pa.Table | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    relevant_from: int | None = None
    load_corpus: Callable[[], Corpus] | None = None
    load_ids: Callable[[], pa.Array] | None = None

    @cached_property
    def corpus(self) -> Corpus | None:
        """The texts, read once, or None."""
        return self.load_corpus() if self.load_corpus else None

    @cached_property
    def passage_ids(self) -> pa.Array | None:
        """Ids of all passages, read without their texts where that is quicker, or None."""
        if self.load_ids is not None:
            return self.load_ids()
        return None if self.corpus is None else self.corpus.spans.column("span_id").combine_chunks()

    @property
    def label(self) -> str:
        """``name/version`` for outputs."""
        return f"{self.name}/{self.version}" if self.version else self.name


def load_set(path: Path | None, *, qrels: Path | None = None, questions: Path | None = None,
             corpus: Path | None = None, relevant_from: int | None = None) -> LabelledSet:
    """A labelled set from wherever it lies -> LabelledSet.

    Args:
        path: a published version, a BEIR folder (corpus.jsonl, queries.jsonl, qrels/*.tsv) or a qrels file.
        qrels: judgments in a file of their own; in a BEIR folder, instead of its qrels/test.tsv.
        questions: texts of the questions (JSONL or TSV).
        corpus: texts of the passages (JSONL).
        relevant_from: smallest grade that counts as relevant; needed where grades go above 1.

    Raises:
        UsageError: neither ``path`` nor ``qrels``, or files beside a published version, which has its own.
        DataError: a file that cannot be read; a folder that is neither kind.
    """
    from goldset.formats.beir import find_file, find_qrels, is_beir, read_foreign
    from goldset.formats.published import is_published, read_published, versions_in

    if path is None and qrels is None:
        raise UsageError("no labelled set; name a published version, a BEIR folder, or --qrels FILE")
    if path is not None and path.is_dir():
        if is_published(path):
            if qrels or questions or corpus or relevant_from is not None:
                raise UsageError(f"{path} is a published version and brings its own judgments, texts and threshold; "
                                 "leave out --qrels, --questions, --corpus and --relevant-from")
            return read_published(path)
        if versions := versions_in(path):
            raise DataError(f"{path}: holds the versions {', '.join(versions)}; name one, "
                            f"e.g. {path / versions[-1]}")
        if not is_beir(path) and qrels is None:
            raise DataError(f"{path}: neither a published version (manifest.json) nor a BEIR folder (qrels/); "
                            "name one of them, or --qrels FILE")
        return read_foreign(qrels or find_qrels(path), questions=questions or find_file(path, "queries.jsonl"),
                            corpus=corpus or find_file(path, "corpus.jsonl"), name=path.resolve().name, kind="beir",
                            relevant_from=relevant_from)
    if path is not None and qrels is not None:
        raise UsageError(f"{path} and --qrels {qrels}: name one set of judgments")
    file = qrels or path
    assert file is not None, "one of the two is there"
    name = file.name.removesuffix(".gz").rsplit(".", 1)[0]
    return read_foreign(file, questions=questions, corpus=corpus, name=name, kind="trec", relevant_from=relevant_from)
