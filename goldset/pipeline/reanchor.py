"""A published version on changed documents: a report of where its evidence stands now, and a copy on the new text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goldset.config import ChunkerConfig, CorpusConfig
from goldset.errors import DataError, UsageError
from goldset.formats.sets import LabelledSet
from goldset.gold import Anchor, carry_decisions, content_hash_of, counts_of, export_set, reanchor
from goldset.pipeline.chunking import chunk_source, document_source
from goldset.schemas import canonical_hash, conform, from_rows
from goldset.store import staged_folder, write_json

Pair = tuple[str, str]


@dataclass(frozen=True)
class Reanchored:
    """Where every evidence range of a version stands in the documents as they are now."""

    labelled: LabelledSet
    documents: pa.Table
    anchors: list[Anchor]

    @property
    def stale(self) -> list[Pair]:
        """Gold that lost a range, or whose ranges stand in several documents now: somebody must look."""
        found: dict[Pair, set[str | None]] = {}
        for anchor in self.anchors:
            found.setdefault((anchor.question_id, anchor.span_id), set()).add(anchor.new_doc_id)
        return [pair for pair, docs in found.items() if None in docs or len(docs) > 1]

    def as_json(self) -> dict[str, Any]:
        """The document goldset.reanchor/1: counts, and every range that did not stay."""
        return {"schema": "goldset.reanchor/1", "set": self.labelled.label, "counts": counts_of(self.anchors),
                "gold": len(self.labelled.gold), "gold_stale": len(self.stale),
                "ranges": [asdict(anchor) for anchor in self.anchors if anchor.status != "kept"]}

    def text(self) -> str:
        """The answer on a terminal."""
        counts = counts_of(self.anchors)
        lines = [f"{self.labelled.label}: {counts['ranges']} evidence ranges of {len(self.labelled.gold)} gold spans; "
                 f"{counts['kept']} kept, {counts['moved']} moved, {counts['changed']} moved and changed, "
                 f"{counts['stale']} stale"]
        for anchor in self.anchors:
            if anchor.status != "kept" and anchor.similarity != 1.0:
                there = "" if anchor.new_doc_id is None else f" -> {anchor.new_doc_id}[{anchor.new_start}:" \
                    f"{anchor.new_end}], similarity {anchor.similarity:.2f}"
                lines.append(f"  {anchor.question_id} {anchor.doc_id}[{anchor.start}:{anchor.end}]{there}: "
                             f"{anchor.reason}")
        if self.stale:
            lines.append(f"{len(self.stale)} of {len(self.labelled.gold)} gold spans are stale: no system can deliver "
                         "them until somebody finds them again or takes them back")
        return "\n".join(lines)


def reanchor_version(labelled: LabelledSet, path: Path, fields: Mapping[str, str] | None = None) -> Reanchored:
    """A published version and the documents as they are now -> where its evidence stands.

    ``fields`` are the names of their fields, by ours, where they are not those of the version's own documents.
    """
    from goldset.formats.corpora import read_documents

    corpus = labelled.corpus
    if labelled.kind != "published" or corpus is None:
        raise DataError(f"{labelled.label} is no published version (it is {labelled.kind}); only a version knows where "
                        "its gold stands in the documents")
    documents, _ = read_documents(document_source(labelled.manifest, path, fields), path)
    return Reanchored(labelled, documents, reanchor(gold=labelled.gold, spans=corpus.spans, documents=documents))


def write_copy(found: Reanchored, target: Path, *, chunks: Path | None,
               fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Write the version on the new documents into ``target``, which must not exist -> its manifest's ``reanchored``.

    The chunks are read from a file (``fields``: names of its fields), or cut as the version's were. Gold follows its
    evidence; refusals are carried where their text still stands (goldset.gold.carry); what is stale is left out and
    listed.
    """
    from goldset.corpus import build_corpus
    from goldset.formats.corpora import read_chunks
    from goldset.formats.published import read_published
    from goldset.spans import canonical_spans

    if target.exists():
        raise UsageError(f"--to {target}: exists already and is not overwritten; name a new folder")
    manifest = found.labelled.manifest
    config = _corpus_config(manifest, chunks, fields)
    raw = None if config.chunks is None else read_chunks(config.chunks, config.chunks.path)[0]
    built = build_corpus(documents=found.documents, raw_chunks=raw, config=config)
    made = canonical_spans(documents=built.documents, chunks=built.chunks)
    gold, judgments = _moved_gold(found, made.spans)
    judgments += _refusals(found.labelled, made.spans, {(row["question_id"], row["span_id"]) for row in judgments})
    questions = found.labelled.questions
    assert questions is not None, "a published version has its questions"
    tables = {"questions": questions, "spans": made.spans, "span_links": made.links, "chunks": built.chunks,
              "judgments": from_rows("judgments", judgments), "gold": from_rows("gold", gold)}
    lost = len(found.stale)
    about = {"from": found.labelled.label, "from_hash": manifest["content_hash"], "counts": counts_of(found.anchors),
             "stale": [list(pair) for pair in found.stale],
             "judgments_left": len(found.labelled.judgments) - len(judgments),
             "caution": f"re-anchored from {found.labelled.label}: {lost} of {len(found.labelled.gold)} gold spans are "
                        "stale and left out, so recall is over what is left" if lost else None}
    counts = {**manifest["counts"], "judgments": len(judgments), "gold": len(gold),
              "answerable": len({row["question_id"] for row in gold})}
    written = {**manifest, "content_hash": content_hash_of(tables), "reanchored": about, "counts": counts,
               "corpus": {"documents": len(built.documents), "chunks": len(built.chunks), "spans": len(made.spans),
                          "sha": canonical_hash(built.chunks, "chunks")}}
    with staged_folder(target) as folder:
        for name, table in tables.items():
            pq.write_table(conform(table, name), folder / f"{name}.parquet")
        write_json(folder / "manifest.json", written)
        write_json(folder / "reanchor.json", found.as_json())
        export_set(read_published(folder), folder)
    return about


