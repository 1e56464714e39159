"""Near twins: found, told apart, merged where asked; a merged one delivers only what it has."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.config import load_config
from goldset.pipeline import rebuild
from goldset.schemas import from_rows
from goldset.spans import SpanTables, canonical_spans, merge_twins, near_twins, served
from goldset.spans.neartwins import aligned, difference, similarity
from goldset.text import text_sha256
from tests.pipeline import golden

WORDS = [f"word{i}" for i in range(40)]
A = " ".join(WORDS)
B = A.replace("word20", "other")
C = " ".join(f"else{i}" for i in range(40))


def spans_of(texts: dict[str, str]) -> tuple[SpanTables, pa.Table]:
    documents = from_rows("documents", [
        {"doc_id": name, "text": text, "title": None, "url": None, "sha256": text_sha256(text), "metadata": "{}"}
        for name, text in texts.items()])
    chunks = from_rows("chunks", [
        {"chunk_id": name, "doc_id": name, "start": 0, "end": len(text), "text": text, "body_start": 0,
         "offsets": "verified"} for name, text in texts.items()])
    return canonical_spans(documents=documents, chunks=chunks), chunks


def test_near_twins_are_listed_with_similarity_and_difference() -> None:
    # 40 words make 38 runs of three; one word stands in three of them: 35 shared of 41.
    made, _ = spans_of({"a": A, "b": B, "c": C, "d": A})
    found = near_twins(made.spans)
    names = [f"{name}#0-{len(text)}" for name, text in (("a", A), ("b", B))]
    # "d" repeats "a" exactly: a twin, not listed again.
    assert [(row["left"], row["right"]) for row in found] == [tuple(names)]
    assert found[0]["similarity"] == pytest.approx(35 / 41)
    assert found[0]["difference"] == "'word20' -> 'other'"
    assert near_twins(made.spans, threshold=0.9) == []


def test_differences_in_words() -> None:
    assert difference("one two three", "one two three") == ""
    assert difference("one two three", "one three") == "- 'two'"
    assert difference("one three", "one two three") == "+ 'two'"
    assert difference("a x b x c x d x e", "a y b y c y d y e") == "'x' -> 'y'; 'x' -> 'y'; 'x' -> 'y'; and 1 more"


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.lists(st.sampled_from("abcd"), min_size=1))
def test_similarity_and_alignment_agree_with_their_words(left: list[str], right: list[str]) -> None:
    one, other = " ".join(left), "  ".join(right)
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, one) == 1
    for ours, theirs, size in aligned(one, other):
        assert one[ours : ours + size] == other[theirs : theirs + size]


def test_a_merged_near_twin_delivers_what_it_has() -> None:
    made, chunks = spans_of({"a": A, "b": B})
    merged = merge_twins(made.spans, near_twins(made.spans))
    first = f"a#0-{len(A)}"
    assert merged.column("twin_group").to_pylist() == [first, first]
    run = from_rows("run", [{"system": "s", "family": "f", "question_id": f"q{i}", "rank": 1, "chunk_id": "b",
                             "score": None} for i in range(3)])
    # Both have the words before and after; only "a" has word20. "other" is shorter: what follows is shifted by one.
    ranges = [(A.index("word10"), A.index("word13")), (A.index("word20"), A.index("word21")),
              (A.index("word30"), A.index("word33"))]
    gold = from_rows("gold", [
        {"question_id": f"q{i}", "span_id": first, "evidence": [{"start": start, "end": end}],
         "evidence_source": "selected", "facet": None, "weight": 1.0, "twin_group": first}
        for i, (start, end) in enumerate(ranges)])
    found = served(gold=gold, run=run, spans=merged, links=made.links, chunks=chunks, threshold=1.0)
    assert found.column("rank").to_pylist() == [1, None, 1]
    # Not merged, nothing of "b" counts.
    found = served(gold=gold, run=run, spans=made.spans, links=made.links, chunks=chunks)
    assert found.column("rank").to_pylist() == [None, None, None]


def test_groups_join_under_their_smallest_span() -> None:
    made, _ = spans_of({"a": A, "b": B, "c": B.replace("word3 ", "third "), "d": C})
    names = dict(zip(made.spans.column("doc_id").to_pylist(), made.spans.column("span_id").to_pylist(), strict=True))
    pairs = [{"left": names["b"], "right": names["c"]}, {"left": names["a"], "right": names["b"]}]
    joined = merge_twins(made.spans, pairs)
    assert joined.column("twin_group").to_pylist() == [names["a"]] * 3 + [names["d"]]


def test_the_rebuild_lists_them_and_merges_by_config(tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    near = [{"doc_id": "memo", "text": A}, {"doc_id": "note", "text": B}]
    with (tmp_path / "harbour/documents.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in near)
    with (tmp_path / "harbour/chunks.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({**row, "chunk_id": row["doc_id"], "start": 0, "end": len(row["text"])}) + "\n"
                        for row in near)
    listed = rebuild(load_config(config), quiet=True, until="spans").report("spans")["near_twins"]
    assert (listed["pairs"], listed["merged"]) == (1, 0)
    assert listed["most_alike"][0]["difference"] == "'word20' -> 'other'"
    config.write_text(config.read_text().replace("[corpus]\n", "[corpus]\nmerge_near_twins = 0.85\n"))
    artifacts = rebuild(load_config(config), quiet=True, until="spans")
    assert artifacts.report("spans")["near_twins"]["merged"] == 1
    groups = dict(zip(*(artifacts.table("spans").column(name).to_pylist() for name in ("doc_id", "twin_group")),
                      strict=True))
    assert groups["note"] == groups["memo"] == f"memo#0-{len(A)}"
