"""Raw answer -> verdict, or "unparsed". Never a default, never a keyword fished out of prose.

Accepted, as the *whole* answer: one JSON object (in a code fence or not), the same written as a Python literal, one
``"relevant": value`` pair without braces, and the words ``relevant`` and ``not relevant``. The value is true, false,
yes or no. Everything else goes to people.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

VERSION = "parse/1"

_LONGEST = 20_000  # an object that answers is short; a literal parser is not fed more
_FENCE = re.compile(r"```[ \t]*(?:json|JSON|python)?[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL)
_WORDS = re.compile(r"(not\s+)?relevant\s*[.!]?", re.IGNORECASE)
_PAIR = re.compile(r"""(["']?)relevant\1\s*:\s*(["']?)(true|false|yes|no)\2\s*[.,]?""", re.IGNORECASE)
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Parsed:
    """A verdict and the sentence that the judge points to."""

    relevant: bool
    quote: str | None = None


def parse(raw: str) -> Parsed | None:
    """The verdict of an answer, or None if the answer is not exactly one of the accepted forms."""
    text = raw.strip()
    fence = _FENCE.fullmatch(text)
    if fence and "```" not in fence[1]:
        text = fence[1].strip()
    if len(text) > _LONGEST:
        return None
    if match := _WORDS.fullmatch(text):
        return Parsed(match[1] is None)
    if match := _PAIR.fullmatch(text):
        return Parsed(_TRUTH[match[3].casefold()])
    return _from_pairs(_pairs(text))


def _pairs(text: str) -> list[tuple[Any, Any]]:
    """Key-value pairs of a JSON object or a Python dict, repeated keys kept; empty if it is neither."""
    if not (text.startswith("{") and text.endswith("}")):
        return []
    try:
        value = json.loads(text, object_pairs_hook=list)
        return value if isinstance(value, list) else []
    except (ValueError, RecursionError):
        pass
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Dict):
            return []
        return [(ast.literal_eval(key) if key else None, ast.literal_eval(value))
                for key, value in zip(node.keys, node.values, strict=True)]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return []


def _from_pairs(pairs: list[tuple[Any, Any]]) -> Parsed | None:
    named = [(key.strip().casefold(), value) for key, value in pairs if isinstance(key, str)]
    verdicts = [value for key, value in named if key == "relevant"]
    quotes = [value for key, value in named if key == "quote"]
    if len(verdicts) != 1:  # none, or two that may contradict each other
        return None
    value = verdicts[0]
    relevant = _TRUTH.get(value.strip().casefold()) if isinstance(value, str) else value
    if not isinstance(relevant, bool):  # a number or null is no verdict
        return None
    quote = quotes[0].strip() if len(quotes) == 1 and isinstance(quotes[0], str) else ""
    return Parsed(relevant, quote or None)
