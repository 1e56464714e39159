"""An old labelled set -> chunks to be read again: its gold feeds the pool, its labels are not taken over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.formats.locating import Locator
from goldset.formats.sets import LabelledSet
from goldset.spans.sentences import sentences
from goldset.text import count_words, question_key, twin_key

LONG_ENOUGH = 4
"""Words from which a sentence says which passage it comes from."""
FOUND = 0.5
"""Share of a passage's words that must be found in the corpus' chunks."""


@dataclass(frozen=True)
class OldGold:
    """Columns question_id, chunk_id (of this corpus and sample), and how much of the set was found in them.

    ``report``: questions of the set, those of them that are in the sample, their gold, gold that is in the corpus, the
    pairs, and an example of gold that is not.
    """

    pairs: pa.Table
    report: dict[str, Any]


def old_gold(labelled: LabelledSet, *, questions: pa.Table, chunks: pa.Table) -> OldGold:
    """Labelled set, tables questions and chunks -> OldGold.

    A question is the sample's where the ids are equal, or the texts after question_key. Its gold is the chunk of the
    same id (and the same text, where both have one), else the chunks that hold the text: the evidence where the set has
    it, else the whole passage; where no chunk holds it whole, the chunks of one document that hold its sentences.
    """
    mine = _same_questions(labelled, questions)
    owners, spans = (labelled.gold.column(name).to_pylist() for name in ("question_id", "span_id"))
    evidence = labelled.gold.column("evidence").to_pylist()
    rows = [(mine[owner], span, ranges) for owner, span, ranges in zip(owners, spans, evidence, strict=True)
            if owner in mine]
    finder = _Finder(labelled, chunks, {span for _, span, _ in rows}) if rows else None
    found = [(question, finder.chunks_of(span, ranges) if finder else [], span) for question, span, ranges in rows]
    pairs = sorted({(question, chunk) for question, held, _ in found for chunk in held})
    lost = sorted({span for _, held, span in found if not held})
    report = {"set": labelled.label, "questions": len(set(owners)), "in_the_sample": len({row[0] for row in rows}),
              "gold": len(rows), "in_the_corpus": sum(bool(held) for _, held, _ in found), "chunks": len(pairs),
              "example_not_in_the_corpus": lost[0] if lost else None}
    table = pa.table({"question_id": pa.array([question for question, _ in pairs], pa.string()),
                      "chunk_id": pa.array([chunk for _, chunk in pairs], pa.string())})
    return OldGold(table, report)


def _same_questions(labelled: LabelledSet, questions: pa.Table) -> dict[str, str]:
    """Question of the set -> question of the sample."""
    ids, texts = (questions.column(name).to_pylist() for name in ("question_id", "text"))
    by_text = {question_key(text): question for question, text in zip(ids, texts, strict=True)}
    found = {question: question for question in ids}
    if labelled.questions is not None:
        old = (labelled.questions.column(name).to_pylist() for name in ("question_id", "text"))
        for question, text in zip(*old, strict=True):
            if question not in found and (same := by_text.get(question_key(text))) is not None:
                found[question] = same
    return found


class _Finder:
    """Finds passages of a set among the chunks of another corpus."""

    def __init__(self, labelled: LabelledSet, chunks: pa.Table, wanted: set[str]) -> None:
        columns = ("chunk_id", "doc_id", "text", "body_start")
        rows = list(zip(*(chunks.column(name).to_pylist() for name in columns), strict=True))
        self._body = {chunk: text[start:] for chunk, _, text, start in rows}
        self._document = {chunk: document for chunk, document, _, _ in rows}
        self._of_document: dict[str, list[str]] = {}
        for chunk, document, _, _ in rows:
            self._of_document.setdefault(document, []).append(chunk)
        self._locator = Locator(self._body)
        self._passages: dict[str, tuple[str, int | None]] = {}
        if labelled.corpus is not None:
            about = (labelled.corpus.spans.column(name).to_pylist() for name in ("span_id", "text", "start"))
            self._passages = {span: (text, start) for span, text, start in zip(*about, strict=True) if span in wanted}

    def chunks_of(self, span: str, evidence: Iterable[Mapping[str, Any]]) -> list[str]:
        """Chunks that hold one gold passage; none where it is not in the corpus."""
        passage = self._passages.get(span)
        if span in self._body and (passage is None or self._equal(passage[0], span)):
            return [span]
        if passage is None:
            return self._of_document.get(span, [])
        return sorted({chunk for text in _texts(*passage, evidence) for chunk in self._holding(text)})

    def _equal(self, text: str, chunk: str) -> bool:
        return twin_key(text) == twin_key(self._body[chunk])

    def _holding(self, text: str) -> Iterable[str]:
        whole = self._locator.find(text)
        if whole.ids:
            return whole.ids
        parts = [text[start:end] for start, end in sentences(text)]
        found: dict[str, dict[str, int]] = {}  # document -> chunk -> words of the sentences in it
        for part in parts:
            words = count_words(part)
            for chunk in self._locator.find(part).ids if words >= LONG_ENOUGH else ():
                held = found.setdefault(self._document[chunk], {})
                held[chunk] = held.get(chunk, 0) + words
        best = max(found, key=lambda document: (sum(found[document].values()), document), default=None)
        if best is None or sum(found[best].values()) < FOUND * sum(map(count_words, parts)):
            return ()
        return found[best]


def _texts(text: str, start: int | None, evidence: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The evidence of a passage, or the whole of it where there is none inside."""
    inside = [text[one["start"] - start : one["end"] - start] for one in evidence
              if start is not None and start <= one["start"] and one["end"] <= start + len(text)]
    yield from inside or [text]
