"""Personal data in questions: replaced by typed placeholders before anything is stored or sent.

Masked: e-mail addresses; phone numbers that are written as such (international prefix, usual grouping, or a word
like "phone" before them); payment card numbers (issuer prefix and Luhn check); IBANs (length of the country and
checksum). Kept on purpose: bare digit runs such as order numbers, IP addresses, versions. Limits: names, postal
addresses, spelled-out addresses ("jane at example dot org") and bare phone numbers without any cue are not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_EMAIL = re.compile(
    r"(?<![\w.+%'-])[\w.+%'-]{1,256}@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_IBAN = re.compile(r"(?<![^\W_])([A-Za-z]{2}\d{2})((?: ?[A-Za-z0-9]){11,30})")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){11,18}(?![\w-]|\.\d)")
_PHONES = (
    # +49 30 1234567, 0049 30 1234567, +1 (402) 555-1234
    re.compile(r"(?<![\w+])(?:\+|00(?=[1-9]))(?:[ ().\/-]{0,2}\d){8,15}(?!\w)"),
    # (402) 555-1234
    re.compile(r"(?<![\w-])\(\d{2,5}\)[ -]?\d{3,4}[ -]?\d{3,4}(?![\w-])"),
    # 402-555-1234, 402.555.1234, 402 555 1234
    re.compile(r"(?<![\w.-])[2-9]\d{2}([-. ])[2-9]\d{2}\1\d{4}(?![\w-]|\.\d)"),
    # 06 12 34 56 78
    re.compile(r"(?<![\w.-])0\d(?:[ .]\d{2}){4}(?![\w-]|[ .]\d)"),
    # 0171 1234567, 030/1234567, 020 7946 0958
    re.compile(r"(?<![\w./-])(?=(?:[ /-]?\d){9,12}(?!\w))0\d{1,4}[ /-]\d{3,8}(?: \d{2,8}){0,2}(?![\w/-]|[ .]\d)"),
)
_CUED_PHONE = re.compile(
    r"(\b(?:phone|telephone|tel|mobile|cell|fax|whatsapp|telefon|handy|rufnummer|téléphone|teléfono|"
    r"call me (?:at|on)|my number is)(?: number| no| nr)?(?: is| ist)?[.:# ]{0,3})(\d{7,15})(?!\w)", re.IGNORECASE)

# Length of an IBAN by country (ISO 13616 registry).
_IBAN_LENGTHS = {code[:2]: int(code[2:]) for code in (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 "
    "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 "
    "LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 "
    "SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20").split()}


def mask(text: str) -> tuple[str, int]:
    """Text -> (text with ``[email]``, ``[iban]``, ``[card]``, ``[phone]`` placeholders, number of replacements).

    Masking a masked text changes nothing.
    """
    count = 0
    if "@" not in text and not any(character.isdigit() for character in text):
        return text, 0
    while True:
        masked, found = _once(text)
        if not found:
            return text, count
        text, count = masked, count + found


def _once(text: str) -> tuple[str, int]:
    found = 0

    def put(word: str, check: Callable[[str], bool] = lambda _: True) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            nonlocal found
            if not check(match.group()):
                return match.group()
            found += 1
            return f"[{word}]"
        return replace

    def iban(match: re.Match[str]) -> str:
        nonlocal found
        rest = _after_iban(match.group())
        if rest is None:
            return match.group()
        found += 1
        return "[iban]" + rest

    def cued(match: re.Match[str]) -> str:
        nonlocal found
        found += 1
        return match.group(1) + "[phone]"

    text = _EMAIL.sub(put("email"), text)
    text = _IBAN.sub(iban, text)
    text = _CARD.sub(put("card", _is_card), text)
    for pattern in _PHONES:
        text = pattern.sub(put("phone"), text)
    return _CUED_PHONE.sub(cued, text), found


def _after_iban(candidate: str) -> str | None:
    """What follows the IBAN at the start of the candidate; None if there is none (ISO 7064 mod 97-10)."""
    length = _IBAN_LENGTHS.get(candidate[:2].upper())
    if length is None:
        return None
    positions = [i for i, character in enumerate(candidate) if character != " "]
    if len(positions) < length:
        return None
    end = positions[length - 1] + 1
    if end < len(candidate) and candidate[end] != " ":
        return None
    plain = candidate[:end].replace(" ", "").upper()
    digits = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return candidate[end:] if int(digits) % 97 == 1 else None


def _is_card(candidate: str) -> bool:
    """Digits with an issuer's prefix and length that pass the Luhn check (ISO/IEC 7812-1)."""
    digits = [int(character) for character in candidate if character.isdigit()]
    total = sum(digit if i % 2 == 0 else sum(divmod(2 * digit, 10)) for i, digit in enumerate(reversed(digits)))
    return total % 10 == 0 and _issuer("".join(map(str, digits)))


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
