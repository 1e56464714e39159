"""Decisions follow their text into documents that changed: cases worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from goldset.gold import follow_edits
from goldset.schemas import from_rows
from goldset.text import text_sha256
from tests.gold.test_carry import said, spans_of, table

# Four sentences: [0,31) [32,66) [67,98) [99,132).
OLD = ("The ferry runs daily in spring. It stops at the old northern pier. "
       "Dogs travel for free on a lead. Bicycles cost three crowns a day.")
FIRST, SECOND, FOURTH = (0, 31), (32, 66), (99, 132)
NOTICE = "Prices may change. "


def documents(**texts: str | None) -> pa.Table:
    return from_rows("documents", [
        {"doc_id": name, "text": text, "title": None, "url": None, "metadata": "{}",
         "sha256": None if text is None else text_sha256(text)} for name, text in texts.items()])


def followed(now: pa.Table, *decisions: dict[str, Any], old: dict[str, str] | None = None) -> Any:
    rows = [row for name, text in (old or {"d": OLD}).items()
            for row in spans_of((0, len(text)), text=text, doc=name, sha=text_sha256(text))]
    return follow_edits(decisions=from_rows("decisions", list(decisions)), spans=table(rows), documents=now,
                        pairs=[("q", row["span_id"]) for row in decisions])


def yes(*evidence: tuple[int, int]) -> dict[str, Any]:
    return said(f"d#0-{len(OLD)}", True, *evidence)


def test_the_sentences_are_where_the_cases_say() -> None:
    assert [OLD[slice(*part)] for part in (FIRST, SECOND, FOURTH)] == [
        "The ferry runs daily in spring.", "It stops at the old northern pier.", "Bicycles cost three crowns a day."]


def test_a_yes_moves_with_its_sentences() -> None:
    found = followed(documents(d=NOTICE + OLD), yes(SECOND, FOURTH))
    (row,), (span,) = found.decisions.to_pylist(), found.spans.to_pylist()
    # All is 19 code points further on; the new span is what lies between the first and the last of them.
    assert row["evidence"] == [{"start": 51, "end": 85}, {"start": 118, "end": 151}]
    assert (row["span_id"], row["relevant"], row["label_ids"]) == (span["span_id"], True, [f"label d#0-{len(OLD)}"])
    assert (span["doc_id"], span["start"], span["end"]) == ("d", 51, 151)
    assert span["text"] == OLD[32:132]
    assert len(found.changed) == 0


def test_a_changed_sentence_is_no_yes() -> None:
    found = followed(documents(d=OLD.replace("three crowns", "four crowns")), yes(SECOND, FOURTH))
    assert found.decisions.to_pylist() == [yes(SECOND, FOURTH)]
    (row,) = found.changed.to_pylist()
    assert [part["end"] - part["start"] for part in row["evidence"]] == [34, 32]
    assert found.origin == {("q", row["span_id"]): ("q", f"d#0-{len(OLD)}")}


def test_what_is_gone_stays_as_it_is() -> None:
    gone = OLD.replace(" Bicycles cost three crowns a day.", "")
    for now in (documents(d=gone), documents(d=None), documents(e=None)):
        found = followed(now, yes(SECOND, FOURTH))
        assert found.decisions.to_pylist() == [yes(SECOND, FOURTH)]
        assert (len(found.changed), len(found.spans)) == (0, 0)


def test_a_document_that_did_not_change_takes_no_part() -> None:
    # The sentence stood in e before and stands there still; d lost it. Nothing has moved.
    sentence = OLD[slice(*FOURTH)]
    lost = OLD.replace(f" {sentence}", "")
    found = followed(documents(d=lost, e=sentence), yes(FOURTH), old={"d": OLD, "e": sentence})
    assert found.decisions.to_pylist() == [yes(FOURTH)]
    # A new document with it is where it went.
    found = followed(documents(d=lost, f=sentence), yes(FOURTH))
    assert found.spans.column("doc_id").to_pylist() == ["f"]


def test_only_the_yes_that_are_named_are_looked_for() -> None:
    no = said(f"d#0-{len(OLD)}", False)
    assert followed(documents(d=NOTICE + OLD), no).decisions.to_pylist() == [no]
