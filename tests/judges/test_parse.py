from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.judges.parse import Parsed, parse


@pytest.mark.parametrize(("raw", "relevant"), [
    ('```json {"relevant": true} ```', True),
    ('```json\n{"relevant": true}\n```', True),
    ('```\n{"relevant": false}\n```', False),
    ("Relevant.", True),
    ("relevant", True),
    ("not relevant", False),  # contains "relevant"
    ("Not relevant.", False),
    ('"RELEVANT": "No"', False),
    ('"relevant": true', True),
    ("{'relevant': True}", True),
    ("{'relevant': False, 'quote': ''}", False),
    ('{"relevant": "yes"}', True),
    ('  {"Relevant": false}\n', False),
    ('{"relevant": true, "quote": "10 A", "why": "states it"}', True),
])
def test_accepted(raw: str, relevant: bool) -> None:
    found = parse(raw)
    assert found is not None
    assert found.relevant is relevant


@pytest.mark.parametrize("raw", [
    "It is not irrelevant.",
    "I'd give 3 of 10 points, so 0",
    "",
    "   ",
    "irrelevant",
    "not not relevant",
    "The passage is relevant.",
    "Relevant, but not to this question",
    'Sure! {"relevant": true}',
    '{"relevant": true} because it says so',
    '{"relevant": true}\n{"relevant": false}',
    '```json {"relevant": true} ``` ```json {"relevant": false} ```',
    '{"relevant": true, "relevant": false}',
    '{"relevant": true, "RELEVANT": true}',  # even where they agree: not the form asked for
    '{"relevant": 1}',
    '{"relevant": 0.9}',
    '{"relevant": null}',
    '{"relevant": "maybe"}',
    '{"relevant": [true]}',
    '{"irrelevant": true}',
    '[{"relevant": true}]',
    '{"verdict": {"relevant": true}}',
    '{"relevant": true, "quote": "cut off he',
    "{'relevant': __import__('os')}",
    "{" * 5000 + "}" * 5000,
    "[" * 5000,
])
def test_everything_else_is_unparsed(raw: str) -> None:
    assert parse(raw) is None


def test_quote_is_carried() -> None:
    assert parse('{"relevant": true, "quote": " It is 10 A. "}') == Parsed(True, "It is 10 A.")
    assert parse('{"relevant": false, "quote": ""}') == Parsed(False, None)
    assert parse('{"relevant": true, "quote": 7}') == Parsed(True, None)


@given(st.booleans(), st.text())
def test_what_the_prompt_asks_for_is_read_back(relevant: bool, quote: str) -> None:
    for ascii_only in (True, False):
        raw = json.dumps({"relevant": relevant, "quote": quote}, ensure_ascii=ascii_only)
        assert parse(raw) == Parsed(relevant, quote.strip() or None)


@given(st.text())
def test_prose_never_becomes_a_verdict(text: str) -> None:
    # Whatever stands before an answer, prose with a letter in it makes the whole unreadable.
    found = parse(f"I think {text} so my answer is: relevant")
    assert found is None
