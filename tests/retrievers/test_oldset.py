"""The gold of an old set among the chunks of another corpus."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from goldset.formats.sets import Corpus, LabelledSet
from goldset.retrievers.oldset import old_gold
from goldset.schemas import empty, from_rows
from tests.retrievers.tables import questions_table

S = ["The red button resets the router at once.", "Hold it for ten seconds until it blinks twice.",
     "Refunds take five days to reach an account.", "The printer prints blank pages after updates."]
CHUNKS = {"c1": ("d1", f"{S[0]} {S[1]}"), "c2": ("d1", f"{S[1]} {S[2]}"), "c3": ("d1", S[3]), "c4": ("d2", S[3])}


def chunks(rows: dict[str, tuple[str, str]] = CHUNKS) -> pa.Table:
    return from_rows("chunks", [{"chunk_id": chunk, "doc_id": document, "start": None, "end": None, "text": text,
                                 "body_start": 0, "offsets": "absent"} for chunk, (document, text) in rows.items()])


def labelled(gold: dict[str, list[tuple[int, int]]], passages: dict[str, tuple[str, int | None]] | None = None,
             asked: dict[str, str] | None = None) -> LabelledSet:
    """One question 'old' with this gold; passages: id -> text and its start in the document."""
    table = from_rows("gold", [{"question_id": "old", "span_id": span, "evidence_source": None, "facet": None,
                                "weight": 1.0, "twin_group": span,
                                "evidence": [{"start": low, "end": high} for low, high in evidence]}
                               for span, evidence in gold.items()])
    spans = from_rows("spans", [
        {"span_id": span, "doc_id": "x", "start": start, "end": None if start is None else start + len(text),
         "text": text, "heading": None, "doc_sha256": None, "text_hash": "h", "twin_group": span, "words": 1,
         "offsets": "absent" if start is None else "verified"} for span, (text, start) in (passages or {}).items()])
    questions = questions_table(*(asked or {"old": "Reset  the ROUTER?"}).values())
    ids = pa.array(list(asked or ["old"]), pa.string())
    return LabelledSet(
        name="set", version="v3", kind="published", judgments=empty("judgments"), gold=table,
        questions=questions.set_column(questions.schema.get_field_index("question_id"), "question_id", ids),
        load_corpus=None if passages is None else lambda: Corpus(chunks(), spans, empty("span_links")))


def found(one: LabelledSet, rows: dict[str, tuple[str, str]] = CHUNKS) -> list[tuple[str, str]]:
    pairs = old_gold(one, questions=questions_table("reset the router", "other"), chunks=chunks(rows)).pairs
    return list(zip(pairs.column("question_id").to_pylist(), pairs.column("chunk_id").to_pylist(), strict=True))


def test_by_id_where_the_text_is_the_same_or_not_known() -> None:
    assert found(labelled({"c2": []})) == [("q1", "c2")]
    assert found(labelled({"c2": []}, {"c2": (f"{S[1]}  {S[2]}", None)})) == [("q1", "c2")]
    # The same id over another text is another passage: the text decides.
    assert found(labelled({"c2": []}, {"c2": (S[0], None)})) == [("q1", "c1")]
    # A document's id without a text is all of its chunks.
    assert found(labelled({"d1": []})) == [("q1", "c1"), ("q1", "c2"), ("q1", "c3")]
    assert found(labelled({"gone": []})) == []


def test_by_text_whole_or_in_parts() -> None:
    assert found(labelled({"p": []}, {"p": (S[2].upper(), None)})) == [("q1", "c2")]  # a chunk holds it whole
    # It holds four whole; c3 and c4 are twins, which the pool folds into one.
    assert found(labelled({"p": []}, {"p": (" ".join(S), None)})) == [("q1", f"c{n}") for n in (1, 2, 3, 4)]
    # A passage cut elsewhere: no chunk holds it, it holds no chunk; its sentences lie in two chunks of d1. The last
    # stands in d2 as well, which has less of the passage.
    moved = f"{S[0]} {S[1]} {S[2]} Nothing of this last sentence stands here."
    assert found(labelled({"p": []}, {"p": (moved, None)})) == [("q1", "c1"), ("q1", "c2")]
    # One sentence of three is too little: 8 of 23 words.
    changed = f"{S[0]} All that follows was written afresh since. Nobody kept a word of what stood here."
    assert found(labelled({"p": []}, {"p": (changed, None)})) == []


def test_evidence_is_narrower_than_the_passage() -> None:
    text, start = f"{S[0]} {S[1]} {S[2]}", 100
    low = start + len(S[0]) + len(S[1]) + 2
    passages: dict[str, tuple[str, int | None]] = {"p": (text, start)}
    assert found(labelled({"p": [(low, low + len(S[2]))]}, passages)) == [("q1", "c2")]
    # Evidence outside the passage (another version of the text) is none.
    assert found(labelled({"p": [(5, 20)]}, passages)) == [("q1", "c1"), ("q1", "c2")]


def test_questions_are_the_same_by_id_or_by_text() -> None:
    one = labelled({"c1": []}, asked={"old": "nobody asks this now"})
    assert found(one) == []
    told = old_gold(one, questions=questions_table("reset the router"), chunks=chunks()).report
    assert told == {"set": "set/v3", "questions": 1, "in_the_sample": 0, "gold": 0, "in_the_corpus": 0, "chunks": 0,
                    "example_not_in_the_corpus": None}
    sample: Any = questions_table("whatever")
    renamed = sample.set_column(0, "question_id", pa.array(["old"]))
    pairs = old_gold(one, questions=renamed, chunks=chunks()).pairs
    assert pairs.to_pylist() == [{"question_id": "old", "chunk_id": "c1"}]
