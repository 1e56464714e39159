"""Candidates and verdicts -> the queue that people answer.

What is read in full (judge positives, pairs without a verdict) and what is sampled (the judge's rejections) is decided
here, the same way for the first wave and for every later one: ``wanted_pairs`` says which pairs must be asked, and a
wave appends those that the queue lacks. Samples are permanent random numbers (METHODS 0), so they nest: a larger
sample contains the smaller one, and another question changes no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.config import ReviewConfig
from goldset.errors import DataError
from goldset.schemas import conform, from_rows
from goldset.stats.sampling import pairs_of
from goldset.stats.votes import settle
from goldset.text import content_hash, unit_hash

from .history import Pair

PRIMARY = ("positive", "rejection", "no_verdict", "no_gold", "divided", "probe", "calibration", "hole",
           "deep")
TOP_SHARE = 0.2  # of a question's rejections, by the judge's score (METHODS 2.3)


@dataclass(frozen=True)
class Wanted:
    """A pair that people must be asked about, and why."""

    question_id: str
    span_id: str
    reason: str
    stratum: str
    stratum_size: int
    u: float

    @property
    def pair(self) -> Pair:
        """Question and span."""
        return self.question_id, self.span_id


def first_wave(*, candidates: pa.Table, verdicts: pa.Table, spans: pa.Table, config: ReviewConfig, seed: int,
               campaign: str = "rebuild") -> pa.Table:
    """Candidates and verdicts -> queue, wave 1.

    Every judge positive, every pair without a verdict, the sample of the rejections, and the blind second labels.
    Order: questions shuffled, items shuffled within a question. Nothing is dropped; a rejection that is not sampled
    can still be asked for by a later wave.

    Raises:
        DataError: verdicts of more than one judge, or a candidate whose span is not in ``spans``.
    """
    _check_spans(candidates, spans)
    wanted = wanted_pairs(candidates=candidates, verdicts=verdicts, config=config, seed=seed)
    rows = [as_row(want, campaign=campaign, wave=1) for want in wanted]
    seconds = second_rows(rows, share=config.second_share, seed=seed, campaign=campaign, wave=1)
    return ordered([*rows, *seconds], seed=seed, first=0)


def wanted_pairs(*, candidates: pa.Table, verdicts: pa.Table, config: ReviewConfig, seed: int) -> list[Wanted]:
    """Candidates and verdicts -> the pairs that the profile asks for, with stratum, its size N_h and u.

    The sample has ``rejection_min`` pairs or ``rejection_share`` of the rejections, whichever is more, or all. In the
    profile careful half of it goes to each of two strata within the question: the top fifth of its rejections by the
    judge's score (ties and missing scores count to the upper stratum) and the rest; a judge without scores has one.
    In each stratum the n_h smallest u are taken, ties to the smaller ids.
    """
    settled = settle(verdicts)
    groups: dict[str, list[Pair]] = {"positive": [], "no_verdict": [], "rejection": []}
    for pair in pairs_of(candidates):
        relevant = settled[pair].relevant if pair in settled else None
        groups["no_verdict" if relevant is None else "positive" if relevant else "rejection"].append(pair)
    scores = {pair: said.score for pair, said in settled.items()}
    wanted = [Wanted(*pair, reason, reason, len(groups[reason]), permanent_number(seed, pair))
              for reason in ("positive", "no_verdict") for pair in groups[reason]]
    strata = _strata(groups["rejection"], scores, careful=config.profile == "careful")
    for stratum, count in _allocation(strata, config).items():
        numbered = sorted((permanent_number(seed, pair), pair) for pair in strata[stratum])
        wanted += [Wanted(*pair, "rejection", stratum, len(numbered), u) for u, pair in numbered[:count]]
    return wanted


def drawn_strata(*, candidates: pa.Table, verdicts: pa.Table, config: ReviewConfig) -> dict[Pair, str]:
    """Candidates and verdicts -> the stratum of each rejection, sampled or not."""
    settled = settle(verdicts)
    rejected = [pair for pair in pairs_of(candidates) if pair in settled and settled[pair].relevant is False]
    scores = {pair: said.score for pair, said in settled.items()}
    strata = _strata(rejected, scores, careful=config.profile == "careful")
    return {pair: stratum for stratum, pairs in strata.items() for pair in pairs}


def permanent_number(seed: int, pair: Pair) -> float:
    """The number u of a pair: depends on the seed and the pair only."""
    return unit_hash(seed, "rejections", *pair)


def _strata(pairs: list[Pair], scores: Mapping[Pair, float | None], *, careful: bool) -> dict[str, list[Pair]]:
    if not careful or all(scores.get(pair) is None for pair in pairs):
        return {"rejection": pairs}
    strata: dict[str, list[Pair]] = {"rejection_top": [], "rejection_rest": []}
    questions: dict[str, list[Pair]] = {}
    for pair in pairs:
        questions.setdefault(pair[0], []).append(pair)
    for members in questions.values():
        rank = {pair: math.inf if (score := scores.get(pair)) is None else score for pair in members}
        bar = sorted(rank.values(), reverse=True)[math.ceil(TOP_SHARE * len(members)) - 1]
        for pair in members:
            strata["rejection_top" if rank[pair] >= bar else "rejection_rest"].append(pair)
    return strata


def _allocation(strata: Mapping[str, list[Pair]], config: ReviewConfig) -> dict[str, int]:
    """How many pairs each stratum gives: equal parts, and what one cannot give comes from the other."""
    sizes = {name: len(pairs) for name, pairs in strata.items()}
    total = sum(sizes.values())
    # Rounding before the ceiling keeps 0.1 x 30 = 3.0000000000000004 at three.
    sample = min(total, max(config.rejection_min, math.ceil(round(config.rejection_share * total, 9))))
    if len(sizes) == 1:
        return dict.fromkeys(sizes, sample)
    top, rest = sizes["rejection_top"], sizes["rejection_rest"]
    from_top = min(top, max((sample + 1) // 2, sample - rest))
    return {"rejection_top": from_top, "rejection_rest": sample - from_top}


def second_rows(rows: Iterable[Mapping[str, Any]], *, share: float, seed: int, campaign: str,
                wave: int) -> list[dict[str, Any]]:
    """Queue rows -> second items for ``share`` of the pairs within each reason, dealt as whole questions.

    Questions come in the order of their own permanent random number; one is chosen while a reason that it has is
    still below its share, and then every pair of it gets a second item. Earlier waves are settled before later ones,
    so a question once chosen stays chosen. A second item repeats stratum, size and u of its pair: they say how the
    *pair* came to be read.
    """
    primary = [row for row in rows if row["reason"] in PRIMARY]
    chosen = chosen_questions(primary, share=share, seed=seed)
    return [{**row, "wave": wave, "reason": "second",
             "item_id": item_id(campaign, wave, "second", row["question_id"], row["span_id"])}
            for row in primary if row["question_id"] in chosen]


def chosen_questions(primary: Iterable[Mapping[str, Any]], *, share: float, seed: int) -> set[str]:
    """Questions whose every pair is read by a second person."""
    waves: dict[int, dict[str, dict[str, int]]] = {}
    for row in primary:
        counts = waves.setdefault(row["wave"], {}).setdefault(row["question_id"], {})
        counts[row["reason"]] = counts.get(row["reason"], 0) + 1
    totals: dict[str, int] = {}
    seen: dict[str, dict[str, int]] = {}
    chosen: set[str] = set()
    for wave in sorted(waves):
        for question, counts in waves[wave].items():
            mine = seen.setdefault(question, {})
            for reason, count in counts.items():
                mine[reason] = mine.get(reason, 0) + count
                totals[reason] = totals.get(reason, 0) + count
        missing = {reason: math.ceil(round(share * total, 9)) for reason, total in totals.items()}
        for question in chosen:
            for reason, count in seen[question].items():
                missing[reason] -= count
        for question in sorted(seen, key=lambda q: (unit_hash(seed, "second", q), q)):
            if question not in chosen and any(missing[reason] > 0 for reason in seen[question]):
                chosen.add(question)
                for reason, count in seen[question].items():
                    missing[reason] -= count
    return chosen


def item_id(campaign: str, wave: int, reason: str, question_id: str, span_id: str) -> str:
    """Id of a queue item."""
    return "i" + content_hash("item", campaign, wave, reason, question_id, span_id)[:24]


def as_row(want: Wanted, *, campaign: str, wave: int) -> dict[str, Any]:
    """A wanted pair -> a queue row without its order."""
    return {"item_id": item_id(campaign, wave, want.reason, *want.pair), "question_id": want.question_id,
            "span_id": want.span_id, "campaign": campaign, "wave": wave, "reason": want.reason,
            "stratum": want.stratum, "stratum_size": want.stratum_size, "u": want.u}


def ordered(rows: list[dict[str, Any]], *, seed: int, first: int) -> pa.Table:
    """Queue rows -> queue, numbered from ``first``: questions shuffled, items shuffled within a question."""
    rows = sorted(rows, key=lambda row: (unit_hash(seed, "order", row["question_id"]), row["question_id"],
                                         unit_hash(seed, "order", row["item_id"]), row["item_id"]))
    return from_rows("queue", [{**row, "order": first + place} for place, row in enumerate(rows)])


def _check_spans(candidates: pa.Table, spans: pa.Table) -> None:
    known = set(spans.column("span_id").to_pylist())
    for span in conform(candidates, "candidates").column("span_id").to_pylist():
        if span not in known:
            raise DataError(f"table 'candidates': span '{span}' is not in the table 'spans'; "
                            "pool and spans must come from the same corpus")
