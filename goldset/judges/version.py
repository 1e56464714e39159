"""What of this package can change a verdict: prompt, parser, normaliser, the rule for exact values."""

from __future__ import annotations

from typing import Any

from goldset.config import Config, CrossEncoderJudge
from goldset.judges import normalise, parse, rules
from goldset.judges.prompt import load_prompt


def instrument_version() -> list[str]:
    """Hash of the prompt file, versions of parser, normaliser and rule: part of the judge stage's key."""
    return [load_prompt().hash, parse.VERSION, normalise.VERSION, rules.VERSION]


def model_version(config: Config) -> Any:
    """What of a cross-encoder can change a score: files, shapes, libraries; None for the other kinds."""
    if not isinstance(config.judge, CrossEncoderJudge):
        return None
    from goldset.judges.cross_encoder import CrossScorer
    from goldset.model_files import located

    return CrossScorer(located(config.judge.model, config.base)).identity
