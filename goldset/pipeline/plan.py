"""What a rebuild would cost, before any of it is spent (STATISTICS 11)."""

from __future__ import annotations

from typing import Any

from goldset.config import Config, OpenAIJudge
from goldset.pipeline.runner import Artifacts

# Nobody knows the judge's share of yes before it has judged: the plan shows both ends of what pools have had.
YES_LOW, YES_HIGH = 0.05, 0.2
_PROMPT_WORDS, _TOKENS_A_WORD = 400, 1.35


def plan_cost(config: Config, artifacts: Artifacts) -> dict[str, Any]:
    """Pool -> pairs, judge calls, tokens, money (null without prices), and reading hours for both profiles.

    hours = items x seconds_base + words / rate; items = yes + read rejections, second labels on top: ``basic`` a
    share of both, ``careful`` one for every yes and the full reading of about a tenth of the questions.
    """
    from goldset.metrics import reading_hours

    spans = artifacts.table("spans")
    words = dict(zip(*(spans.column(name).to_pylist() for name in ("span_id", "words")), strict=True))
    pairs = artifacts.table("candidates").column("span_id").to_pylist()
    total = sum(words[span] for span in pairs)
    mean = total / len(pairs)
    rate = {"seconds_base": config.review.seconds_base, "words_per_minute": config.review.words_per_minute}
    votes = config.judge.votes if isinstance(config.judge, OpenAIJudge) else 1
    sent = round((total + len(pairs) * _PROMPT_WORDS) * _TOKENS_A_WORD) * votes
    money = None
    if isinstance(config.judge, OpenAIJudge) and (config.judge.price_prompt or config.judge.price_completion):
        answers = len(pairs) * votes * min(config.judge.max_tokens, 60)
        money = (sent * config.judge.price_prompt + answers * config.judge.price_completion) / 1e6
    profiles = {}
    for profile in ("basic", "careful"):
        low, high = (_items(len(pairs), share, profile, config) for share in (YES_LOW, YES_HIGH))
        profiles[profile] = {"items_low": low, "items_high": high, "hours_low": reading_hours(low, low * mean, **rate),
                             "hours_high": reading_hours(high, high * mean, **rate)}
    return {"questions": len(artifacts.table("questions")), "pairs": len(pairs), "words": total,
            "calls": len(pairs) * votes, "tokens": sent, "money": money, "yes_low": YES_LOW, "yes_high": YES_HIGH,
            "full_hours": reading_hours(len(pairs), total, **rate), "profiles": profiles}


def _items(pairs: int, yes_share: float, profile: str, config: Config) -> int:
    yes = round(pairs * yes_share)
    rejected = pairs - yes
    read = min(rejected, max(config.review.rejection_min, round(rejected * config.review.rejection_share)))
    if profile == "basic":
        return round((yes + read) * (1 + config.review.second_share))
    return round(2 * yes + read * (1 + config.review.second_share) + 0.1 * (rejected - read))
