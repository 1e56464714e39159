"""Text: one tokenizer, content hashes, and three named normal forms.

The normal forms differ on purpose, and nothing else in the project normalises text:

* ``question_key``: two log lines are the same question (case, width, white space, closing punctuation ignored).
* ``twin_key``: two passages are the same text (white space and Unicode composition ignored, case kept).
* ``quote_key``: a quote occurs in a passage (case, width, white space, kinds of quotes and dashes ignored).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from goldset.errors import MissingExtra

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufeff\u00ad]")
_CLOSING = "?!.,;:…？！。， "
_QUOTES = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
                         "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-"})

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, CJK ideographs.
_UNSPACED = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
             "\U00020000-\U0003ffff")
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]+|[\u0300-\u036f\u0900-\u0dff]+)+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+")

TOKENIZER_VERSION = "words-casefold-bigrams/2"


def tokenize(text: str) -> list[str]:
    """Text -> tokens: Unicode words, case folded; character bigrams for scripts without spaces.

    A lone character of such a script is its own token. Width variants are folded (NFKC). Text without a word
    or ideograph (emoji, punctuation) has no token.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _TOKEN.findall(folded)
    if not _UNSPACED_RUN.search(folded):
        return words
    tokens: list[str] = []
    for word in words:
        if _UNSPACED_RUN.match(word) and len(word) > 1:
            tokens.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            tokens.append(word)
    return tokens


# Lists of function words in bm25s: Lucene's for English, Snowball's for most others. Not its Chinese one: we cut
# Chinese into bigrams, and a bigram that looks like a listed word often is not that word.
STOP_WORDS = {
    "da": "DANISH", "de": "GERMAN", "en": "EN", "es": "SPANISH", "fr": "FRENCH", "it": "ITALIAN", "ko": "KOREAN",
    "nl": "DUTCH", "no": "NORWEGIAN", "pt": "PORTUGUESE", "ru": "RUSSIAN", "sv": "SWEDISH", "tr": "TURKISH",
}
STEMMERS = frozenset({
    "ar", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi", "fr", "ga", "hi", "hu", "hy", "id",
    "it", "lt", "ne", "nl", "no", "pl", "pt", "ro", "ru", "sr", "st", "sv", "ta", "tr", "yi",
})


@dataclass(frozen=True)
class Tokenizer:
    """``tokenize``, then stop words out and stems in, if asked for; both by the rules of one language.

    Attributes:
        language: ISO 639-1 code, one of STEMMERS or STOP_WORDS; only they read it.
        stem: words to Snowball stems (PyStemmer).
        stop_words: leave out the language's function words (bm25s's list), as a whole token, before stemming.

    Raises:
        MissingExtra: the library behind it is not installed.
    """

    language: str | None = None
    stem: bool = False
    stop_words: bool = False

    def __call__(self, text: str) -> list[str]:
        """Text -> tokens."""
        words = tokenize(text)
        if self.stop_words:
            words = [word for word in words if word not in self._stopped]
        return list(self._stemmer.stemWords(words)) if self.stem else words

    @cached_property
    def version(self) -> str:
        """All that can change the tokens, the libraries' rules included: part of the key of an index."""
        parts = [TOKENIZER_VERSION]
        if self.stop_words:
            parts.append(f"stop-{self.language}-{content_hash(sorted(self._stopped))[:8]}")
        if self.stem:
            parts.append(f"snowball-{self.language}-{_snowball().version()}")
        return "+".join(parts)

    @cached_property
    def _stemmer(self) -> Any:
        return _snowball().Stemmer(self.language)

    @cached_property
    def _stopped(self) -> frozenset[str]:
        try:
            from bm25s import stopwords
        except ModuleNotFoundError as error:
            raise MissingExtra("leaving out stop words", "words") from error
        cut = (tokenize(word) for word in getattr(stopwords, f"STOPWORDS_{STOP_WORDS[self.language or '']}"))
        return frozenset(tokens[0] for tokens in cut if len(tokens) == 1)


def _snowball() -> Any:
    try:
        import Stemmer
    except ModuleNotFoundError as error:
        raise MissingExtra("stemming", "words") from error
    return Stemmer


def count_words(text: str) -> int:
    """Words a person reads: white-space separated words, or two characters of a script without spaces."""
    unspaced = len(_UNSPACED_RUN.findall(text))
    return len(_UNSPACED_RUN.sub(" ", text).split()) + (unspaced + 1) // 2


def word_ranges(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of the words that count_words counts, in order."""
    return [match.span() for match in _WORD.finditer(text)]


def _squeeze(text: str) -> str:
    visible = text if text.isascii() else _INVISIBLE.sub("", text)
    return " ".join(visible.split())


def question_key(text: str) -> str:
    """The form under which two log lines are the same question."""
    return _squeeze(unicodedata.normalize("NFKC", text).casefold()).strip(_CLOSING)


def twin_key(text: str) -> str:
    """The form under which two passages are the same text."""
    return _squeeze(unicodedata.normalize("NFC", text))


def quote_key(text: str) -> str:
    """The form in which a quote is looked for in a passage."""
    return _squeeze(unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold())


def standing_alone(pattern: str) -> re.Pattern[str]:
    """A pattern that matches only where no letter or digit touches the match; case does not count.

    Scripts without spaces may touch it: there a code stands between characters as a word elsewhere between spaces.
    """
    touching = rf"[^\W{_UNSPACED}]"
    return re.compile(rf"(?<!{touching})(?:{pattern})(?!{touching})", re.IGNORECASE)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: the same value gives the same text. NaN is refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(*parts: Any) -> str:
    """32 hex digits over any JSON-like values; parts cannot run into each other."""
    return hashlib.blake2b(canonical_json(parts).encode(), digest_size=16).hexdigest()


def text_sha256(text: str) -> str:
    """SHA-256 of the stored text in UTF-8 (lone surrogates kept)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def unit_hash(*parts: Any) -> float:
    """A permanent random number in [0, 1): 53 bits of the hash of the parts (METHODS 0)."""
    return (int(content_hash(*parts)[:16], 16) >> 11) / (1 << 53)


def question_id(text: str, context: Sequence[tuple[str, str]] = ()) -> str:
    """The id of a question: hash of its question_key and its earlier turns, ``(role, text)`` each."""
    turns = [[role, question_key(turn)] for role, turn in context]
    return "q" + content_hash("question", question_key(text), turns)[:16]
