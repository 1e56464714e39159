"""Questions with the chunks that answer them, as other tools read it. Every form here is read back by ``formats``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gold:
    """What an export says: questions in order, chunks in order, and (question_id, chunk_id, weight) rows, sorted."""

    questions: Sequence[Mapping[str, Any]]
    chunks: Sequence[Mapping[str, Any]]
    pairs: Sequence[tuple[str, str, float]]

    def by_question(self) -> list[tuple[Mapping[str, Any], list[str], list[str]]]:
        """Questions with gold, the ids of their chunks, and the texts of these."""
        ids: dict[str, list[str]] = {}
        for question, chunk, _ in self.pairs:
            ids.setdefault(question, []).append(chunk)
        texts = {row["chunk_id"]: row["text"] for row in self.chunks}
        return [(row, found, [texts[name] for name in found]) for row in self.questions
                if (found := ids.get(row["question_id"]))]


def _qrels(gold: Gold) -> dict[str, str]:
    """TREC qrels."""
    return {"qrels.txt": "".join(f"{question} 0 {chunk} 1\n" for question, chunk, _ in gold.pairs)}


def _beir(gold: Gold) -> dict[str, str]:
    """A BEIR folder: corpus, queries, qrels."""
    return {
        "beir/corpus.jsonl": _lines(
            {"_id": row["chunk_id"], "title": "", "text": row["text"],
             "metadata": {"doc_id": row["doc_id"], "start": row["start"], "end": row["end"]}} for row in gold.chunks),
        "beir/queries.jsonl": _lines(
            {"_id": row["question_id"], "text": row["query"],
             "metadata": {"draws": row["draws"], "cluster_id": row["cluster_id"]}} for row in gold.questions),
        "beir/qrels/test.tsv": "query-id\tcorpus-id\tscore\n" + "".join(
            f"{question}\t{chunk}\t1\n" for question, chunk, _ in gold.pairs)}


def _jsonl(gold: Gold) -> dict[str, str]:
    """One question a line, with the ids and the texts of its gold."""
    return {"questions.jsonl": _lines(
        {"question_id": row["question_id"], "question": row["query"], "gold_ids": ids, "gold_texts": texts}
        for row, ids, texts in gold.by_question())}


def _csv(gold: Gold) -> dict[str, str]:
    """The same as a table, without the texts; the ids are a JSON list."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["question_id", "question", "gold_ids"])
    table.writerows([row["question_id"], row["query"], json.dumps(ids, ensure_ascii=False)]
                    for row, ids, _ in gold.by_question())
    return {"questions.csv": out.getvalue()}


def _ragas(gold: Gold) -> dict[str, str]:
    """Ragas' SingleTurnSample, one a line."""
    return {"ragas.jsonl": _lines(
        {"user_input": row["query"], "reference_contexts": texts, "reference_context_ids": ids}
        for row, ids, texts in gold.by_question())}


def _llamaindex(gold: Gold) -> dict[str, str]:
    """LlamaIndex' EmbeddingQAFinetuneDataset."""
    found = gold.by_question()
    document = {"queries": {row["question_id"]: row["query"] for row, _, _ in found},
                "corpus": {row["chunk_id"]: row["text"] for row in gold.chunks},
                "relevant_docs": {row["question_id"]: ids for row, ids, _ in found}, "mode": "text"}
    return {"llamaindex.json": json.dumps(document, ensure_ascii=False, indent=1) + "\n"}


def _langsmith(gold: Gold) -> dict[str, str]:
    """LangSmith examples, one a line."""
    return {"langsmith.jsonl": _lines(
        {"inputs": {"question": row["query"], "question_id": row["question_id"]},
         "outputs": {"reference_context_ids": ids, "reference_contexts": texts}}
        for row, ids, texts in gold.by_question())}


WRITERS: dict[str, Callable[[Gold], dict[str, str]]] = {
    "qrels": _qrels, "beir": _beir, "jsonl": _jsonl, "csv": _csv, "ragas": _ragas, "llamaindex": _llamaindex,
    "langsmith": _langsmith,
}
"""Format -> function that gives the text of each of its files."""


def _lines(rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
