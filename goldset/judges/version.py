"""What of this package can change a verdict: prompt, parser, normaliser, the rule for exact values."""

from __future__ import annotations

from goldset.judges import normalise, parse, rules
from goldset.judges.prompt import load_prompt


def instrument_version() -> list[str]:
    """Hash of the prompt file, versions of parser, normaliser and rule: part of the judge stage's key."""
    return [load_prompt().hash, parse.VERSION, normalise.VERSION, rules.VERSION]
