"""Small labelled sets, built in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from goldset.formats.sets import Corpus, LabelledSet
from goldset.schemas import from_rows

Maker = Callable[..., LabelledSet]
RunMaker = Callable[..., pa.Table]


def _question(identity: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    return {"question_id": identity, "text": identity, "context": [], "query": identity, "need": None, "scope": "{}",
            "language": "en", "origin": "log", "asked_first": None, "asked_last": None, "times_asked": None, "draws": 1,
            "u": None, "inclusion_prob": None, "traffic_weight": 1.0, "cluster_id": f"c-{identity}",
            "session_cluster": None, "stratum": "all", **extra}


@pytest.fixture
def make_set() -> Maker:
    """Builder: pairs = {question: {span: relevant}}; weights and facets by (question, span)."""

    def build(pairs: Mapping[str, Mapping[str, bool | None]], *, weights: Mapping[tuple[str, str], float] | None = None,
              facets: Mapping[tuple[str, str], str] | None = None,
              questions: Mapping[str, Mapping[str, Any]] | None = None, kind: str = "beir",
              manifest: Mapping[str, Any] | None = None, corpus: Corpus | None = None,
              evidence: Mapping[tuple[str, str], list[dict[str, int]]] | None = None,
              strata: Mapping[tuple[str, str], str] | None = None) -> LabelledSet:
        weight, facet, found, stratum = weights or {}, facets or {}, evidence or {}, strata or {}
        flat = [(q, s, relevant) for q, spans in pairs.items() for s, relevant in spans.items()]
        judgments = from_rows("judgments", [
            {"question_id": q, "span_id": s, "relevant": relevant, "grade": None, "basis": "human",
             "inclusion_prob": 1 / weight.get((q, s), 1.0), "stratum": stratum.get((q, s)), "label_ids": []}
            for q, s, relevant in flat])
        gold = from_rows("gold", [
            {"question_id": q, "span_id": s, "evidence": found.get((q, s), []), "evidence_source": None,
             "facet": facet.get((q, s)), "weight": weight.get((q, s), 1.0), "twin_group": s}
            for q, s, relevant in flat if relevant])
        told = {q: {} for q in pairs} if questions is None else questions
        table = from_rows("questions", [_question(q, extra) for q, extra in told.items()])
        return LabelledSet(name="tiny", version=None, kind=kind, judgments=judgments, gold=gold, questions=table,
                           manifest=dict(manifest or {}), load_corpus=None if corpus is None else lambda: corpus)

    return build


@pytest.fixture
def make_run() -> RunMaker:
    """Builder: lists = {question: [chunk, …]} in rank order."""

    def build(lists: Mapping[str, Sequence[str]], system: str = "s") -> pa.Table:
        return from_rows("run", [
            {"system": system, "family": system, "question_id": q, "rank": rank, "chunk_id": chunk, "score": None}
            for q, chunks in lists.items() for rank, chunk in enumerate(chunks, 1)])

    return build
