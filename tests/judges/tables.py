"""Small tables for the judges' tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from goldset.schemas import from_rows
from goldset.text import content_hash, count_words


def question_row(question_id: str, text: str, **over: Any) -> dict[str, Any]:
    return {"question_id": question_id, "text": text, "context": [], "query": text, "need": None, "scope": "{}",
            "language": "en", "origin": "log", "asked_first": None, "asked_last": None, "times_asked": None,
            "draws": 1, "u": None, "inclusion_prob": None, "traffic_weight": 1.0, "cluster_id": question_id,
            "session_cluster": None, "stratum": "all", **over}


def span_row(span_id: str, text: str, **over: Any) -> dict[str, Any]:
    return {"span_id": span_id, "doc_id": span_id, "start": 0, "end": len(text), "text": text, "heading": None,
            "doc_sha256": None, "text_hash": content_hash(text), "twin_group": span_id, "words": count_words(text),
            "offsets": "verified", **over}


def candidate_row(question_id: str, span_id: str, *systems: str) -> dict[str, Any]:
    return {"question_id": question_id, "span_id": span_id,
            "best_ranks": [{"system": name, "rank": 1} for name in systems], "systems": list(systems),
            "families": list(systems)}


def tables(pairs: int) -> tuple[pa.Table, pa.Table, pa.Table]:
    """(candidates, questions, spans): one question, ``pairs`` spans with different texts."""
    spans = [span_row(f"s{number:03d}", f"Passage number {number} about fuses.") for number in range(pairs)]
    return (from_rows("candidates", [candidate_row("q1", row["span_id"], "bm25") for row in spans]),
            from_rows("questions", [question_row("q1", "Which fuse fits?")]), from_rows("spans", spans))
