"""A published version for other tools: gold on chunks by one rule, in the forms that goldset.formats.writers knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.formats.sets import Corpus, LabelledSet
from goldset.formats.writers import WRITERS, Gold
from goldset.schemas import SCHEMAS, canonical_hash, from_rows
from goldset.spans import served
from goldset.store import write_text

FORMATS = ("qrels", "beir")
"""What a published version carries, and an export writes by default."""
RULE = ("a chunk is relevant if it alone delivers the evidence (every sentence covered at least 0.9); where no single "
        "chunk does, the chunk that holds most of the evidence, and of the gold span where two hold as much of it")


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
    best: dict[tuple[str, str], tuple[int, float, str]] = {}
    chosen: dict[tuple[str, str], float] = {}
    for number, (question, _, chunk_id, _, weight) in enumerate(pairs):
        if str(number) in alone:
            # What one certain gold makes relevant is certain, whatever else it holds.
            chosen[question, chunk_id] = min(weight, chosen.get((question, chunk_id), weight))
    covered = {(question, span) for number, (question, span, *_) in enumerate(pairs) if str(number) in alone}
    held = _Evidence(gold, spans, corpus.chunks if own else chunks)
    for question, span, chunk_id, share, _ in pairs:
        if (question, span) not in covered:
            most = (held.ink(question, span, chunk_id), share, chunk_id)
            best[question, span] = max(best.get((question, span), (-1, 0.0, "")), most)
    for row in gold.to_pylist():
        key = (row["question_id"], row["span_id"])
        if key in best:
            pair = (key[0], best[key][2])
            chosen[pair] = min(row["weight"], chosen.get(pair, row["weight"]))
    return Projection(sorted((question, chunk, weight) for (question, chunk), weight in chosen.items()), len(covered),
                      len(best), len(gold) - len(covered) - len(best))


class _Evidence:
    """How much of a gold's evidence a chunk holds, in its own document and where its text stands again."""

    def __init__(self, gold: pa.Table, spans: pa.Table, chunks: pa.Table) -> None:
        self._evidence = {(row["question_id"], row["span_id"]): row for row in gold.to_pylist()}
        near = spans.filter(pc.is_in(spans.column("twin_group"), value_set=pc.unique(gold.column("twin_group"))))
        names = ["span_id", "doc_id", "start", "text", "twin_group"]
        self._spans = {row["span_id"]: row for row in near.select(names).to_pylist() if row["start"] is not None}
        self._groups: dict[str, list[dict[str, Any]]] = {}
        for row in self._spans.values():
            self._groups.setdefault(row["twin_group"], []).append(row)
        names = ["chunk_id", "doc_id", "start", "end"]
        self._chunks = {row["chunk_id"]: row for row in chunks.select(names).to_pylist()}

    def ink(self, question: str, span_id: str, chunk_id: str) -> int:
        """Visible code points of the evidence; 0 where none is known."""
        row, span, chunk = self._evidence[question, span_id], self._spans.get(span_id), self._chunks[chunk_id]
        if span is None or chunk["start"] is None:
            return 0
        found = 0
        for twin in self._groups[span["twin_group"]]:
            if twin["doc_id"] != chunk["doc_id"] or twin["text"] != span["text"]:
                continue
            shift = span["start"] - twin["start"]  # from the chunk's document to that of the gold
            for part in row["evidence"]:
                low = max(part["start"], chunk["start"] + shift) - span["start"]
                high = min(part["end"], chunk["end"] + shift) - span["start"]
                found += len("".join(span["text"][max(low, 0) : max(high, 0)].split()))
        return found


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
               chunking: str = "the version's own chunks", formats: Sequence[str] = (),
               reconciled: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write the files of each format, weights.tsv and export.json into ``folder`` -> what export.json says.

    Args:
        labelled: a published version.
        folder: where to write.
        chunks: another chunking of the version's documents; default: its own.
        chunking: what the chunks are called in export.json.
        formats: names in ``goldset.formats.writers.WRITERS``; none: qrels and beir.
        reconciled: system -> from plain recall to ours, for export.json.
    """
    corpus = labelled.corpus
    assert corpus is not None, "a published version carries its corpus"
    projected = project(gold=labelled.gold, corpus=corpus, chunks=chunks)
    rows, formats = projected.rows, formats or FORMATS
    indexed = corpus.chunks if chunks is None else chunks
    sampled = sum(weight > 1 for _, _, weight in rows)
    asked = labelled.questions if labelled.questions is not None else SCHEMAS["questions"].empty_table()
    said = Gold(asked.to_pylist(), indexed.to_pylist(), rows)
    for name in formats:
        for file, text in WRITERS[name](said).items():
            write_text(folder / file, text)
    write_text(folder / "weights.tsv", "question_id\tchunk_id\tweight\n"
               + "".join(f"{question}\t{chunk}\t{weight:.6g}\n" for question, chunk, weight in rows))
    sidecar = {"rule": RULE, "formats": list(formats), "set": labelled.label,
               "content_hash": labelled.manifest.get("content_hash"),
               "chunking": {"name": chunking, "chunks": len(indexed), "sha": canonical_hash(indexed, "chunks")},
               "pairs": len(rows), "from_rejection_sample": sampled, "gold": len(labelled.gold),
               "gold_in_one_chunk": projected.alone, "gold_in_several_chunks": projected.together,
               "gold_in_no_chunk": projected.nowhere, "reconcile": _reconcile(labelled, projected, sampled),
               **({"reconciled": dict(reconciled)} if reconciled else {})}
    write_text(folder / "export.json", json.dumps(sidecar, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return sidecar


def _reconcile(labelled: LabelledSet, projected: Projection, sampled: int) -> str:
    gold, pairs = len(labelled.gold), len(projected.rows)
    return (f"plain recall over these files counts {pairs} pairs of question and chunk, each with weight 1, and "
            f"averages over distinct questions; ours counts {gold} gold spans by evidence and questions by their "
            f"draws; {projected.alone} of them lie whole in a chunk, {projected.together} are delivered by several "
            f"chunks together and stand under the one that holds most, {projected.nowhere} are in no chunk; {sampled} "
            "pairs come from a sample and stand for more than one (weights.tsv): recall leaves them out, recall_micro "
            "weighs them; 'goldset export --run NAME=FILE --k N' takes each of these steps with numbers")

