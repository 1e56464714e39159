"""Personal data in questions: replaced by typed placeholders before anything is stored or sent.

Masked: e-mail addresses; phone numbers that are written as such (international prefix, usual grouping, or a word
like "phone" before them); payment card numbers (issuer prefix and Luhn check); IBANs (length of the country and
checksum). Kept on purpose: bare digit runs such as order numbers, IP addresses, versions. Limits: names, postal
addresses, spelled-out addresses ("jane at example dot org") and bare phone numbers without any cue are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_EMAIL = re.compile(r"(?<![\w.+%'-])[\w.+%'-]{1,256}@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_IBAN_START = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?= ?[A-Za-z0-9])")
_FEWEST_DIGITS = 7  # of all numbers below; most questions are done with after counting
_DIGITS = re.compile(r"(?<![\w.])\d+(?!\w|\.\d)")
_PHONES = (
    # +49 30 1234567, 0049 30 1234567, +1 (402) 555-1234
    re.compile(r"(?<![\w+])(?<!\d )(?:\+|00(?=[1-9]))(?:[ ().\/-]{0,2}\d){8,15}(?!\w)"),
    # (402) 555-1234
    re.compile(r"(?<![\w-])\(\d{2,5}\)[ -]?\d{3,4}[ -]?\d{3,4}(?![\w-])"),
    # 402-555-1234, 402.555.1234, 402 555 1234
    re.compile(r"(?<![\w.-])(?<!\d )[2-9]\d{2}([-. ])[2-9]\d{2}\1\d{4}(?![\w-]|\.\d)"),
    # 06 12 34 56 78
    re.compile(r"(?<![\w.-])(?<!\d )0[1-9](?:[ .]\d{2}){4}(?![\w-]|[ .]\d)"),
    # 0171 1234567, 030/1234567, 020 7946 0958
    re.compile(
        r"(?<![\w./-])(?<!\d )(?=(?:[ /-]?\d){9,12}(?!\w))0[1-9]\d{0,3}[ /-]\d{3,8}(?: \d{2,8}){0,2}(?![\w/-]|[ .]\d)"
    ),
)
_CUED_PHONE = re.compile(
    r"(\b(?:phone|telephone|tel|mobile|cell|fax|whatsapp|telefon|handy|rufnummer|téléphone|teléfono|"
    r"call me (?:at|on)|my number is)(?: number| no| nr)?(?: is| ist)?[.:# ]{0,3})(\d{7,15})(?!\w)",
    re.IGNORECASE,
)

# Length of an IBAN by country (ISO 13616 registry).
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL", 19: "MK SI", 20: "AT BA EE KZ LT LU XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU", 31: "MT SC", 32: "LC",
    }.items()
    for country in countries.split()
}  # fmt: skip


def mask(text: str) -> tuple[str, int]:
    """Text -> (text with ``[email]``, ``[iban]``, ``[card]``, ``[phone]`` placeholders, number of replacements).

    Masking a masked text changes nothing.
    """
    count = 0
    if "@" not in text and sum(map(str.isdigit, text)) < _FEWEST_DIGITS:
        return text, 0
    while True:
        masked, found = _once(text)
        if not found:
            return text, count
        text, count = masked, count + found


def _once(text: str) -> tuple[str, int]:
    found = 0
    text, count = _EMAIL.subn("[email]", text)
    found += count
    text, count = _put(text, _ibans(text), "[iban]")
    found += count
    text, count = _put(text, _cards(text), "[card]")
    found += count
    for pattern in _PHONES:
        text, count = pattern.subn("[phone]", text)
        found += count
    text, count = _CUED_PHONE.subn(r"\1[phone]", text)
    return text, found + count


def _put(text: str, ranges: Iterable[tuple[int, int]], placeholder: str) -> tuple[str, int]:
    pieces, at, count = [], 0, 0
    for start, end in ranges:
        if start >= at:
            pieces += [text[at:start], placeholder]
            at, count = end, count + 1
    return "".join([*pieces, text[at:]]), count


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of IBANs: length of the country, checksum by ISO 7064 mod 97-10; single spaces between groups."""
    for match in _IBAN_START.finditer(text):
        length = _IBAN_LENGTHS.get(match.group()[:2].upper())
        if length is None:
            continue
        body = re.compile(rf"(?: ?[A-Za-z0-9]){{{length}}}(?![^\W_])").match(text, match.start())
        if body is None:
            continue
        plain = body.group().replace(" ", "").upper()
        digits = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
        if int(digits) % 97 == 1:
            yield body.span()


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of payment card numbers: groups of digits, a space or hyphen between, that pass Luhn's check."""
    groups = [match.span() for match in _DIGITS.finditer(text)]
    for i, (start, _) in enumerate(groups):
        digits, end = "", None
        for j in range(i, len(groups)):
            if j > i and text[groups[j - 1][1] : groups[j][0]] not in (" ", "-"):
                break
            digits += text[slice(*groups[j])]
            if len(digits) > 19:
                break
            if len(digits) >= 12 and _is_card([int(digit) for digit in digits]):
                end = groups[j][1]
        if end is not None:
            yield start, end


def _is_card(digits: list[int]) -> bool:
    """An issuer's prefix and length, and the check digit of ISO/IEC 7812-1 (Luhn)."""
    doubled = [digit if i % 2 == 0 else sum(divmod(2 * digit, 10)) for i, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and _issuer("".join(map(str, digits)))


def _issuer(number: str) -> bool:
    length, two, four = len(number), int(number[:2]), int(number[:4])
    return (
        (number[0] == "4" and length in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and length == 16)
        or (two in (34, 37) and length == 15)
        or (two in (30, 36, 38, 39) and length == 14)
        or (two in (35, 62, 64, 65) and 16 <= length <= 19)
        or (four == 6011 and length == 16)
        or (two in (50, 56, 57, 58, 63, 67) and length >= 12)
    )
