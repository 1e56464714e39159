"""Does gold survive a new chunking? The table of the README, on the collection chunk-spans.

``python tests/benchmarks/survival.py --seed N`` prints it; ``--write`` puts it into the README.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from goldset.config import CorpusConfig, DocumentSource  # noqa: E402
from goldset.corpus import build_corpus  # noqa: E402
from goldset.formats.corpora import read_documents  # noqa: E402
from goldset.formats.sets import Corpus, LabelledSet  # noqa: E402
from goldset.lexical import BM25Index  # noqa: E402
from goldset.metrics import cut_by_words, score, words_served  # noqa: E402
from goldset.schemas import conform, from_rows  # noqa: E402
from goldset.spans import SpanTables, canonical_spans, served  # noqa: E402
from goldset.text import tokenize  # noqa: E402

COLLECTION = ROOT / ".." / "shared" / "collections" / "chunk-spans"
README = ROOT / "README.md"
EVIDENCE = 790
BASE = (512, 200)
"""Words and step of the chunking on which the gold was labelled; it is none of the ten."""
K, BUDGET, DEPTH = 5, 1500, 100


class Evidence(NamedTuple):
    """One range of a document that answers a question."""

    question: str
    doc_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Chunking:
    """A way to cut: windows of words, whole sentences, or windows under parents four times their size."""

    kind: str  # words | sentences | parents
    words: int
    step: int

    @property
    def label(self) -> str:
        """Kind and size, as in the table."""
        overlap = f"{round(100 * (1 - self.step / self.words))} %"
        kind = {"words": "windows", "sentences": "sentence windows", "parents": "windows under parents"}[self.kind]
        return f"{kind} of {self.words} words, overlap {overlap}"


def drawn(seed: int, count: int = 10) -> list[Chunking]:
    """Chunkings from 64 to 1,000 words, overlap 0 to 50 %: one size from each of ``count`` equal steps of the scale.

    Two of them are sentence windows; one is of children that lie under parents four times their size.
    """
    rng = np.random.default_rng(seed)
    edges = np.linspace(math.log(64), math.log(1000), count + 1)
    sizes = [round(math.exp(rng.uniform(low, high))) for low, high in itertools.pairwise(edges)]
    children = int(rng.choice([i for i, size in enumerate(sizes) if size <= 250]))
    others = [i for i in range(count) if i != children]
    sentences = set(rng.choice(others, 2, replace=False).tolist())
    made = []
    for i, size in enumerate(sizes):
        kind = "parents" if i == children else "sentences" if i in sentences else "words"
        made.append(Chunking(kind, size, math.ceil(size * (1 - rng.uniform(0, 0.5)))))
    return made


def load_documents(folder: Path = COLLECTION) -> pa.Table:
    """The five documents."""
    source = DocumentSource.model_validate({"path": "corpus.jsonl", "id": "_id", "title": None})
    return read_documents(source, folder / "corpus.jsonl")[0]


def load_evidence(folder: Path = COLLECTION) -> tuple[list[Evidence], dict[str, str]]:
    """The evidence ranges in the order of the file, and the questions' texts."""
    lines = (folder / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    found = [Evidence(row["query-id"], row["corpus-id"], row["start"], row["end"]) for row in map(json.loads, lines)]
    asked = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return found, {row["_id"]: row["text"] for row in asked}


def cut(documents: pa.Table, chunking: Chunking) -> pa.Table:
    """Documents -> chunks."""
    unit = "sentences" if chunking.kind == "sentences" else "words"
    tables = [_windows(documents, chunking.words, chunking.step, unit)]
    if chunking.kind == "parents":
        parents = _windows(documents, 4 * chunking.words, 4 * chunking.words, unit)
        names = pa.array([f"parent {name}" for name in parents.column("chunk_id").to_pylist()])
        tables.append(parents.set_column(0, parents.schema.field(0), names))
    return conform(pa.concat_tables(tables), "chunks")


def _windows(documents: pa.Table, words: int, step: int, unit: str) -> pa.Table:
    chunker = {"words": words, "step": step, "unit": unit}
    config = CorpusConfig.model_validate({"documents": "corpus.jsonl", "chunker": chunker})
    return build_corpus(documents=documents, raw_chunks=None, config=config).chunks


class Bench:
    """Documents, evidence as gold on the base chunking, and the rules under which a retriever is credited."""

    def __init__(self, documents: pa.Table, evidence: Sequence[Evidence], texts: dict[str, str]) -> None:
        self.documents, self.evidence, self.texts = documents, evidence, texts
        self.base = cut(documents, Chunking("words", *BASE))
        self.spans: SpanTables = canonical_spans(documents=documents, chunks=self.base)
        self._ids = [f"{part.question}#{number}" for number, part in enumerate(evidence)]
        pieces: dict[str, list[dict[str, Any]]] = {}
        for row in self.spans.spans.to_pylist():
            pieces.setdefault(row["doc_id"], []).append(row)
        self._held = [_most(pieces[part.doc_id], part) for part in evidence]
        self.gold = self._gold([(part.start, part.end) for part in evidence])
        self._whole = self._gold([(row["start"], row["end"]) for row in self._held])
        self._old_ids = [{row["chunk_id"] for row in self._holders(self.base, part)} for part in evidence]

    def _gold(self, ranges: list[tuple[int, int]]) -> pa.Table:
        return from_rows("gold", [
            {"question_id": name, "span_id": row["span_id"], "evidence": [{"start": start, "end": end}],
             "evidence_source": "imported", "facet": None, "weight": 1.0, "twin_group": row["twin_group"]}
            for name, row, (start, end) in zip(self._ids, self._held, ranges, strict=True)])

    @staticmethod
    def _holders(chunks: pa.Table, part: Evidence) -> list[dict[str, Any]]:
        return [row for row in _rows(chunks, part.doc_id) if row["start"] <= part.start and part.end <= row["end"]]

    def fewest(self, chunks: pa.Table) -> list[list[dict[str, Any]]]:
        """For each evidence range the fewest chunks that together hold all of its visible text, in order of start."""
        texts = dict(zip(*(self.documents.column(name).to_pylist() for name in ("doc_id", "text")), strict=True))
        found = []
        for part in self.evidence:
            text, at, chosen = texts[part.doc_id], part.start, list[dict[str, Any]]()
            rows = _rows(chunks, part.doc_id)
            while at < part.end:
                if text[at].isspace():
                    at += 1
                    continue
                reach = max((row for row in rows if row["start"] <= at < row["end"]), key=lambda row: row["end"])
                chosen.append(reach)
                at = reach["end"]
            found.append(chosen)
        return found

    def oracle(self, chunks: pa.Table) -> dict[str, float]:
        """Credit of the retriever that returns the fewest chunks holding the evidence, under four rules."""
        lists = self.fewest(chunks)
        run = self._run([[row["chunk_id"] for row in rows] for rows in lists])
        tables = {"run": run, "spans": self.spans.spans, "links": self.spans.links, "chunks": chunks}
        n = len(self.evidence)
        overlaps = [any(_iou(row, part) >= 0.5 for row in rows)
                    for rows, part in zip(lists, self.evidence, strict=True)]
        same = [bool(old & {row["chunk_id"] for row in rows})
                for rows, old in zip(lists, self._old_ids, strict=True)]
        return {"chunks": sum(map(len, lists)) / n,
                "evidence": 1 - served(gold=self.gold, **tables).column("rank").null_count / n,
                "whole": 1 - served(gold=self._whole, **tables).column("rank").null_count / n,
                "iou": sum(overlaps) / n, "id": sum(same) / n}

    def _run(self, lists: Sequence[Sequence[str]], system: str = "oracle") -> pa.Table:
        return from_rows("run", [
            {"system": system, "family": system, "question_id": name, "rank": rank, "chunk_id": chunk, "score": None}
            for name, ids in zip(self._ids, lists, strict=True) for rank, chunk in enumerate(ids, 1)])

    def searched(self, chunks: pa.Table, depth: int = DEPTH) -> dict[str, list[str]]:
        """Question -> what BM25 returns for it."""
        index = BM25Index.build(chunks.column("chunk_id").to_pylist(),
                                [tokenize(text) for text in chunks.column("text").to_pylist()])
        asked = sorted({part.question for part in self.evidence})
        return {name: [chunk for chunk, _ in index.search(tokenize(self.texts[name]), depth)] for name in asked}

    def bm25(self, chunks: pa.Table) -> dict[str, float]:
        """Recall of a fixed BM25 at five chunks and at 1,500 words, with the words that reach the reader."""
        found = self.searched(chunks)
        run = self._run([found[part.question] for part in self.evidence], "bm25")
        labelled = self.labelled()
        measured = {row["k"]: row["value"] for row in score(
            labelled, {"bm25": run}, ks=[K], budget=BUDGET, chunks=chunks).to_pylist() if row["measure"] == "recall"}
        within = cut_by_words(labelled, run, BUDGET, chunks=chunks)
        (at_k,) = words_served(labelled, {"bm25": run}, ks=[K], chunks=chunks)
        (at_budget,) = words_served(labelled, {"bm25": within}, ks=[DEPTH], chunks=chunks)
        return {"recall_k": measured[K], "words_k": at_k["words"], "recall_budget": measured[None],
                "words_budget": at_budget["words"]}

    def labelled(self) -> LabelledSet:
        """Each evidence range as a question with one gold; ranges of one question share a cluster."""
        questions = from_rows("questions", [
            {"question_id": name, "text": self.texts[part.question], "context": [], "query": self.texts[part.question],
             "need": None, "scope": "{}", "language": "en", "origin": "synthetic", "asked_first": None,
             "asked_last": None, "times_asked": None, "draws": 1, "u": None, "inclusion_prob": None,
             "traffic_weight": 1.0, "cluster_id": part.question, "session_cluster": None, "stratum": "all"}
            for name, part in zip(self._ids, self.evidence, strict=True)])
        judgments = from_rows("judgments", [
            {"question_id": row["question_id"], "span_id": row["span_id"], "relevant": True, "grade": None,
             "basis": "imported", "inclusion_prob": 1.0, "stratum": None, "label_ids": []}
            for row in self.gold.to_pylist()])
        corpus = Corpus(self.base, self.spans.spans, self.spans.links)
        return LabelledSet("chunk-spans", None, "published", judgments, self.gold, questions,
                           load_corpus=lambda: corpus)


_CACHE: dict[int, tuple[pa.Table, dict[str, list[dict[str, Any]]]]] = {}


def _rows(chunks: pa.Table, doc_id: str) -> list[dict[str, Any]]:
    """Rows of one document; grouped once a table (the table is kept, so that its id stays its own)."""
    if id(chunks) not in _CACHE:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in chunks.select(["chunk_id", "doc_id", "start", "end"]).to_pylist():
            groups.setdefault(row["doc_id"], []).append(row)
        _CACHE[id(chunks)] = chunks, groups
    return _CACHE[id(chunks)][1].get(doc_id, [])


def _most(rows: list[dict[str, Any]], part: Evidence) -> dict[str, Any]:
    return max(rows, key=lambda row: _shared(row, part))


def _shared(row: dict[str, Any], part: Evidence) -> int:
    return int(max(0, min(row["end"], part.end) - max(row["start"], part.start)))


def _iou(row: dict[str, Any], part: Evidence) -> float:
    shared = _shared(row, part)
    return shared / (int(row["end"]) - int(row["start"]) + part.end - part.start - shared)


def table(bench: Bench, chunkings: Sequence[Chunking]) -> tuple[str, list[dict[str, Any]]]:
    """The table in Markdown, and its numbers."""
    rows = []
    lines = ["| chunking | chunks | needed | by evidence | whole span | IoU ≥ 0.5 | chunk id | BM25 at 5 (words) "
             "| BM25 at 1,500 words (words) |", "|---|---|---|---|---|---|---|---|---|"]
    for chunking in chunkings:
        chunks = cut(bench.documents, chunking)
        row: dict[str, Any] = {"label": chunking.label, "n": len(chunks), **bench.oracle(chunks),
                               **bench.bm25(chunks)}
        rows.append(row)
        lines.append("| {label} | {n:,} | {chunks:.2f} | {evidence:.2f} | {whole:.2f} | {iou:.2f} | {id:.2f} "
                     "| {recall_k:.2f} ({words_k:,.0f}) | {recall_budget:.2f} ({words_budget:,.0f}) |".format(**row))
    return "\n".join(lines), rows


def block(seed: int) -> str:
    """What stands in the README."""
    bench = Bench(load_documents(), *load_evidence())
    if len(bench.evidence) != EVIDENCE:
        raise SystemExit(f"{len(bench.evidence)} evidence ranges, not {EVIDENCE}: the collection is not whole")
    text, _ = table(bench, drawn(seed))
    return f"{text}\n\nN = {EVIDENCE} evidence ranges; `python tests/benchmarks/survival.py --seed {seed} --write`\n"


def print_or_write(name: str, about: str | None, make: Callable[[int], str]) -> int:
    """The command line of a table by seed: print it, or write it into the README's block ``name``."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    made = make(options.seed)
    print(made)
    if options.write:
        marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        readme = README.read_text(encoding="utf-8")
        if not marked.search(readme):
            raise SystemExit(f"README.md has no block <!-- generated: {name} -->")
        README.write_text(marked.sub(lambda match: f"{match[1]}{made}{match[2]}", readme), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(print_or_write("survival", __doc__, block))
