"""Small labelled sets and runs, built in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from goldset.formats.sets import Corpus, LabelledSet
from goldset.schemas import from_rows
from goldset.text import content_hash, question_key, twin_key

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


def _corpus(passages: Mapping[str, str]) -> Corpus:
    first: dict[str, str] = {}
    for name in sorted(passages):
        first.setdefault(twin_key(passages[name]), name)
    chunks = [{"chunk_id": name, "doc_id": name, "start": 0, "end": len(text), "text": text, "body_start": 0,
               "offsets": "declared"} for name, text in passages.items()]
    spans = [{"span_id": name, "doc_id": name, "start": 0, "end": len(text), "text": text, "heading": None,
              "doc_sha256": None, "text_hash": content_hash(text), "twin_group": first[twin_key(text)],
              "words": len(text.split()), "offsets": "declared"} for name, text in passages.items()]
    links = [{"chunk_id": name, "span_id": name, "chunk_share": 1.0, "span_share": 1.0} for name in passages]
    return Corpus(from_rows("chunks", chunks), from_rows("spans", spans), from_rows("span_links", links))


def _questions(texts: Mapping[str, str], origins: Mapping[str, str]) -> pa.Table:
    return from_rows("questions", [
        {"question_id": name, "text": text, "context": [], "query": text, "need": None, "scope": "{}",
         "language": "en", "origin": origins.get(name, "unknown"), "asked_first": None, "asked_last": None,
         "times_asked": None, "draws": 1, "u": None, "inclusion_prob": None, "traffic_weight": 1.0,
         "cluster_id": "c" + question_key(text), "session_cluster": None, "stratum": "all"}
        for name, text in texts.items()])


def build_set(gold: Mapping[str, Sequence[str]], *, passages: Mapping[str, str] | None = None,
              questions: Mapping[str, str] | None = None, not_relevant: Sequence[tuple[str, str]] = (),
              unjudged: Sequence[tuple[str, str]] = (), origins: Mapping[str, str] | None = None,
              **facts: Any) -> LabelledSet:
    """question -> gold ids, and what surrounds them -> LabelledSet in which an id is document, chunk and span."""
    pairs = [(question, span, True) for question, spans in gold.items() for span in spans]
    pairs += [(question, span, False) for question, span in not_relevant]
    judged: list[tuple[str, str, bool | None]] = [*pairs, *((question, span, None) for question, span in unjudged)]
    judgments: list[dict[str, Any]] = [
        {"question_id": question, "span_id": span, "relevant": relevant,
         "grade": None if relevant is None else int(relevant), "basis": "imported", "inclusion_prob": 1.0,
         "stratum": None, "label_ids": []} for question, span, relevant in judged]
    rows: list[dict[str, Any]] = [
        {"question_id": question, "span_id": span, "evidence": [], "evidence_source": None, "facet": None,
         "weight": 1.0, "twin_group": span} for question, span, relevant in judged if relevant]
    corpus = None if passages is None else _corpus(passages)
    return LabelledSet(name="small", version=None, kind=facts.pop("kind", "trec"),
                       judgments=from_rows("judgments", judgments), gold=from_rows("gold", rows),
                       questions=None if questions is None else _questions(questions, origins or {}),
                       load_corpus=None if corpus is None else lambda: corpus, **facts)


def build_run(system: str, lists: Mapping[str, Sequence[str]], *, family: str | None = None) -> pa.Table:
    """question -> ranked ids -> table run."""
    return from_rows("run", [
        {"system": system, "family": family or system, "question_id": question, "rank": rank, "chunk_id": chunk,
         "score": None} for question, ids in lists.items() for rank, chunk in enumerate(ids, 1)])


@pytest.fixture
def make_set() -> MakeSet:
    return build_set


@pytest.fixture
def make_run() -> MakeRun:
    return build_run
