"""Carry-forward between chunkings, on cases worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from goldset.gold import carry_decisions
from goldset.schemas import from_rows
from goldset.text import content_hash, twin_key

# Three sentences: [0,20) [21,41) [42,62).
TEXT = "The ferry runs daily. It stops at the pier. Dogs travel for free."
FIRST, SECOND, THIRD = (0, 21), (22, 43), (44, 65)
Range = tuple[int, int]


def spans_of(*places: Range, text: str = TEXT, doc: str = "d", sha: str | None = "v1") -> list[dict[str, Any]]:
    return [{"span_id": f"{doc}#{start}-{end}", "doc_id": doc, "start": start, "end": end, "text": text[start:end],
             "heading": None, "doc_sha256": sha, "text_hash": content_hash(text[start:end]),
             "twin_group": f"{doc}#{start}-{end}", "words": 4, "offsets": "verified"} for start, end in places]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    groups: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: str(row["span_id"])):
        groups.setdefault(twin_key(row["text"]), row["span_id"])
    return from_rows("spans", [{**row, "twin_group": groups[twin_key(row["text"])]} for row in rows])


def said(span: str, relevant: bool | None, *evidence: Range, status: str = "decided") -> dict[str, Any]:
    return {"question_id": "q", "span_id": span, "relevant": relevant, "status": status, "basis": "human",
            "evidence": [{"start": start, "end": end} for start, end in evidence],
            "evidence_source": "selected" if evidence else None, "label_ids": [f"label {span}"]}


def carried(new: list[dict[str, Any]], old: list[dict[str, Any]], *decisions: dict[str, Any],
            asked: str | None = None) -> tuple[bool | None, list[Range]]:
    pair = {"question_id": ["q"], "span_id": [asked or new[0]["span_id"]]}
    row = carry_decisions(pairs=pa.table(pair), spans=table(new), decisions=from_rows("decisions", list(decisions)),
                          earlier_spans=table(old)).to_pylist()[0]
    assert (row["status"] == "open") is (row["relevant"] is None)
    return row["relevant"], [(part["start"], part["end"]) for part in row["evidence"]]


OLD = spans_of((0, 22), (22, 65))


def test_the_sentences_are_where_the_cases_say() -> None:
    assert [TEXT[slice(*part)] for part in (FIRST, SECOND, THIRD)] == [
        "The ferry runs daily.", "It stops at the pier.", "Dogs travel for free."]


@pytest.mark.parametrize(("place", "expected"), [
    ((0, 44), (True, [SECOND])),   # the evidence, [22,43), lies in the new span
    ((22, 43), (True, [SECOND])),
    ((0, 40), (None, [])),         # three code points of it are cut off
    ((44, 65), (None, [])),        # part of the yes, without its evidence: nobody said no to this part
    ((0, 21), (False, [])),        # wholly in the refused span
    ((2, 20), (False, [])),
])
def test_yes_by_evidence_no_by_cover_else_ask(place: Range, expected: tuple[bool | None, list[Range]]) -> None:
    assert carried(spans_of(place), OLD, said("d#0-22", False), said("d#22-65", True, SECOND)) == expected


def test_all_ranges_of_an_answer_must_lie_inside() -> None:
    yes = said("d#0-65", True, FIRST, THIRD)
    assert carried(spans_of((0, 44)), spans_of((0, 65)), yes) == (None, [])
    assert carried(spans_of((0, 65)), spans_of((0, 65)), yes) == (True, [FIRST, THIRD])


def test_a_yes_without_evidence_must_lie_inside_whole() -> None:
    assert carried(spans_of((0, 65)), spans_of((22, 43)), said("d#22-43", True)) == (True, [])
    assert carried(spans_of((0, 40)), spans_of((22, 43)), said("d#22-43", True)) == (None, [])


def test_refused_spans_cover_together_but_not_across_a_sentence() -> None:
    at_sentence, through = spans_of((0, 22), (22, 65)), spans_of((0, 30), (30, 65))
    assert carried(spans_of((0, 65)), at_sentence, said("d#0-22", False), said("d#22-65", False)) == (False, [])
    # Nobody has read "It stops at the pier." whole.
    assert carried(spans_of((0, 65)), through, said("d#0-30", False), said("d#30-65", False)) == (None, [])
    # A gap: the second sentence was not read. White space alone is no gap.
    assert carried(spans_of((0, 65)), spans_of(FIRST, THIRD), said("d#0-21", False), said("d#44-65", False)) == (
        None, [])
    assert carried(spans_of((0, 65)), spans_of(FIRST, SECOND, THIRD),
                   *(said(f"d#{a}-{b}", False) for a, b in (FIRST, SECOND, THIRD))) == (False, [])


@pytest.mark.parametrize("status", ["open", "conflict", "cant_tell"])
def test_only_what_is_decided_answers(status: str) -> None:
    assert carried(spans_of((0, 21)), OLD, said("d#0-22", None, status=status)) == (None, [])


def test_another_version_of_the_document_answers_nothing() -> None:
    assert carried(spans_of((0, 20), sha="v2"), OLD, said("d#0-22", False)) == (None, [])
    # Without documents the texts decide.
    same, other = spans_of((0, 20), sha=None), spans_of((0, 20), text=TEXT.replace("daily", "never"), sha=None)
    old = spans_of((0, 22), sha=None)
    assert carried(same, old, said("d#0-22", False)) == (False, [])
    assert carried(other, old, said("d#0-22", False)) == (None, [])


def test_the_same_text_elsewhere_is_answered_at_its_place() -> None:
    # The second document is the first behind ten other code points.
    moved = "Shipping. " + TEXT
    new = spans_of((10, 75), text=moved, doc="e", sha="v9")
    assert carried(new, spans_of((0, 65)), said("d#0-65", True, SECOND)) == (True, [(32, 53)])
    # And part of it, where a twin of the earlier span stands in that document.
    old = [*spans_of((0, 65)), *spans_of((10, 75), text=moved, doc="e", sha="v9")]
    assert carried(spans_of((32, 75), text=moved, doc="e", sha="v9"), old, said("d#0-65", True, SECOND)) == (
        True, [(32, 53)])
    assert carried(spans_of((54, 75), text=moved, doc="e", sha="v9"), old, said("d#0-65", False)) == (False, [])


def test_a_twin_of_the_asked_span_answers_for_it() -> None:
    # "d" was read in another cut; the asked span is its copy in "c", which nobody has read. Evidence comes back in "c".
    moved = "Shipping. " + TEXT
    new = [*spans_of((10, 31), text=moved, doc="c", sha="v9"), *spans_of((0, 21))]
    assert carried(new, OLD, said("d#0-22", True, FIRST)) == (True, [(10, 31)])
    assert carried(new, OLD, said("d#0-22", False)) == (False, [])


def test_labels_behind_an_answer_are_named() -> None:
    pair = pa.table({"question_id": ["q", "other"], "span_id": ["d#0-65", "d#0-65"]})
    rows = carry_decisions(pairs=pair, spans=table(spans_of((0, 65))), earlier_spans=table(OLD), decisions=from_rows(
        "decisions", [said("d#0-22", False), said("d#22-65", False)])).to_pylist()
    assert rows[0]["label_ids"] == ["label d#0-22", "label d#22-65"]
    assert (rows[1]["status"], rows[1]["label_ids"]) == ("open", [])
