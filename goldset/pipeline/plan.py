"""What a rebuild would cost, before any of it is spent (METHODS 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldset.config import Config, OpenAIJudge
from goldset.errors import TooLittleData
from goldset.pipeline.runner import Artifacts

if TYPE_CHECKING:
    from goldset.metrics import ReadingRate

# Nobody knows the judge's share of yes before it has judged: the plan shows both ends of what pools have had.
YES_LOW, YES_HIGH = 0.05, 0.2
PROFILES = ("basic", "careful")
EXCLUDE = (0.1, 0.05)
"""Miss rates of the judge for which the plan says how many rejections people must read."""
_PROMPT_WORDS, _TOKENS_A_WORD = 400, 1.35
_NOT_MEASURED = {"no_labels": "nobody has read on the page yet", "too_few": "too few readings to fit a rate",
                 "no_slope": "longer passages were not read longer"}


def plan_cost(config: Config, artifacts: Artifacts, *, measured: bool = False) -> dict[str, Any]:
    """Pool -> pairs, judge calls, tokens, money (null without prices), and reading hours for both profiles.

    hours = items x seconds_base + words / rate; items = yes + read rejections, second labels on top: ``basic`` a
    share of both, ``careful`` one for every yes and the full reading of about a tenth of the questions. Base and rate
    are the configuration's, or with ``measured`` those that the page measured; ``measured`` of the answer has the
    hours at these in any case, where there are enough readings.

    Raises:
        TooLittleData: ``measured``, and too little was.
    """
    spans = artifacts.table("spans")
    words = dict(zip(*(spans.column(name).to_pylist() for name in ("span_id", "words")), strict=True))
    pairs = artifacts.table("candidates").column("span_id").to_pylist()
    total = sum(words[span] for span in pairs)
    votes = config.judge.votes if isinstance(config.judge, OpenAIJudge) else 1
    sent = round((total + len(pairs) * _PROMPT_WORDS) * _TOKENS_A_WORD) * votes
    money = None
    if isinstance(config.judge, OpenAIJudge) and (config.judge.price_prompt or config.judge.price_completion):
        answers = len(pairs) * votes * min(config.judge.max_tokens, 60)
        money = (sent * config.judge.price_prompt + answers * config.judge.price_completion) / 1e6
    written = {"seconds_base": config.review.seconds_base, "words_per_minute": config.review.words_per_minute}
    page = _measured(config, words)
    fitted = page.pop("rate")
    if fitted:
        page |= _hours(config, len(pairs), total, fitted)
    if measured and not fitted:
        raise TooLittleData(f"--measured: {_NOT_MEASURED[page['reason']]} ({page['n']} readings of "
                            f"{config.review_url if '@' not in config.review_url else 'the review database'}); leave "
                            "it out to plan with [review] seconds_base and words_per_minute")
    rate = fitted if measured else written
    return {"questions": len(artifacts.table("questions")), "pairs": len(pairs), "words": total,
            "calls": len(pairs) * votes, "tokens": sent, "money": money, "yes_low": YES_LOW, "yes_high": YES_HIGH,
            "rejections": rejections_read(config, len(pairs), len(artifacts.table("questions"))),
            **rate, "rate": "measured" if measured else "configured", **_hours(config, len(pairs), total, rate),
            "measured": page}


def _hours(config: Config, pairs: int, words: int, rate: Mapping[str, float]) -> dict[str, Any]:
    """Hours of reading everything, and items and hours of each profile, at both ends of the judge's share of yes."""
    from goldset.metrics import reading_hours

    profiles = {}
    for profile in PROFILES:
        low, high = (_items(pairs, share, profile, config) for share in (YES_LOW, YES_HIGH))
        profiles[profile] = {"items_low": low, "items_high": high,
                             "hours_low": reading_hours(low, low * words / pairs, **rate),
                             "hours_high": reading_hours(high, high * words / pairs, **rate)}
    return {"full_hours": reading_hours(pairs, words, **rate), "profiles": profiles}


def rejections_read(config: Config, pairs: int, questions: int) -> dict[str, Any]:
    """What reading a sample of the rejections can exclude, at best: if none of those read answers (METHODS 2.2).

    At the low end of the judge's share of yes, where most is rejected, and with one known answer a question: nobody
    knows the gold before it is read, and more of it makes the same number missed a smaller rate.
    """
    from goldset.stats.missed import false_negative_rate, missed_interval, most_missed, sample_to_exclude

    rejected = pairs - round(pairs * YES_LOW)
    read = _read(rejected, config)
    most = round(missed_interval(0, read, rejected).high)
    return {"rejected": rejected, "read": read, "most_missed": most,
            "miss_rate": false_negative_rate(most, questions),
            "to_exclude": [{"miss_rate": rate, "read": sample_to_exclude(rejected, most_missed(questions, rate))}
                           for rate in EXCLUDE]}


