"""The audit on real sets with known answers."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from goldset.audit import audit_set, decides
from goldset.audit.integrity import Integrity
from goldset.formats.sets import Corpus, LabelledSet, load_set
from goldset.formats.trec import read_run
from goldset.schemas import from_rows
from goldset.text import content_hash, twin_key

COLLECTIONS = Path(__file__).resolve().parents[2] / ".." / "shared" / "collections"
pytestmark = [pytest.mark.collections,
              pytest.mark.skipif(not COLLECTIONS.is_dir(), reason="needs ../shared/collections beside the checkout")]


@pytest.fixture(scope="module")
def dl19() -> LabelledSet:
    return load_set(COLLECTIONS / "trec-dl19-passage", relevant_from=2)


def run_of(name: str) -> pa.Table:
    return read_run(COLLECTIONS / "trec-dl19-passage" / "runs" / f"{name}.run.gz", system=name)


def cut(labelled: LabelledSet, run: pa.Table, depth: int) -> LabelledSet:
    """Only the labels that a system itself retrieved in its first ``depth`` results."""
    head = run.filter(pc.less_equal(run.column("rank"), depth))
    kept = set(zip(head.column("question_id").to_pylist(), head.column("chunk_id").to_pylist(), strict=True))

    def mine(table: pa.Table) -> pa.Table:
        pairs = zip(table.column("question_id").to_pylist(), table.column("span_id").to_pylist(), strict=True)
        return table.filter(pa.array([pair in kept for pair in pairs]))

    return dataclasses.replace(labelled, judgments=mine(labelled.judgments), gold=mine(labelled.gold))


def findings(labelled: LabelledSet, name: str) -> tuple[str, float]:
    """(circularity word, recall@10) of a system on a set."""
    rows = audit_set(labelled, {name: run_of(name)}, eval_k=10).to_pylist()
    (word,) = [row for row in rows if row["check"] == "circularity" and decides("circularity", row["reason"])]
    (recall,) = [row for row in rows if row["reason"] == "recall@10"]
    return word["reason"], recall["measured"]


# The collection's README: recall@10 with all labels, and with the labels the run itself retrieved at 50.
@pytest.mark.parametrize(("name", "full", "own"), [
    ("bm25base_p", 0.175, 0.424), ("runid2", 0.179, 0.520), ("p_bert", 0.260, 0.477)])
def test_complete_labels_acquit_and_own_labels_convict(name: str, full: float, own: float, dl19: LabelledSet) -> None:
    word, recall = findings(dl19, name)
    assert word == "healthy"
    assert recall == pytest.approx(full, abs=5e-4)
    word, recall = findings(cut(dl19, run_of(name), 50), name)
    assert word == "truncated"
    assert recall == pytest.approx(own, abs=5e-4)
    # All that is left lies in its own top 10.
    assert findings(cut(dl19, run_of(name), 10), name) == ("truncated", 1.0)


def test_the_cut_is_named(dl19: LabelledSet) -> None:
    run = run_of("bm25base_p")
    for depth in (10, 50):
        rows = audit_set(cut(dl19, run, depth), {"bm25base_p": run}).to_pylist()
        (row,) = [row for row in rows if row["reason"] == "truncated"]
        assert (row["verdict"], row["subject"]) == ("fail", "bm25base_p")
        assert f"the gold stops at rank {depth} of bm25base_p" in row["message"]


def leakage(labelled: LabelledSet, logs: pa.Table | None = None) -> dict[str, Any]:
    row: dict[str, Any]
    row = next(row for row in audit_set(labelled, {}, log_questions=logs).to_pylist() if row["check"] == "leakage")
    return row


def test_questions_written_from_passages_are_suspected() -> None:
    folder = COLLECTIONS / "chunk-spans"
    texts = {row["_id"]: row["text"] for row in map(json.loads, (folder / "corpus.jsonl").open(encoding="utf-8"))}
    chunks = [(f"{doc}#{start}-{end}", doc, start, end)
              for doc, text in texts.items() for start, end in pieces(text, 200)]
    gold = set()
    for line in (folder / "spans.jsonl").open(encoding="utf-8"):
        span = json.loads(line)
        inside = [(min(end, span["end"]) - max(start, span["start"]), name) for name, doc, start, end in chunks
                  if doc == span["corpus-id"]]
        gold.add((span["query-id"], max(inside)[1]))
    corpus = corpus_of(chunks, texts)
    loaded = load_set(folder)  # its own qrels name whole documents; the questions are what is wanted here
    labelled = dataclasses.replace(
        loaded, load_corpus=lambda: corpus,
        gold=from_rows("gold", [
            {"question_id": question, "span_id": span, "evidence": [], "evidence_source": None, "facet": None,
             "weight": 1.0, "twin_group": span} for question, span in sorted(gold)]),
        judgments=from_rows("judgments", [
            {"question_id": question, "span_id": span, "relevant": True, "grade": 1, "basis": "imported",
             "inclusion_prob": 1.0, "stratum": None, "label_ids": []} for question, span in sorted(gold)]))
    row = leakage(labelled)
    assert (row["verdict"], row["reason"], row["n"]) == ("warn", "suspected", 472)
    assert row["low"] >= 0.15


def test_peoples_own_questions_are_not_suspected() -> None:
    labelled = load_set(COLLECTIONS / "mtrag")
    assert leakage(labelled)["reason"] == "no_reference"
    assert labelled.questions is not None
    # Against themselves: the same questions asked as a log. Each side's best passage is the same, so AUC is .5.
    row = leakage(labelled, labelled.questions)
    assert (row["verdict"], row["reason"]) == ("pass", "none")
    assert row["measured"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["adi", "cranfield", "medline", "vaswani", "mtrag"])
def test_classics_are_acquitted_towards_bm25(name: str) -> None:
    rows = audit_set(load_set(COLLECTIONS / name, relevant_from=1), {}).to_pylist()
    words = [row["reason"] for row in rows if row["check"] == "circularity" and decides("circularity", row["reason"])]
    assert words == ["healthy"]


def integrity(name: str, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    table = audit_set(load_set(COLLECTIONS / name, **options), {}, checks=[Integrity()])
    return {(row["subject"], row["reason"]): row for row in table.to_pylist()}


def test_copied_second_labels_are_noticed() -> None:
    # Its README: 562 pairs have two labels, all agree, and one person is the second on every such pair.
    rows = integrity("haystack-rating-party", relevant_from=2)
    (copied,) = [row for (_, reason), row in rows.items() if reason == "copied_labels"]
    assert (copied["verdict"], copied["n"]) == ("warn", 562)
    assert "no pair was labelled by two people independently" in rows["assessors", "agreement"]["message"]


def test_cranfields_pooled_but_not_judged_documents_are_shown() -> None:
    # Its README: code -1 stands in 225 rows, exactly one a query; the file with the original codes keeps them.
    codes = COLLECTIONS / "cranfield" / "qrels" / "original-codes.tsv"
    first = next(number for number, line in enumerate(codes.read_text().splitlines(), 1) if line.endswith("\t-1"))
    row = integrity("cranfield", qrels=codes, relevant_from=1)["all", "unjudged"]
    assert row["measured"] == 225
    assert f"original-codes.tsv, line {first})" in row["message"]


def test_gold_that_overlaps_or_is_a_whole_book_is_told() -> None:
    assert integrity("mtrag")["all", "overlap"]["measured"] >= 10
    assert integrity("chunk-spans")["all", "oversized_gold"]["measured"] == 5


def pieces(text: str, words: int) -> list[tuple[int, int]]:
    found = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    return [(found[i][0], found[min(i + words, len(found)) - 1][1]) for i in range(0, len(found), words)]


def corpus_of(chunks: list[tuple[str, str, int, int]], texts: dict[str, str]) -> Corpus:
    first: dict[str, str] = {}
    for name, doc, start, end in sorted(chunks):
        first.setdefault(twin_key(texts[doc][start:end]), name)
    return Corpus(
        chunks=from_rows("chunks", [
            {"chunk_id": name, "doc_id": doc, "start": start, "end": end, "text": texts[doc][start:end],
             "body_start": 0, "offsets": "verified"} for name, doc, start, end in chunks]),
        spans=from_rows("spans", [
            {"span_id": name, "doc_id": doc, "start": start, "end": end, "text": texts[doc][start:end],
             "heading": None, "doc_sha256": None, "text_hash": content_hash(texts[doc][start:end]),
             "twin_group": first[twin_key(texts[doc][start:end])], "words": 200, "offsets": "verified"}
            for name, doc, start, end in chunks]),
        links=from_rows("span_links", [
            {"chunk_id": name, "span_id": name, "chunk_share": 1.0, "span_share": 1.0} for name, _, _, _ in chunks]))
