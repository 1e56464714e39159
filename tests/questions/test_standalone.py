"""Greetings, fuzzing strings and follow-ups by rule; keyword and code queries are questions like any other."""

from __future__ import annotations

import pytest

from goldset.questions.standalone import is_followup, is_fuzzing, is_greeting


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello!",
        "hey there",
        "Thank you very much!",
        "That is fine. Thank you!",
        "Guten Morgen",
        "merci",
        "你好",
        "ok",
    ],
)
def test_greetings(text: str) -> None:
    assert is_greeting(text)


@pytest.mark.parametrize(
    "text", ["hello world program", "thanks giving date", "hi-fi", "all good things", "the", "vpn", ""]
)
def test_no_greetings(text: str) -> None:
    assert not is_greeting(text)


def test_fuzzing_strings_but_not_questions_about_them() -> None:
    assert all(map(is_fuzzing, ["' OR 1=1--", "<script>alert(1)</script>", "../../etc/passwd", "x' UNION SELECT a"]))
    assert not any(
        map(is_fuzzing, ["what does ' OR 1=1-- do in a login form?", "how to reset", "union select committee"[:5]])
    )


@pytest.mark.parametrize(
    "text",
    [
        "and the second one?",
        "what about bitcoins?",
        "Why?",
        "how do I do that?",
        "When did it take place?",
        "is it free?",
        "how old is she",
        "tell me more",
        "Does it support the Commonwealth of Nations?",
        "¿Y el segundo?",
        "Und im Winter?",
        "Yes, I do. Does it have floods?",
        "what is the other one",
    ],
)
def test_followups(text: str) -> None:
    assert is_followup(text, has_context=False)


@pytest.mark.parametrize(
    "text",
    [
        "404 error",
        "asdfgh",
        "vpn",
        "AB-1209",
        "Wie setze ich zurück?",
        "y combinator",
        "e coli symptoms",
        "and/or meaning",
        "My router blinks, how do I reset it?",
        "is it safe to mix bleach and vinegar",
        "how long does it take to reset",
        "does it rain in seattle",
        "what is toolchain and how do I view it",
        "how",
        "examples",
        "How do I find this error code 0x80070005?",
    ],
)
def test_questions_that_stand_alone(text: str) -> None:
    assert not is_followup(text, has_context=False)


def test_fragments_need_a_conversation_to_be_one() -> None:
    for text in ("in winter", "how", "example"):
        assert is_followup(text, has_context=True)
        assert not is_followup(text, has_context=False)
