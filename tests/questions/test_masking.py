"""Masks hide what is personal, keep what only looks like it, and do nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.questions import mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "why was jane.doe@example.org charged twice for order 4025551234?",
            "why was [email] charged twice for order 4025551234?",
        ),
        ("jürgen@müller.de, o'neil+x@a-b.co.uk.", "[email], [email]."),
        ("https://user:pw@host.example.org/x", "https://user:[email]/x"),
        ("<a@b.example>", "<[email]>"),
        # 4111 1111 1111 1111, 3782 822463 10005 and 6011... are the issuers' published test numbers.
        ('{"q": 4111111111111111}', '{"q": [card]}'),
        ("pay 12 4111 1111 1111 1111 99", "pay 12 [card] 99"),
        ("3782-822463-10005 declined", "[card] declined"),
        ("6011000990139424", "[card]"),
        # DE89… and GB82… are the registry's own examples.
        ("iban DE89 3704 0044 0532 0130 00 please", "iban [iban] please"),
        ("AB12 to gb82west12345698765432.", "AB12 to [iban]."),
        ("call +49 30 1234567 or 0049 30 1234567", "call [phone] or [phone]"),
        ("(402) 555-1234, 402.555.1234 402 555 1234", "[phone], [phone] [phone]"),
        ("+1 (402) 555-1234 ext 5", "[phone] ext 5"),
        ("06 12 34 56 78", "[phone]"),
        ("0171 1234567; 030/1234567", "[phone]; [phone]"),
        ("my phone number is 4025551234", "my phone number is [phone]"),
        ("Tel.: 4025551234", "Tel.: [phone]"),
    ],
)
def test_personal_data_is_masked(text: str, masked: str) -> None:
    assert mask(text) == (masked, masked.count("["))


@pytest.mark.parametrize(
    "text",
    [
        "order 4025551234",
        "error 10.0.0.1 port 8443",
        "version 120.0.6099.109",
        "invoice 2024-10-12 and 2024-10-13 10:20:30",
        "ISBN 978-3-16-148410-0",
        "4111111111111112",  # one more than a valid card: Luhn fails
        "1234567812345670",  # passes Luhn, but no issuer starts with 1
        "0a4111111111111111",  # part of a longer word
        "3.4111111111111111",
        "DE89 3704 0044 0532 0130 01",  # checksum fails
        "ZZ89 3704 0044 0532 0130 00",  # no such country
        "SKU 402-555-12345, part AB-402-555-1234",
        "react@18.2.0, root@localhost",
        "iphone 12345678",
        "09-2024-1234",
        "1 000 000 000 users",
        "why?",
        "",
    ],
)
def test_lookalikes_are_kept(text: str) -> None:
    assert mask(text) == (text, 0)


_PIECES = st.sampled_from(
    [
        "a@b.example",
        "4111 1111 1111 1111",
        "DE89370400440532013000",
        "+49 30 1234567",
        "402-555-1234",
        "tel",
        "phone",
        " ",
        "-",
        ".",
        "0",
        "7",
        "@",
        "x",
        "[",
        "]",
        ":",
        "/",
        "+",
        "(",
        ")",
    ]
)


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=12).map("".join)))
def test_masking_twice_is_masking_once(text: str) -> None:
    masked, count = mask(text)
    assert mask(masked) == (masked, 0)
    assert (count == 0) == (masked == text)


@given(st.integers(0, 10**9 - 1))
def test_luhn_agrees_with_its_definition(middle: int) -> None:
    # 16 digits from 4, "00000", nine free ones and the check digit: of ten check digits exactly one is valid.
    stem = f"4{0:05d}{middle:09d}"
    valid = [digit for digit in range(10) if mask(f"{stem}{digit}")[1] == 1]
    total = sum(sum(map(int, str(int(d) * (2 if i % 2 == 0 else 1)))) for i, d in enumerate(stem))
    assert valid == [-total % 10]


def test_long_text_takes_linear_time() -> None:
    for text in (
        "a" * 300_000 + "1",
        "1" * 300_000,
        "1 " * 50_000,
        "a." * 100_000 + "@",
        "DE89" * 50_000,
        "+" * 100_000 + "1",
    ):
        assert mask(text)[1] == 0
