"""What of this package can change a verdict: prompt, parser, normaliser."""

from __future__ import annotations

from goldset.judges import normalise, parse
from goldset.judges.prompt import load_prompt


def instrument_version() -> list[str]:
    """Hash of the prompt file, version of the parser and of the normaliser: part of the judge stage's key."""
    return [load_prompt().hash, parse.VERSION, normalise.VERSION]
