"""A labelled set from anywhere -> LabelledSet: a published version, a BEIR folder, or TREC qrels with their texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa


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
    (None where the set has none).
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

    @cached_property
    def corpus(self) -> Corpus | None:
        """The texts, read once, or None."""
        return self.load_corpus() if self.load_corpus else None

    @property
    def label(self) -> str:
        """``name/version`` for outputs."""
        return f"{self.name}/{self.version}" if self.version else self.name
