"""One tokenizer, three normal forms, hashes that parts cannot run through."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.errors import MissingExtra
from goldset.text import (
    STEMMERS,
    STOP_WORDS,
    Tokenizer,
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
    ("人々の", ["人々", "々の"]),  # the mark that repeats a character is one
    ("火", ["火"]),  # a lone character of such a script is a word
    ("x火y 山", ["x", "火", "y", "山"]),
    ("รถไฟ", ["รถ", "ถไ", "ไฟ"]),
    ("서울 지하철", ["서울", "지하철"]),  # Korean has spaces
    ("नमस्ते دنیا", ["नमस्ते", "دنیا"]),
    ("", []),
])
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_stems_and_stop_words_are_off_unless_asked_for() -> None:
    text = "The printers aren't printing of the IT-Office"
    assert Tokenizer()(text) == tokenize(text) == ["the", "printers", "aren", "t", "printing", "of", "the", "it",
                                                   "office"]
    # bm25s's English list is Lucene's: the, of and it are on it, "aren" and "t" are not.
    assert Tokenizer("en", stop_words=True)(text) == ["printers", "aren", "t", "printing", "office"]
    # Snowball English: printers -> printer, printing -> print, office -> offic.
    assert Tokenizer("en", stem=True, stop_words=True)(text) == ["printer", "aren", "t", "print", "offic"]
    # The stop word goes before it is stemmed: German "alle" is on the list, Snowball would make it "all".
    assert Tokenizer("de", stem=True, stop_words=True)("Alle Häuser für das Haus") == ["haus", "haus"]
    assert Tokenizer("en", stem=True)("低头 running") == ["低头", "run"]


def test_every_language_offered_has_a_stemmer_or_a_list() -> None:
    for language in STEMMERS:
        assert Tokenizer(language, stem=True)("x1") == ["x1"]
    for language in STOP_WORDS:
        assert len(Tokenizer(language, stop_words=True)._stopped) > 30


@pytest.mark.parametrize(("tokenizer", "module", "message"), [
    (Tokenizer("en", stem=True), "Stemmer", "stemming needs the extra 'words'"),
    (Tokenizer("en", stop_words=True), "bm25s", "leaving out stop words needs the extra 'words'"),
])
def test_a_missing_library_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer, module: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for use in (lambda: replace(tokenizer)("text"), lambda: replace(tokenizer).version):
        with pytest.raises(MissingExtra, match=message):
            use()


def test_the_version_of_a_tokenizer_has_all_that_can_change_its_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [tokenizer.version for tokenizer in (
        Tokenizer(), Tokenizer("en", stem=True), Tokenizer("de", stem=True), Tokenizer("en", stop_words=True),
        Tokenizer("de", stop_words=True), Tokenizer("en", stem=True, stop_words=True))]
    monkeypatch.setattr("Stemmer.version", lambda: "0.1")  # another release, other rules
    versions.append(Tokenizer("en", stem=True).version)
    monkeypatch.setattr("bm25s.stopwords.STOPWORDS_EN", ("the",))
    versions.append(Tokenizer("en", stop_words=True).version)
    monkeypatch.setattr("goldset.text.TOKENIZER_VERSION", "another/2")
    versions.append(Tokenizer().version)
    assert len(set(versions)) == 9


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