def _read(rejected: int, config: Config) -> int:
    """Rejections of the sample."""
    return min(rejected, max(config.review.rejection_min, round(rejected * config.review.rejection_share)))


def _items(pairs: int, yes_share: float, profile: str, config: Config) -> int:
    yes = round(pairs * yes_share)
    rejected = pairs - yes
    read = _read(rejected, config)
    if profile == "basic":
        return round((yes + read) * (1 + config.review.second_share))
    return round(2 * yes + read * (1 + config.review.second_share) + 0.1 * (rejected - read))


def _measured(config: Config, words: Mapping[str, int]) -> dict[str, Any]:
    """What the page measured in earlier campaigns of this workspace: n, pauses left out, base, rate or a reason."""
    from goldset.metrics import reading_rate

    readings = _readings(config, words)
    found: ReadingRate = reading_rate([count for count, _ in readings], [seconds for _, seconds in readings])
    rate = None if found.reason else {"seconds_base": found.seconds_base, "words_per_minute": found.words_per_minute}
    return {**asdict(found), "reason": found.reason if readings else "no_labels", "rate": rate}


def _readings(config: Config, words: Mapping[str, int]) -> list[tuple[int, float]]:
    """Words and seconds of every label that was timed, of spans that are in the corpus still. Makes no database."""
    url = config.review_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return []
    from goldset.review import ReviewStore

    labels = ReviewStore(url).labels()
    columns = (labels.column(name).to_pylist() for name in ("action", "span_id", "seconds"))
    return [(words[span], seconds) for action, span, seconds in zip(*columns, strict=True)
            if action == "label" and seconds is not None and span in words]


def plan_text(cost: Mapping[str, Any]) -> str:
    """The answer on a terminal: the work, the judge, and both profiles side by side."""
    money = "no price is set" if cost["money"] is None else f"{cost['money']:,.2f} in the currency of the prices"
    page = cost["measured"]
    lines = [f"{cost['questions']:,} questions, {cost['pairs']:,} pairs ({cost['pairs'] / cost['questions']:.1f} a "
             f"question), {cost['words']:,} words",
             f"judge: {cost['calls']:,} calls, about {cost['tokens']:,} tokens, {money}", "",
             f"reading, if the judge says yes to {cost['yes_low']:.0%} to {cost['yes_high']:.0%} of the pairs:"]
    rows = [("", *PROFILES, "everything"),
            ("items", *(_between(cost, profile, "items", ",.0f") for profile in PROFILES), f"{cost['pairs']:,}"),
            (f"hours, {cost['rate']}", *(_between(cost, profile, "hours", ",.1f") for profile in PROFILES),
             f"{cost['full_hours']:,.1f}")]
    if page["seconds_base"] is not None and cost["rate"] == "configured":
        rows.append(("hours, measured", *(_between(page, profile, "hours", ",.1f") for profile in PROFILES),
                     f"{page['full_hours']:,.1f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines += ["  " + "  ".join(cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in
                               enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    if cost["rate"] == "configured":
        lines.append(f"configured: {_rate(cost)} ([review] seconds_base, words_per_minute)")
    if page["seconds_base"] is None:
        lines.append(f"measured: no rate; {_NOT_MEASURED[page['reason']]} ({page['n']:,} readings)")
    else:
        pauses = f", {page['pauses']:,} pauses left out" if page["pauses"] else ""
        lines.append(f"measured: {_rate(page)} ({page['n']:,} readings on the page{pauses})"
                     + ("" if cost["rate"] == "measured" else "; --measured plans with it"))
    return "\n".join([*lines, *_excluded(cost)])


def _excluded(cost: Mapping[str, Any]) -> list[str]:
    """What the sample of rejections can exclude, and what more would take."""
    found = cost["rejections"]
    if found["read"] == found["rejected"]:
        return [f"rejections: all {found['rejected']:,} are read, so what the judge misses is known"]
    needed = " and ".join(f"{row['miss_rate']:.0%} takes {row['read']:,}" for row in found["to_exclude"])
    return [f"rejections: if none of the {found['read']:,} read of {found['rejected']:,} answers, up to "
            f"{found['most_missed']:,} may still do (95 %):",
            f"  a miss rate of {found['miss_rate']:.0%} of the judge, at one answer a question; to exclude {needed}",
            "  ([review] rejection_share, rejection_min)"]


def _rate(told: Mapping[str, Any]) -> str:
    return f"{told['seconds_base']:.1f} s an item and {told['words_per_minute']:,.0f} words a minute"


def _between(told: Mapping[str, Any], profile: str, what: str, form: str) -> str:
    row = told["profiles"][profile]
    return f"{row[f'{what}_low']:{form}} to {row[f'{what}_high']:{form}}"
