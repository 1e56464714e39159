"""What the reviewer reads, and the page's edge: UTF-16 code units against code points."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.review.passages import Passages, asked, from_plain, points, to_plain, units


@pytest.mark.parametrize(("text", "word", "python", "browser"), [
    ("\U0001F4A9 reset the router", "reset", 2, 3),
    ("a\r\nb\r\nfee", "fee", 6, 6),
    ("cafe\u0301 hours", "hours", 6, 6),
    ("caf\u00e9 hours", "hours", 5, 5),
])
def test_offsets_by_hand(text: str, word: str, python: int, browser: int) -> None:
    assert text.index(word) == python
    assert units(text, python) == browser
    assert points(text, browser) == python


@given(st.text(), st.data())
def test_units_and_points_invert_each_other(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    unit = units(text, at)
    assert unit == len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
    assert points(text, unit) == at


def test_the_middle_of_a_character_and_beyond_the_text_are_nowhere() -> None:
    assert points("\U0001F4A9", 1) is None
    assert points("abc", 4) is None
    assert points("", 0) == 0


def test_context_without_documents_comes_from_touching_spans(make: Any) -> None:
    text = "One is first. Two is second. Three is third. Four is last."
    docs = make.documents(d=text)
    spans = make.spans(docs, [("d", 0, 28), ("d", 28, 44), ("d", 45, 58)])
    book = Passages(spans=spans)
    middle = book.passage("d#28-44")
    assert middle.before == "Two is second."
    assert middle.after == ""  # the next span does not touch this one
    assert book.passage("d#0-28").before == ""
    assert book.passage("d#0-28").after == "Three is third."


def test_evidence_needs_a_place_in_the_document(make: Any) -> None:
    docs = make.documents(d="0123456789 words here.")
    row = make.spans(docs, [("d", 11, 22)]).to_pylist()[0]
    from goldset.schemas import from_rows

    assert Passages(spans=from_rows("spans", [row])).passage("d#11-22").in_document([(0, 5)]) == [(11, 16)]
    for change in ({"start": None, "end": None, "offsets": "absent"}, {"end": 30}, {"offsets": "mismatched"}):
        book = Passages(spans=from_rows("spans", [row | change]))
        assert book.passage("d#11-22").in_document([(0, 5)]) == []


def test_plain_values_round_trip(make: Any) -> None:
    docs = make.documents(d="A first one. A second one.")
    passage = Passages(spans=make.spans(docs, [("d", 0, 26)]), documents=docs).passage("d#0-26")
    assert from_plain(to_plain(passage)) == passage


def test_twins_have_one_representative_and_unknown_spans_are_an_error(make: Any) -> None:
    docs = make.documents(a="same text", b="same text")
    book = Passages(spans=make.spans(docs, [("a", 0, 9), ("b", 0, 9)], {"b#0-9": "a#0-9"}))
    assert book.representative("b#0-9") == "a#0-9"
    with pytest.raises(DataError, match="span 'c#0-9' is in the queue but not in the table 'spans'"):
        book.passage("c#0-9")


def test_questions_carry_their_turns(make: Any) -> None:
    table = make.questions("and on Sundays?")
    rows = table.to_pylist()
    rows[0]["context"] = [{"role": "user", "text": "when are you open?"}]
    from goldset.schemas import from_rows

    found = asked(from_rows("questions", rows))[rows[0]["question_id"]]
    assert found.turns == (("user", "when are you open?"),)
