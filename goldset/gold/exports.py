"""A published version for other tools: TREC qrels, weights, a BEIR folder. One rule projects gold onto chunks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.formats.sets import Corpus, LabelledSet
from goldset.schemas import SCHEMAS, canonical_hash, from_rows
from goldset.spans import served
from goldset.store import write_text

RULE = ("a chunk is relevant if it alone delivers the evidence (every sentence covered at least 0.9); where no single "
        "chunk does, the chunk that holds most of the gold span")


@dataclass(frozen=True)
class Projection:
    """Gold on chunks: (question_id, chunk_id, weight), sorted; how many golds one chunk delivers, several, or none."""

    rows: list[tuple[str, str, float]]
    alone: int
    together: int
    nowhere: int


def project(*, gold: pa.Table, corpus: Corpus, chunks: pa.Table | None = None) -> Projection:
    """Gold -> the chunks that stand for it; the rule is RULE. Twins of a gold span count.

    Args:
        gold: table ``gold``.
        corpus: the version's own chunks, spans and links.
        chunks: another chunking of the same documents; default: the version's own.
    """
    spans = corpus.spans
    own = chunks is None or chunks is corpus.chunks
    linked = _linked(corpus) if own else _overlapping(gold, spans, chunks)
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
        return Projection([], 0, 0, len(gold))
    found = served(gold=from_rows("gold", trials), run=from_rows("run", run), spans=spans, links=corpus.links,
                   chunks=corpus.chunks if own else chunks)
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
    return Projection(sorted((question, chunk, weight) for (question, chunk), weight in chosen.items()), len(covered),
                      len(set(best) - covered), len(gold) - len(best))


def _linked(corpus: Corpus) -> dict[str, list[tuple[float, str]]]:
    """Twin group -> (share of the span, chunk) by the version's own links."""
    spans = corpus.spans
    group = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    linked: dict[str, list[tuple[float, str]]] = {}
    for row in corpus.links.to_pylist():
        linked.setdefault(group[row["span_id"]], []).append((row["span_share"], row["chunk_id"]))
    return linked


def _overlapping(gold: pa.Table, spans: pa.Table, chunks: pa.Table) -> dict[str, list[tuple[float, str]]]:
    """Twin group of each gold -> (share of the span's visible text, chunk) for chunks of another chunking."""
    wanted = pc.unique(gold.column("twin_group"))
    near = spans.filter(pc.is_in(spans.column("twin_group"), value_set=wanted))
    by_document: dict[str, list[tuple[int, int, str]]] = {}
    for row in chunks.select(["chunk_id", "doc_id", "start", "end"]).to_pylist():
        if row["start"] is not None:
            by_document.setdefault(row["doc_id"], []).append((row["start"], row["end"], row["chunk_id"]))
    linked: dict[str, list[tuple[float, str]]] = {}
    for row in near.select(["doc_id", "start", "end", "text", "twin_group"]).to_pylist():
        for start, end, chunk_id in by_document.get(row["doc_id"], ()) if row["start"] is not None else ():
            low, high = max(start, row["start"]), min(end, row["end"])
            shared = "".join(row["text"][max(low - row["start"], 0) : max(high - row["start"], 0)].split())
            if shared:
                share = len(shared) / len("".join(row["text"].split()))
                linked.setdefault(row["twin_group"], []).append((share, chunk_id))
    return linked


def export_set(labelled: LabelledSet, folder: Path, *, chunks: pa.Table | None = None,
               chunking: str = "the version's own chunks") -> dict[str, Any]:
    """Write qrels.txt, weights.tsv, beir/ and export.json into ``folder`` -> what export.json says.

    Args:
        labelled: a published version.
        folder: where to write.
        chunks: another chunking of the version's documents; default: its own.
        chunking: what the chunks are called in export.json.
    """
    corpus = labelled.corpus
    assert corpus is not None, "a published version carries its corpus"
    projected = project(gold=labelled.gold, corpus=corpus, chunks=chunks)
    rows = projected.rows
    indexed = corpus.chunks if chunks is None else chunks
    sampled = sum(weight > 1 for _, _, weight in rows)
    write_text(folder / "qrels.txt", "".join(f"{question} 0 {chunk} 1\n" for question, chunk, _ in rows))
    write_text(folder / "weights.tsv", "question_id\tchunk_id\tweight\n"
               + "".join(f"{question}\t{chunk}\t{weight:.6g}\n" for question, chunk, weight in rows))
    beir = folder / "beir"
    write_text(beir / "corpus.jsonl", "".join(
        _line({"_id": row["chunk_id"], "title": "", "text": row["text"],
               "metadata": {"doc_id": row["doc_id"], "start": row["start"], "end": row["end"]}})
        for row in indexed.to_pylist()))
    asked = labelled.questions if labelled.questions is not None else SCHEMAS["questions"].empty_table()
    write_text(beir / "queries.jsonl", "".join(
        _line({"_id": row["question_id"], "text": row["query"],
               "metadata": {"draws": row["draws"], "cluster_id": row["cluster_id"]}}) for row in asked.to_pylist()))
    write_text(beir / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n"
               + "".join(f"{question}\t{chunk}\t1\n" for question, chunk, _ in rows))
    sidecar = {"rule": RULE, "set": labelled.label, "content_hash": labelled.manifest.get("content_hash"),
               "chunking": {"name": chunking, "chunks": len(indexed), "sha": canonical_hash(indexed, "chunks")},
               "pairs": len(rows), "from_rejection_sample": sampled, "gold": len(labelled.gold),
               "gold_in_one_chunk": projected.alone, "gold_in_several_chunks": projected.together,
               "gold_in_no_chunk": projected.nowhere, "reconcile": _reconcile(labelled, projected, sampled)}
    write_text(folder / "export.json", json.dumps(sidecar, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return sidecar


def _reconcile(labelled: LabelledSet, projected: Projection, sampled: int) -> str:
    gold, pairs = len(labelled.gold), len(projected.rows)
    return (f"plain recall over qrels.txt counts {pairs} pairs of question and chunk, each with weight 1, and averages "
            f"over distinct questions; ours counts {gold} gold spans by evidence and questions by their draws; "
            f"{projected.alone} of them lie whole in a chunk, {projected.together} are delivered by several "
            f"chunks together and stand under the one that holds most, {projected.nowhere} are in no chunk; {sampled} "
            "pairs come from a sample and stand for more than one (weights.tsv)")


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n"
