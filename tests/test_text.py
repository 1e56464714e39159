"""One tokenizer, three normal forms, hashes that parts cannot run through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.text import (
    content_hash,
    count_words,
    question_id,
    question_key,
    quote_key,
    tokenize,
    twin_key,
    unit_hash,
)


@pytest.mark.parametrize(("text", "tokens"), [
    ("The Zephyr-9 valve!", ["the", "zephyr", "9", "valve"]),
    ("AB-1209 naïve Straße", ["ab", "1209", "naïve", "strasse"]),
    ("低头思故乡", ["低头", "头思", "思故", "故乡"]),
    ("Wi-Fi の設定", ["wi", "fi", "の設", "設定"]),
    ("🍟➕🍔 ?!", []),
    ("ＶＰＮ", ["vpn"]),
    ("", []),
])
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_the_three_normal_forms_differ_where_they_should() -> None:
    assert question_key("Reset  Password??") == question_key("reset password")
    assert question_key("C++ vs C#") != question_key("C vs C")
    assert twin_key("Nike \n shoes") == "Nike shoes" != twin_key("nike shoes")
    assert twin_key("cafe\u0301") == twin_key("café")
    assert quote_key("“Don’t” – ever") == "\"don't\" - ever"


def test_question_ids_depend_on_text_form_and_context() -> None:
    assert question_id("How so?") == question_id("how so")
    assert question_id("how so", [("user", "a")]) != question_id("how so")
    assert question_id("how so", [("user", "a")]) != question_id("how so", [("agent", "a")])


def test_words_are_what_a_person_reads() -> None:
    assert count_words("reset the router-2 now") == 4
    assert count_words("床前明月光") == 3  # five ideographs, two a word, rounded up
    assert count_words("") == 0


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_hashes_are_equal_only_for_equal_parts(left: list[str], right: list[str]) -> None:
    assert (content_hash(*left) == content_hash(*right)) == (left == right)


@given(st.text())
def test_normal_forms_are_stable_and_random_numbers_in_range(text: str) -> None:
    assert question_key(question_key(text)) == question_key(text)
    assert twin_key(twin_key(text)) == twin_key(text)
    assert quote_key(quote_key(text)) == quote_key(text)
    assert 0 <= unit_hash(text) < 1
