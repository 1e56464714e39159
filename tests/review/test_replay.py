"""Recorded assessors answer as their file says, wave by wave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import ReviewConfig
from goldset.errors import DataError
from goldset.review import first_wave, is_closed, next_wave, replay, resolve
from goldset.schemas import empty, from_rows

TEXT = "a" * 100


@pytest.fixture
def world(make: Any) -> dict[str, Any]:
    """Document d: spans [0, 30), [30, 60), [60, 100); its twin e holds the text of [30, 60) at [5, 35)."""
    docs = make.documents(d=TEXT, e=TEXT)
    spans = make.spans(docs, [("d", 0, 30), ("d", 30, 60), ("d", 60, 100), ("e", 5, 35)], {"e#5-35": "d#30-60"})
    chunks = from_rows("chunks", [
        {"chunk_id": name, "doc_id": "d", "start": a, "end": b, "text": TEXT[a:b], "body_start": 0,
         "offsets": "verified"} for name, a, b in (("c1", 0, 40), ("c2", 20, 90), ("c3", 60, 100))])
    links = from_rows("span_links", [
        {"chunk_id": c, "span_id": s, "chunk_share": share, "span_share": 0.5} for c, s, share in (
            ("c1", "d#0-30", 0.75), ("c1", "d#30-60", 0.25), ("c2", "d#0-30", 1 / 7), ("c2", "d#30-60", 3 / 7),
            ("c2", "d#60-100", 3 / 7), ("c3", "d#60-100", 1.0))])
    return {"spans": spans, "chunks": chunks, "links": links, "questions": make.questions("when?")}


def items(world: dict[str, Any], *rows: tuple[str, str]) -> pa.Table:
    q = world["questions"].column("question_id")[0].as_py()
    return from_rows("queue", [
        {"item_id": f"i{n}", "question_id": q, "span_id": span, "campaign": "rebuild", "wave": 1, "reason": reason,
         "stratum": reason, "stratum_size": 1, "u": 0.1, "order": n} for n, (span, reason) in enumerate(rows)])


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"question": "when?", **line}) + "\n" for line in lines), encoding="utf-8")
    return path


def play(world: dict[str, Any], path: Path, queue: pa.Table, labels: pa.Table | None = None) -> list[dict[str, Any]]:
    return replay(items=queue, path=path, labels=labels if labels is not None else empty("labels"), **world)


THREE = (("d#0-30", "positive"), ("d#30-60", "positive"), ("d#60-100", "rejection"))


def test_yes_needs_a_whole_range_and_the_rest_is_no(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": [
        {"doc_id": "d", "start": 3, "end": 9}, {"doc_id": "d", "start": 25, "end": 35}]})
    rows = play(world, path, items(world, *THREE))
    # [25, 35) crosses the cut at 30, so no span wholly contains it.
    assert [(row["span_id"], row["relevant"], row["evidence"]) for row in rows] == [
        ("d#0-30", True, [{"start": 3, "end": 9}]), ("d#30-60", False, []), ("d#60-100", False, [])]
    assert rows[0]["evidence_source"] == "selected"
    assert from_rows("labels", rows).num_rows == 3


def test_a_chunk_counts_where_most_of_it_lies(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": [{"chunk_id": "c1"}, {"chunk_id": "c2"}]})
    rows = play(world, path, items(world, *THREE))
    # c2 lies 3/7 in each of two spans: the smaller id has it; both ranges are clipped to their span.
    assert [(row["relevant"], row["evidence"]) for row in rows] == [
        (True, [{"start": 0, "end": 30}]), (True, [{"start": 30, "end": 60}]), (False, [])]


def test_evidence_in_a_twin_is_moved_to_the_representative(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": [{"doc_id": "e", "start": 7, "end": 10}]})
    rows = play(world, path, items(world, *THREE))
    assert [(row["relevant"], row["evidence"]) for row in rows] == [
        (False, []), (True, [{"start": 32, "end": 35}]), (False, [])]


def test_overrides(world: dict[str, Any], tmp_path: Path) -> None:
    all_of_it = [{"doc_id": "d", "start": a, "end": a + 5} for a in (0, 30, 60)]
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": all_of_it, "cant_tell": all_of_it[:2],
                                        "no": all_of_it[:1]})
    rows = play(world, path, items(world, *THREE))
    assert [(row["relevant"], row["reason"]) for row in rows] == [
        (False, None), (None, "cant_tell"), (True, None)]


def test_second_goes_to_another_and_adjudication_to_a_third(world: dict[str, Any], tmp_path: Path) -> None:
    queue = items(world, ("d#0-30", "second"), ("d#0-30", "adjudication"), ("d#0-30", "positive"))
    three = write(tmp_path / "r.jsonl", *({"assessor": name, "evidence": []} for name in ("a1", "a2", "a3")))
    assert {row["item_id"]: row["assessor"] for row in play(world, three, queue)} == {
        "i2": "a1", "i0": "a2", "i1": "a3"}
    two = write(tmp_path / "r.jsonl", *({"assessor": name, "evidence": []} for name in ("a1", "a2")))
    assert {row["item_id"]: row["assessor"] for row in play(world, two, queue)} == {
        "i2": "a1", "i0": "a2", "i1": "a1"}
    one = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": []})
    assert {row["item_id"] for row in play(world, one, queue)} == {"i2", "i1"}  # nobody is left for the second label


def test_a_question_that_is_not_in_the_file_stays_open(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"question": "another?", "assessor": "a1", "evidence": []})
    assert play(world, path, items(world, *THREE)) == []


def test_answered_items_are_left_alone_and_the_rest_is_the_same(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": []})
    whole = play(world, path, items(world, *THREE))
    assert play(world, path, items(world, *THREE), from_rows("labels", whole[:1])) == whole[1:]


def test_a_whole_review_closes(make: Any, world: dict[str, Any], tmp_path: Path) -> None:
    q = world["questions"].column("question_id")[0].as_py()
    ids = ["d#0-30", "d#30-60", "d#60-100"]
    candidates = make.candidates((q, s) for s in ids)
    verdicts = make.verdicts(make.verdict(q, span, span == ids[0]) for span in ids)
    config = ReviewConfig.model_validate({"profile": "careful", "second_share": 1.0, "rejection_min": 2})
    yes = [{"doc_id": "d", "start": 61, "end": 70}]
    path = write(tmp_path / "r.jsonl", {"assessor": "a1", "evidence": yes}, {"assessor": "a2", "evidence": []},
                 {"assessor": "a3", "evidence": yes})
    given = {"candidates": candidates, "verdicts": verdicts, "spans": world["spans"], "config": config, "seed": 1}
    queue, labels = first_wave(**given), empty("labels")
    for _ in range(6):
        rows = play(world, path, queue, labels)
        labels = pa.concat_tables([labels, from_rows("labels", rows)])
        grown = next_wave(queue=queue, labels=labels, **given)
        if is_closed(queue=queue, labels=labels, grown=grown):
            break
        queue = pa.concat_tables([queue, grown])
    told = {row["span_id"]: (row["relevant"], row["basis"]) for row in resolve(queue=queue, labels=labels).to_pylist()}
    assert told == {"d#0-30": (False, "human"), "d#30-60": (False, "human"), "d#60-100": (True, "adjudicated")}
    assert is_closed(queue=queue, labels=labels, grown=next_wave(queue=queue, labels=labels, **given))


@pytest.mark.parametrize(("line", "message"), [
    ({"assessor": "a1", "evidnce": []}, "line 1: unknown key 'evidnce'; did you mean 'evidence'"),
    ({"assessor": " ", "evidence": []}, "line 1: 'assessor' is missing"),
    ({"assessor": "a1", "evidence": {}}, "line 1, 'evidence': a list is needed"),
    ({"assessor": "a1", "evidence": [{"doc_id": "z", "start": 0, "end": 3}]}, "document 'z' is not in the corpus"),
    ({"assessor": "a1", "no": [{"chunk_id": "z"}]}, "line 1, 'no': chunk 'z' is not in the corpus"),
    ({"assessor": "a1", "evidence": [{"doc_id": "d", "start": 9, "end": 3}]}, "start 9 and end 3 are no range"),
    ({"assessor": "a1", "evidence": ["d#0-30"]}, "needed: |needed {"),
    ({"assessor": "a1", "context": ["hello"], "evidence": []}, "context is a list of turns"),
])
def test_errors_name_file_and_line(world: dict[str, Any], tmp_path: Path, line: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "r.jsonl", line)
    with pytest.raises(DataError, match=message) as caught:
        play(world, path, items(world, *THREE))
    assert str(path) in str(caught.value)


def test_one_line_per_question_and_assessor(world: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", {"assessor": "a1"}, {"assessor": "a1", "question": "WHEN? "})
    with pytest.raises(DataError, match="line 2: assessor 'a1' has a line for this question already"):
        play(world, path, items(world, *THREE))
