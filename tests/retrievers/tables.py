"""Small tables, an encoder that hashes words, and systems whose lists are given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.config import Config
from goldset.encoder import PassageVectors
from goldset.progress import Advance
from goldset.retrievers.base import Answer, tabulate
from goldset.retrievers.scope import KnownChunks, Scopes
from goldset.schemas import from_rows
from goldset.text import content_hash, tokenize

Rows = list[dict[str, Any]]

TEXTS = {
    "c01": "reset the router by holding the red button",
    "c02": "the router blinks red when the line is down",
    "c03": "refunds take five days to reach your account",
    "c04": "the printer prints blank pages after an update",
    "c05": "reset the printer from its menu",
    "c06": "your invoice lists every refund",
}
TENANTS = {
    "d01": {"tenant": "north", "locale": ["en", "de"]},
    "d02": {"tenant": "south", "locale": ["en"]},
    "d03": {"locale": "de"},
}


def chunks_table(texts: dict[str, str] = TEXTS) -> pa.Table:
    return from_rows(
        "chunks",
        [
            {
                "chunk_id": chunk,
                "doc_id": f"d{1 + (int(chunk[1:]) - 1) // 2:02d}",
                "start": None,
                "end": None,
                "text": text,
                "body_start": 0,
                "offsets": "absent",
            }
            for chunk, text in texts.items()
        ],
    )


def documents_table(metadata: dict[str, Any] = TENANTS) -> pa.Table:
    return from_rows(
        "documents",
        [
            {"doc_id": doc, "text": None, "title": None, "url": None, "sha256": None, "metadata": json.dumps(value)}
            for doc, value in metadata.items()
        ],
    )


def questions_table(*asked: str | tuple[str, dict[str, Any]]) -> pa.Table:
    rows: Rows = []
    for number, one in enumerate(asked, 1):
        query, scope = (one, {}) if isinstance(one, str) else one
        rows.append(
            {
                "question_id": f"q{number}",
                "text": query,
                "context": [],
                "query": query,
                "need": None,
                "scope": json.dumps(scope),
                "language": "en",
                "origin": "log",
                "asked_first": None,
                "asked_last": None,
                "times_asked": 1,
                "draws": 1,
                "u": 0.5,
                "inclusion_prob": 1.0,
                "traffic_weight": 1.0,
                "cluster_id": f"q{number}",
                "session_cluster": None,
                "stratum": "all",
            }
        )
    return from_rows("questions", rows)


class HashingEncoder:
    """Bag of hashed words, unit length; windows of eight words. For tests: no model, no file, no cache."""

    def __init__(self) -> None:
        self.identity: dict[str, Any] = {"dtype": "float32", "device": "cpu"}
        self.embedded = 0

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in enumerate(texts):
            for word in tokenize(prompt + text) or ["nothing"]:
                rows[row, int(content_hash(word)[:8], 16) % 64] += 1
        unit: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def encode_passages(
        self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False, advance: Advance | None = None
    ) -> PassageVectors:
        self.embedded += len(texts)
        parts, owners = [], []
        for number, text in enumerate(texts):
            words = text.split()
            for low in range(0, max(len(words), 1), 8):
                parts.append(" ".join(words[low : low + 8]))
                owners.append(number)
        counts = np.bincount(owners, minlength=len(texts))
        return PassageVectors(self.encode(parts, prompt=prompt), np.array(owners), int((counts > 1).sum()))

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        return [len(text.split()) > 8 for text in texts]


def make_config(tmp_path: Path, systems: dict[str, Any]) -> Config:
    return Config.model_validate(
        {
            "base": tmp_path,
            "project": {"name": "t", "workspace": "w"},
            "corpus": {"chunks": "c.jsonl"},
            "questions": {"logs": [{"path": "l.jsonl"}]},
            "systems": systems,
            "judge": {"kind": "replay", "family": "f", "rubric": "r.md", "path": "v.jsonl"},
            "scoring": {"system": next(iter(systems)), "served_k": 5},
        }
    )


def lists(run: pa.Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in run.sort_by([("question_id", "ascending"), ("rank", "ascending")]).to_pylist():
        found.setdefault(row["question_id"], []).append(row["chunk_id"])
    return found


def states(status: pa.Table) -> dict[str, tuple[str, str | None]]:
    return {row["question_id"]: (row["status"], row["detail"]) for row in status.to_pylist()}


KNOWN = KnownChunks([], Scopes(documents_table({}), []))


class Fixed:
    """A system whose lists are given."""

    def __init__(self, name: str, answers: dict[str, Answer]) -> None:
        self.name, self.family, self.answers, self.asked = name, name, answers, 0

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        self.asked = depth
        ids = questions.column("question_id").to_pylist()
        return tabulate(self.name, self.family, ids, [self.answers[question] for question in ids])


def run_file(path: Path, rows: Sequence[tuple[str, str, int, float]]) -> Path:
    path.write_text("".join(f"{q} Q0 {chunk} {rank} {score} tag\n" for q, chunk, rank, score in rows), encoding="utf-8")
    return path
