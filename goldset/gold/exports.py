"""A published version for other tools: TREC qrels, weights, a BEIR folder. One rule projects gold onto chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.formats.sets import Corpus, LabelledSet
from goldset.schemas import SCHEMAS, from_rows
from goldset.spans import served
from goldset.store import write_text

RULE = ("a chunk is relevant if it alone delivers the evidence (every sentence covered at least 0.9); where no single "
        "chunk does, the chunk that holds most of the gold span")


def project(*, gold: pa.Table, corpus: Corpus) -> list[tuple[str, str, float]]:
    """Gold -> (question_id, chunk_id, weight), sorted; the rule is RULE. Twins of a gold span count."""
    spans = corpus.spans
    group = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    linked: dict[str, list[tuple[float, str]]] = {}
    for row in corpus.links.to_pylist():
        linked.setdefault(group[row["span_id"]], []).append((row["span_share"], row["chunk_id"]))
    pairs: list[tuple[str, str, str, float, float]] = []
    trials: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for row in gold.to_pylist():
        for share, chunk_id in sorted(linked.get(row["twin_group"], []), reverse=True):
            trial = f"{len(trials)}"
            pairs.append((row["question_id"], row["span_id"], chunk_id, share, row["weight"]))
            trials.append({**row, "question_id": trial})
            run.append({"system": "projection", "family": "projection", "question_id": trial, "rank": 1,
                        "chunk_id": chunk_id, "score": None})
    if not trials:
        return []
    found = served(gold=from_rows("gold", trials), run=from_rows("run", run), spans=spans, links=corpus.links,
                   chunks=corpus.chunks)
    alone = {row["question_id"] for row in found.to_pylist() if row["rank"] is not None}
    best: dict[tuple[str, str], tuple[float, str]] = {}
    chosen: dict[tuple[str, str], float] = {}
    for number, (question, span, chunk_id, share, weight) in enumerate(pairs):
        best[question, span] = max(best.get((question, span), (-1.0, "")), (share, chunk_id))
        if str(number) in alone:
            chosen[question, chunk_id] = max(weight, chosen.get((question, chunk_id), 0.0))
    covered = {(question, span) for number, (question, span, *_) in enumerate(pairs) if str(number) in alone}
    for row in gold.to_pylist():
        key = (row["question_id"], row["span_id"])
        if key in best and key not in covered:
            chosen.setdefault((key[0], best[key][1]), row["weight"])
    return sorted((question, chunk, weight) for (question, chunk), weight in chosen.items())


def export_set(labelled: LabelledSet, folder: Path) -> dict[str, Any]:
    """Write qrels.txt, weights.tsv and beir/ into ``folder`` -> counts, with the line that reconciles the numbers."""
    corpus = labelled.corpus
    assert corpus is not None, "a published version carries its corpus"
    rows = project(gold=labelled.gold, corpus=corpus)
    sampled = sum(weight > 1 for _, _, weight in rows)
    write_text(folder / "qrels.txt", "".join(f"{question} 0 {chunk} 1\n" for question, chunk, _ in rows))
    write_text(folder / "weights.tsv", "question_id\tchunk_id\tweight\n"
               + "".join(f"{question}\t{chunk}\t{weight:.6g}\n" for question, chunk, weight in rows))
    beir = folder / "beir"
    write_text(beir / "corpus.jsonl", "".join(
        _line({"_id": row["chunk_id"], "title": "", "text": row["text"],
               "metadata": {"doc_id": row["doc_id"], "start": row["start"], "end": row["end"]}})
        for row in corpus.chunks.to_pylist()))
    asked = labelled.questions if labelled.questions is not None else SCHEMAS["questions"].empty_table()
    write_text(beir / "queries.jsonl", "".join(
        _line({"_id": row["question_id"], "text": row["query"],
               "metadata": {"draws": row["draws"], "cluster_id": row["cluster_id"]}}) for row in asked.to_pylist()))
    write_text(beir / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n"
               + "".join(f"{question}\t{chunk}\t1\n" for question, chunk, _ in rows))
    sidecar = {"rule": RULE, "pairs": len(rows), "from_rejection_sample": sampled, "gold": len(labelled.gold),
               "reconcile": "plain recall over qrels.txt counts chunks, each with weight 1, and averages over distinct "
                            f"questions; ours counts gold by evidence and questions by their draws; {sampled} pairs "
                            "come from the rejection sample and stand for more than one (weights.tsv)"}
    write_text(folder / "export.json", json.dumps(sidecar, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return sidecar


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n"