def _corpus_config(manifest: dict[str, Any], chunks: Path | None, fields: Mapping[str, str] | None) -> CorpusConfig:
    if chunks is not None:
        return CorpusConfig(documents=None, chunks=chunk_source(manifest, chunks, fields), chunker=None)
    chunker = (manifest.get("config", {}).get("corpus") or {}).get("chunker")
    if chunker is None:
        raise UsageError("the version was made from a chunk file, so the new documents need theirs: --chunks FILE")
    return CorpusConfig(documents=document_source(manifest, Path("documents")), chunks=None,
                        chunker=ChunkerConfig.model_validate(chunker))


def _moved_gold(found: Reanchored, spans: pa.Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Gold and positive judgments on the new spans; several that meet in one span are one, with all their evidence."""
    stale = set(found.stale)
    pieces: dict[str, list[dict[str, Any]]] = {}
    by_id = {row["span_id"]: row for row in spans.select(
        ["span_id", "doc_id", "start", "end", "twin_group", "text"]).to_pylist()}
    for row in by_id.values():
        pieces.setdefault(row["doc_id"], []).append(row)
    places: dict[Pair, list[Anchor]] = {}
    for anchor in found.anchors:
        places.setdefault((anchor.question_id, anchor.span_id), []).append(anchor)
    judged = {(row["question_id"], row["span_id"]): row for row in found.labelled.judgments.to_pylist()}
    gold: dict[Pair, dict[str, Any]] = {}
    judgments: dict[Pair, dict[str, Any]] = {}
    for row in found.labelled.gold.to_pylist():
        pair = (row["question_id"], row["span_id"])
        if pair in stale:
            continue
        ranges = [(anchor.new_start or 0, anchor.new_end or 0) for anchor in places[pair]]
        piece = _most(pieces.get(places[pair][0].new_doc_id or "", []), ranges)
        if piece is None:
            raise DataError(f"the new chunks leave out the text of '{places[pair][0].new_doc_id}' at "
                            f"{ranges[0][0]}-{ranges[0][1]}, where gold stands; give chunks that hold all text")
        first = by_id[piece["twin_group"]]  # gold stands under the first of its twins, at the same place of the text
        if first is not piece and first["start"] is not None and first["text"] == piece["text"]:
            shift, piece = first["start"] - piece["start"], first
            ranges = [(start + shift, end + shift) for start, end in ranges]
        new = (pair[0], piece["span_id"])
        evidence = [{"start": start, "end": end} for start, end in ranges] if row["evidence"] else []
        before = gold.get(new)
        both = {part["start"]: part for part in [*(before["evidence"] if before else []), *evidence]}
        gold[new] = {**row, "span_id": new[1], "twin_group": piece["twin_group"],
                     "evidence": [both[start] for start in sorted(both)],
                     "evidence_source": row["evidence_source"] or (before or {}).get("evidence_source"),
                     "weight": min(row["weight"], before["weight"] if before else row["weight"])}
        old = judged[pair]
        judgments[new] = {**old, "span_id": new[1], "label_ids": sorted(
            {*old["label_ids"], *(judgments[new]["label_ids"] if new in judgments else ())})}
    return list(gold.values()), list(judgments.values())


def _most(pieces: Iterable[dict[str, Any]], ranges: list[tuple[int, int]]) -> dict[str, Any] | None:
    """The span that holds most of the ranges; None where none holds any."""
    best = max(((sum(max(0, min(row["end"], end) - max(row["start"], start)) for start, end in ranges), row)
                for row in pieces if row["start"] is not None), key=lambda pair: pair[0], default=(0, None))
    return best[1] if best[0] else None


def _refusals(labelled: LabelledSet, spans: pa.Table, taken: set[Pair]) -> list[dict[str, Any]]:
    """Refused pairs whose text still stands, on the new spans; weights are those of the least certain one."""
    corpus = labelled.corpus
    assert corpus is not None
    old = [row for row in labelled.judgments.to_pylist() if row["relevant"] is False]
    decisions = from_rows("decisions", [
        {"question_id": row["question_id"], "span_id": row["span_id"], "relevant": False, "status": "decided",
         "basis": row["basis"], "evidence": [], "evidence_source": None,
         "label_ids": [row["span_id"]]} for row in old])
    where = {row["span_id"]: row for row in corpus.spans.select(["span_id", "doc_id", "start", "end", "text_hash"])
             .to_pylist()}
    by_text: dict[str, list[str]] = {}
    by_document: dict[str, list[dict[str, Any]]] = {}
    for row in spans.select(["span_id", "doc_id", "start", "end", "text_hash", "twin_group"]).to_pylist():
        by_text.setdefault(row["text_hash"], []).append(row["twin_group"])
        if row["start"] is not None:
            by_document.setdefault(row["doc_id"], []).append(row)
    asked: set[Pair] = set()
    for row in old:
        place = where[row["span_id"]]
        near = by_text.get(place["text_hash"]) or [
            new["twin_group"] for new in by_document.get(place["doc_id"], ())
            if place["start"] is not None and new["start"] < place["end"] and place["start"] < new["end"]]
        asked |= {(row["question_id"], span_id) for span_id in near}
    pairs = sorted(asked - taken)
    table = pa.table({"question_id": pa.array([q for q, _ in pairs], pa.string()),
                      "span_id": pa.array([s for _, s in pairs], pa.string())})
    carried = carry_decisions(pairs=table, spans=spans, decisions=decisions, earlier_spans=corpus.spans)
    judged = {(row["question_id"], row["span_id"]): row for row in old}
    made = []
    for row in carried.to_pylist():
        if row["status"] == "open":
            continue
        behind = [judged[row["question_id"], span_id] for span_id in row["label_ids"]]
        least = min(behind, key=lambda one: float(one["inclusion_prob"]))
        made.append({**least, "span_id": row["span_id"],
                     "label_ids": sorted({name for one in behind for name in one["label_ids"]})})
    return made
