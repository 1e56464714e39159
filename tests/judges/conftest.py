"""Small tables for the judges' tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.judges.base import Pair
from goldset.schemas import from_rows
from goldset.text import content_hash, count_words

sys.path.insert(0, str(Path(__file__).parent))  # stub_server, which the subprocess of the kill test imports too


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


@pytest.fixture
def pair() -> Pair:
    return Pair(question_id="q1", span_id="s1", question="Which fuse fits?", passage="The fuse is rated 10 A.",
                turns=(("user", "I have a toaster."), ("assistant", "Which model?")), need="rating of the fuse",
                heading="Manual > Fuses", before="Open the lid.", after="Close the lid.")
