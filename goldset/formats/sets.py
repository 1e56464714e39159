"""A labelled set from anywhere -> LabelledSet: a published version, a BEIR folder, qrels, or a file of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError, UsageError
from goldset.schemas import DEEP


@dataclass(frozen=True)
class Corpus:
    """Texts behind a set: tables chunks, spans, span_links. In BEIR and TREC each id is document, chunk and span."""

    chunks: pa.Table
    spans: pa.Table
    links: pa.Table


@dataclass(frozen=True)
class Note:
    """Something the reader saw and the integrity check reports: kind, how often, where first."""

    kind: str
    count: int
    where: str
    example: str = ""


@dataclass(frozen=True)
class LabelledSet:
    """Questions and the passages that answer them, wherever they come from.

    ``judgments`` holds every judged pair, ``gold`` the relevant ones; ``load_corpus`` reads the texts on demand
    (None where the set has none), ``load_ids`` only the ids of the passages, ``load_words`` how many words some have.

    Attributes:
        mapping: what the reader took for what, a line each, for people to check.
        locate: (question_id, span_id) -> file and line of that label, None where not known.
        changed: pairs whose passage no longer holds the text that was labelled.
        labels: who labelled what, where known: question_id, span_id, assessor, grade.
        gold_texts: span_id -> text of the gold as the file has it, where it has one.
    """

    name: str
    version: str | None
    kind: str  # published | beir | trec | examples
    judgments: pa.Table
    gold: pa.Table
    questions: pa.Table | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    relevant_from: int | None = None
    load_corpus: Callable[[], Corpus] | None = None
    mapping: tuple[str, ...] = ()
    locate: Callable[[str, str], str | None] | None = None
    changed: tuple[tuple[str, str], ...] = ()
    labels: pa.Table | None = None
    load_ids: Callable[[], pa.Array] | None = None
    gold_texts: Mapping[str, str] = field(default_factory=dict)
    load_words: Callable[[set[str]], dict[str, int]] | None = None

    @cached_property
    def corpus(self) -> Corpus | None:
        """The texts, read once, or None."""
        return self.load_corpus() if self.load_corpus else None

    @cached_property
    def passage_ids(self) -> pa.Array | None:
        """Ids of all passages, read without their texts where that is quicker, or None."""
        if self.load_ids is not None:
            return self.load_ids()
        return None if self.corpus is None else self.corpus.spans.column("span_id").combine_chunks()

    @cached_property
    def from_deep_probe(self) -> pa.Array | None:
        """Which rows of ``gold`` the deep probe found: they lie outside the pool. None where there are none."""
        if not self.manifest.get("deep"):
            return None
        deep = self.judgments.filter(pc.starts_with(pc.fill_null(self.judgments.column("stratum"), ""), pattern=DEEP))
        pairs = set(zip(*(deep.column(name).to_pylist() for name in ("question_id", "span_id")), strict=True))
        mine = zip(*(self.gold.column(name).to_pylist() for name in ("question_id", "span_id")), strict=True)
        return pa.array([pair in pairs for pair in mine], pa.bool_())

    @property
    def label(self) -> str:
        """``name/version`` for outputs."""
        return f"{self.name}/{self.version}" if self.version else self.name


def load_set(path: Path | None, *, qrels: Path | None = None, questions: Path | None = None,
             corpus: Path | None = None, relevant_from: int | None = None, labels: Path | None = None,
             contradictions: bool = False) -> LabelledSet:
    """A labelled set from wherever it lies -> LabelledSet.

    Args:
        path: a published version, a BEIR folder (corpus.jsonl, queries.jsonl, qrels/*.tsv), a qrels file, or a file
            of questions with gold ids or texts (JSON, JSON lines, CSV; Ragas, LlamaIndex, LangSmith or one's own).
        qrels: judgments in a file of their own; in a BEIR folder, instead of its qrels/test.tsv.
        questions: texts of the questions (JSONL or TSV).
        corpus: texts of the passages (JSONL).
        relevant_from: smallest grade that counts as relevant; needed where grades go above 1.
        labels: who labelled what (a header names question, passage, assessor, grade); in a BEIR folder, found.
        contradictions: pairs with two grades are noted and count as not judged, instead of an error.

    Raises:
        UsageError: neither ``path`` nor ``qrels``, or files beside a published version, which has its own.
        DataError: a file that cannot be read; a folder that is neither kind.
    """
    from goldset.formats.beir import find_file, find_qrels, is_beir, read_foreign
    from goldset.formats.examples import is_examples, read_examples, refuse

    if path is None and qrels is None:
        raise UsageError("no labelled set; name a published version, a BEIR folder, or --qrels FILE")
    if path is not None and path.is_dir():
        from goldset.formats.published import is_published, read_published, versions_in
        from goldset.formats.raters import find_labels

        if is_published(path):
            if qrels or questions or corpus or labels or relevant_from is not None:
                raise UsageError(f"{path} is a published version and brings its own judgments, texts and threshold; "
                                 "leave out --qrels, --questions, --corpus, --labels and --relevant-from")
            return read_published(path)
        if versions := versions_in(path):
            raise DataError(f"{path}: holds the versions {', '.join(versions)}; name one, "
                            f"e.g. {path / versions[-1]}")
        if not is_beir(path) and qrels is None:
            raise DataError(f"{path}: neither a published version (manifest.json) nor a BEIR folder (qrels/); "
                            "name one of them, or --qrels FILE")
        found = labels or find_labels(path)
        read = read_foreign(qrels or find_qrels(path), questions=questions or find_file(path, "queries.jsonl"),
                            corpus=corpus or find_file(path, "corpus.jsonl"), name=path.resolve().name, kind="beir",
                            relevant_from=relevant_from, contradictions=contradictions)
        return with_labels(read, found)
    if path is not None and qrels is not None:
        raise UsageError(f"{path} and --qrels {qrels}: name one set of judgments")
    file = qrels or path
    assert file is not None, "one of the two is there"
    if is_examples(file):
        examples = read_examples(file, corpus=corpus, relevant_from=relevant_from, contradictions=contradictions)
        refuse(file, questions)
        return with_labels(examples, labels)
    name = file.name.removesuffix(".gz").rsplit(".", 1)[0]
    return with_labels(read_foreign(file, questions=questions, corpus=corpus, name=name, kind="trec",
                                    relevant_from=relevant_from, contradictions=contradictions), labels)


def with_labels(labelled: LabelledSet, path: Path | None) -> LabelledSet:
    """The set with the table of who labelled what; unchanged without a file."""
    from goldset.formats.raters import read_labels

    if path is None:
        return labelled
    table, said = read_labels(path)
    return replace(labelled, labels=table, mapping=(*labelled.mapping, said))
