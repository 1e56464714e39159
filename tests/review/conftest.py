"""Small hand-made tables for the review tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.schemas import from_rows
from goldset.text import content_hash, count_words, question_id, text_sha256
from tests.review.house import House

T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def questions(*texts: str) -> pa.Table:
    return from_rows("questions", [
        {"question_id": question_id(text), "text": text, "context": [], "query": text, "need": None, "scope": "{}",
         "language": "en", "origin": "log", "asked_first": None, "asked_last": None, "times_asked": 1, "draws": 1,
         "u": 0.5, "inclusion_prob": 1.0, "traffic_weight": 1.0, "cluster_id": text, "session_cluster": None,
         "stratum": "all"} for text in texts])


def documents(**texts: str) -> pa.Table:
    return from_rows("documents", [{"doc_id": doc, "text": text, "title": f"About {doc}", "url": None,
                                    "sha256": text_sha256(text), "metadata": "{}"} for doc, text in texts.items()])


def spans(docs: pa.Table, cuts: Iterable[tuple[str, int, int]], twins: dict[str, str] | None = None) -> pa.Table:
    texts = dict(zip(docs.column("doc_id").to_pylist(), docs.column("text").to_pylist(), strict=True))
    rows = []
    for doc, start, end in cuts:
        text, span = texts[doc][start:end], f"{doc}#{start}-{end}"
        rows.append({"span_id": span, "doc_id": doc, "start": start, "end": end, "text": text, "heading": None,
                     "doc_sha256": text_sha256(texts[doc]), "text_hash": content_hash(text),
                     "twin_group": (twins or {}).get(span, span), "words": count_words(text), "offsets": "verified"})
    return from_rows("spans", rows)


def candidates(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    return from_rows("candidates", [{"question_id": q, "span_id": s, "best_ranks": [{"system": "bm25", "rank": 1}],
                                     "systems": ["bm25"], "families": ["lexical"]} for q, s in pairs])


def verdict(q: str, s: str, relevant: bool | None, score: float | None = None, **other: Any) -> dict[str, Any]:
    return {"question_id": q, "span_id": s, "judge_id": "j", "vote": 1, "attempt": 1,
            "status": "unparsed" if relevant is None else "ok", "relevant": relevant, "score": score,
            "quote": "VERDICTQUOTE", "raw": None, "cache_key": f"{q}{s}", "prompt_hash": "p", "model_asked": None,
            "model_answered": None, "prompt_tokens": None, "completion_tokens": None, "cost": None, "cached": False,
            } | other


def verdicts(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return from_rows("verdicts", list(rows))


def label(item: dict[str, Any] | None, assessor: str, relevant: bool | None, *, n: int = 0,
          **other: Any) -> dict[str, Any]:
    item = item or {"item_id": None, "question_id": "q1", "span_id": "s1"}
    row = {"label_id": f"l{n}-{item['item_id']}-{assessor}", "item_id": item["item_id"],
           "question_id": item["question_id"], "span_id": item["span_id"], "span_text_hash": "h",
           "rubric_version": "1.0", "campaign": "rebuild", "assessor": assessor, "action": "label",
           "relevant": relevant, "reason": "cant_tell" if relevant is None else None,
           "evidence": [{"start": 0, "end": 10}] if relevant else [],
           "evidence_source": "selected" if relevant else None, "supersedes": None, "origin": "page", "note": None,
           "seconds": 8.0, "time": T0 + timedelta(minutes=n)}
    return row | other


def labels(*rows: dict[str, Any]) -> pa.Table:
    return from_rows("labels", list(rows))


class Make:
    """The builders, as one fixture."""

    t0 = T0
    questions = staticmethod(questions)
    documents = staticmethod(documents)
    spans = staticmethod(spans)
    candidates = staticmethod(candidates)
    verdict = staticmethod(verdict)
    verdicts = staticmethod(verdicts)
    label = staticmethod(label)
    labels = staticmethod(labels)


@pytest.fixture
def make() -> Make:
    return Make()


@pytest.fixture
def pool() -> Callable[..., tuple[pa.Table, pa.Table, pa.Table]]:
    """(candidates, verdicts, spans) of n questions with p positives, r rejections and v pairs without a verdict."""

    def build(n: int, *, p: int = 1, r: int = 9, v: int = 0, scores: bool = True,
              ) -> tuple[pa.Table, pa.Table, pa.Table]:
        text = "x" * (10 * (p + r + v))
        docs = documents(d=text)
        cuts = spans(docs, [("d", 10 * i, 10 * i + 10) for i in range(p + r + v)])
        ids = cuts.column("span_id").to_pylist()
        pairs, said = [], []
        for q in range(n):
            for i, span in enumerate(ids):
                pairs.append((f"q{q}", span))
                relevant = True if i < p else False if i < p + r else None
                score = 1 - i / 100 if scores and relevant is not None else None
                said.append(verdict(f"q{q}", span, relevant, score))
        return candidates(pairs), verdicts(said), cuts

    return build


@pytest.fixture
def house(make: Any, tmp_path: Path) -> Iterator[Callable[..., House]]:
    built: list[House] = []

    def build(**options: Any) -> House:
        built.append(House(make, tmp_path, **options))
        return built[-1]

    yield build
    for each in built:
        each.store.close()
