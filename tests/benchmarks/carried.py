"""How much is asked again when the chunking changes? Labels under each of ten chunkings answer each of the others.

``python tests/benchmarks/carried.py --seed N`` prints it; ``--write`` puts it into the README. The recorded reader has
read the ten best chunks of BM25 and every span with evidence, and says yes to a span that holds a whole sentence of the
evidence.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from goldset.gold import carry_decisions  # noqa: E402
from goldset.schemas import from_rows  # noqa: E402
from goldset.spans import canonical_spans, main_span, sentences  # noqa: E402
from tests.benchmarks.survival import (  # noqa: E402
    EVIDENCE,
    Bench,
    Chunking,
    cut,
    drawn,
    load_documents,
    load_evidence,
    print_or_write,
)

READ = 10
LEAST = 20


@dataclass(frozen=True)
class Labelled:
    """Everything that the recorded reader said under one chunking."""

    label: str
    spans: pa.Table
    decisions: pa.Table
    truth: dict[tuple[str, str], bool]


class Reader:
    """Knows the sentences that answer each question, and says yes to them wherever they stand.

    The collection marks one place of each answer, but its reports repeat whole passages: a reader who says yes to a
    passage says so to its copy. Fragments shorter than LEAST are nothing that a reader would select.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        texts = dict(zip(*(bench.documents.column(name).to_pylist() for name in ("doc_id", "text")), strict=True))
        found = {doc_id: sentences(text) for doc_id, text in texts.items()}
        quotes: dict[str, set[str]] = {}
        for part in bench.evidence:
            near = found[part.doc_id]
            first = bisect_right([end for _, end in near], part.start)
            last = bisect_left([start for start, _ in near], part.end)
            quotes.setdefault(part.question, set()).update(
                texts[part.doc_id][max(start, part.start) : min(end, part.end)] for start, end in near[first:last])
        self.places: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for question, wanted in quotes.items():
            for quote in wanted:
                for doc_id, text in texts.items() if len(quote) >= LEAST else ():
                    self.places.setdefault((question, doc_id), []).extend(
                        (match.start(), match.end()) for match in re.finditer(re.escape(quote), text))

    def inside(self, question: str, row: dict[str, Any]) -> list[tuple[int, int]]:
        """Sentences that answer and lie whole in a span."""
        return [place for place in self.places.get((question, row["doc_id"]), ())
                if row["start"] <= place[0] and place[1] <= row["end"]]

    def read(self, chunking: Chunking) -> Labelled:
        """Label the pool of one chunking."""
        chunks = cut(self._bench.documents, chunking)
        made = canonical_spans(documents=self._bench.documents, chunks=chunks)
        rows = {row["span_id"]: row for row in made.spans.to_pylist()}
        group = {span_id: row["twin_group"] for span_id, row in rows.items()}
        main = main_span(made.links)
        pairs = {(question, group[main[chunk]]) for question, found in self._bench.searched(chunks, READ).items()
                 for chunk in found}
        for question, doc_id in self.places:
            pairs |= {(question, row["twin_group"]) for row in rows.values()
                      if row["doc_id"] == doc_id and self.inside(question, row)}
        truth, said = {}, []
        for question, span_id in sorted(pairs):
            evidence = self.inside(question, rows[span_id])
            truth[question, span_id] = bool(evidence)
            said.append({"question_id": question, "span_id": span_id, "relevant": bool(evidence), "status": "decided",
                         "basis": "human", "evidence": [{"start": low, "end": high} for low, high in evidence],
                         "evidence_source": "selected" if evidence else None, "label_ids": [f"{question} {span_id}"]})
        return Labelled(chunking.label, made.spans, from_rows("decisions", said), truth)


@dataclass
class Counts:
    """Pairs asked under one chunking, and what the labels of another answer."""

    pairs: int = 0
    yes: int = 0
    no: int = 0
    wrong: int = 0

    @property
    def asked(self) -> float:
        """Share that people are asked again."""
        return 1 - (self.yes + self.no) / self.pairs


def carried(earlier: Labelled, now: Labelled, reader: Reader) -> Counts:
    """Answer the pairs of one chunking from the labels of another, and compare with the reader."""
    counts = Counts()
    rows = {row["span_id"]: row for row in now.spans.select(["span_id", "doc_id", "start", "end"]).to_pylist()}
    found = carry_decisions(pairs=now.decisions, spans=now.spans, decisions=earlier.decisions,
                            earlier_spans=earlier.spans)
    for row in found.to_pylist():
        counts.pairs += 1
        if row["status"] == "open":
            continue
        counts.yes += row["relevant"]
        counts.no += not row["relevant"]
        right = reader.inside(row["question_id"], rows[row["span_id"]])
        said = [(part["start"], part["end"]) for part in row["evidence"]]
        counts.wrong += row["relevant"] is not now.truth[row["question_id"], row["span_id"]]
        counts.wrong += not set(said) <= set(right)
    return counts


def matrix(bench: Bench, chunkings: Sequence[Chunking]) -> list[tuple[str, str, Counts]]:
    """Every ordered pair of different chunkings."""
    reader = Reader(bench)
    read = [reader.read(chunking) for chunking in chunkings]
    return [(one.label, other.label, carried(one, other, reader)) for one in read for other in read
            if one is not other]


def block(seed: int) -> str:
    """What stands in the README."""
    bench = Bench(load_documents(), *load_evidence())
    if len(bench.evidence) != EVIDENCE:
        raise SystemExit(f"{len(bench.evidence)} evidence ranges, not {EVIDENCE}: the collection is not whole")
    found = matrix(bench, drawn(seed))
    lines = ["| labelled on | pairs under the others | answered yes | answered no | wrong "
             "| asked again (least to most) |", "|---|---|---|---|---|---|"]
    for label in dict.fromkeys(one for one, _, _ in found):
        mine = [counts for one, _, counts in found if one == label]
        pairs, shares = sum(counts.pairs for counts in mine), [counts.asked for counts in mine]
        again = sum(counts.pairs * counts.asked for counts in mine) / pairs
        lines.append(f"| {label} | {pairs:,} | {sum(c.yes for c in mine):,} | {sum(c.no for c in mine):,} "
                     f"| {sum(c.wrong for c in mine)} | {again:.0%} ({min(shares):.0%} to {max(shares):.0%}) |")
    return "\n".join(lines) + (f"\n\nN = {len(found)} ordered pairs of chunkings; "
                               f"`python tests/benchmarks/carried.py --seed {seed} --write`\n")


if __name__ == "__main__":
    sys.exit(print_or_write("carried", __doc__, block))
