"""The judge measured against people: the judge card."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from goldset.errors import DataError
from goldset.stats.agreement import Counts, agreement, sample_intervals, weighted, weighted_intervals
from goldset.stats.intervals import Interval, kish, ratio
from goldset.stats.votes import Pair, Settled, settle

SCHEMA = "goldset.judge_card/1"


@dataclass(frozen=True)
class Read:
    """A pair with a verdict that people decided."""

    question_id: str
    span_id: str
    judge: bool
    people: bool
    weight: float


def judge_card(*, verdicts: pa.Table, decisions: pa.Table, probabilities: pa.Table, candidates: pa.Table,
               seed: int = 0) -> dict[str, Any]:
    """verdicts, decisions, probabilities, candidates -> judge card, JSON-able.

    People read a sample that was drawn by verdict, so the numbers of the pool are weighted back with the inverse of
    the inclusion probabilities and the judge's pass share (METHODS 1); those of the sample stand beside them.
    Clustering by question divides the counts behind the intervals by the design effect. What cannot be told is null
    with a reason.

    Args:
        verdicts: of one judge.
        decisions: people's decision of each pair they were asked about.
        probabilities: question_id, span_id, inclusion_prob of the pairs that people read.
        candidates: systems that returned each pair.
        seed: of the intervals' draws.

    Returns:
        judge (ids and models), pairs, statuses, judge_pass_share, people, counts, weighted, in_sample, no_verdict
        (pairs by status, with what people found there), miss_rate_by_system, quotes, spent, sentences.

    Raises:
        DataError: verdicts of several judges, or a decided pair without inclusion probability.
    """
    settled = settle(verdicts)
    decided = {(row["question_id"], row["span_id"]): row
               for row in decisions.select(["question_id", "span_id", "relevant", "status"]).to_pylist()}
    read = _read(settled, decided, probabilities)
    passes = sum(said.relevant is True for said in settled.values())
    told = sum(said.relevant is not None for said in settled.values())
    counts = Counts(*(sum(row.judge is judge and row.people is people for row in read)
                      for judge, people in ((True, True), (True, False), (False, True), (False, False))))
    states = Counter(row["status"] for pair, row in decided.items() if pair in settled)
    card = {
        "schema": SCHEMA,
        "judge": _identity(verdicts),
        "pairs": len(settled),
        "judge_pass_share": {"value": passes / told if told else None, "n": told},
        "people": {"decided": len(read), **{name: states[name] for name in ("cant_tell", "conflict", "open")}},
        "counts": counts._asdict(),
        **_weighted(read, counts, passes / told if told else None, seed),
        "in_sample": _numbers(agreement(*counts).as_dict(), sample_intervals(counts, seed=seed)) if read else None,
        "no_verdict": _no_verdict(settled, decided),
        "miss_rate_by_system": _misses(read, candidates),
        "quotes": _quotes(verdicts),
        "spent": _spent(verdicts),
    }
    return {**card, "sentences": _sentences(card)}


def _read(settled: Mapping[Pair, Settled], decided: Mapping[Pair, dict[str, Any]],
          probabilities: pa.Table) -> list[Read]:
    chance = {(row["question_id"], row["span_id"]): row["inclusion_prob"]
              for row in probabilities.select(["question_id", "span_id", "inclusion_prob"]).to_pylist()}
    read = []
    for question_id, span_id in sorted(settled):
        relevant = settled[question_id, span_id].relevant
        people = decided.get((question_id, span_id), {}).get("relevant")
        if relevant is None or people is None:
            continue
        probability = chance.get((question_id, span_id))
        if not probability:
            raise DataError(f"question '{question_id}', span '{span_id}': people decided it, but it has no inclusion "
                            "probability; compute probabilities from the same queue and decisions")
        read.append(Read(question_id, span_id, relevant, people, 1 / probability))
    return read


def _weighted(read: Sequence[Read], counts: Counts, pass_share: float | None, seed: int) -> dict[str, Any]:
    if not read or pass_share is None:
        return {"weighted": None, "weighted_reason": "nothing_read"}
    effective = _effective(read)
    numbers = weighted(effective, pass_share)
    if numbers is None:
        missing = "judge_positives" if counts.tp + counts.fp == 0 else "judge_rejections"
        return {"weighted": None, "weighted_reason": f"no_{missing}_read"}
    return {"weighted": _numbers(numbers.as_dict(), weighted_intervals(effective, pass_share, seed=seed)),
            "weighted_reason": None}


def _effective(read: Sequence[Read]) -> Counts:
    """Cells that have the weighted rates and carry as much as independent pairs would (Kish; design effect)."""
    cells = []
    for judge in (True, False):
        rows = [row for row in read if row.judge is judge]
        if not rows:
            cells += [0.0, 0.0]
            continue
        weight = np.array([row.weight for row in rows])
        yes = np.array([float(row.people) for row in rows])
        rate = float(np.dot(weight, yes) / weight.sum())
        questions = np.unique([row.question_id for row in rows], return_inverse=True)[1].astype(np.int64)
        alone = ratio(yes, np.ones(len(rows)), weight=weight)
        together = ratio(yes, np.ones(len(rows)), weight=weight, cluster=questions)
        design = max(1.0, (together.se / alone.se) ** 2) if together.se and alone.se else 1.0
        size = kish(weight) / design
        cells += [size * rate, size * (1 - rate)]
    return Counts(*cast("list[int]", cells))  # fractions of pairs: the formulas take them


def _numbers(values: Mapping[str, float | None], intervals: Mapping[str, Interval]) -> dict[str, Any]:
    return {name: {"value": value, "low": intervals[name].low if value is not None and name in intervals else None,
                   "high": intervals[name].high if value is not None and name in intervals else None}
            for name, value in values.items() if name != "p_e"}


def _no_verdict(settled: Mapping[Pair, Settled], decided: Mapping[Pair, dict[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for pair, said in settled.items():
        if said.relevant is not None:
            continue
        row = rows.setdefault(said.status, {"status": said.status, "pairs": 0, "read": 0, "relevant": 0})
        row["pairs"] += 1
        people = decided.get(pair, {}).get("relevant")
        row["read"] += people is not None
        row["relevant"] += people is True
    return [rows[status] for status in sorted(rows)]


def _misses(read: Sequence[Read], candidates: pa.Table) -> list[dict[str, Any]]:
    """For each system: share of the relevant pairs it returned that the judge rejected, weighted."""
    systems = {(row["question_id"], row["span_id"]): row["systems"]
               for row in candidates.select(["question_id", "span_id", "systems"]).to_pylist()}
    rows = []
    for system in sorted({name for names in systems.values() for name in names}):
        mine = [row for row in read if row.people and system in systems.get((row.question_id, row.span_id), [])]
        missed = np.array([float(not row.judge) for row in mine])
        questions = np.unique([row.question_id for row in mine], return_inverse=True)[1].astype(np.int64)
        found = ratio(missed, np.ones(len(mine)), weight=np.array([row.weight for row in mine]),
                      cluster=questions)
        rows.append({"system": system, "value": found.value, "n": len(mine),
                     "low": found.interval.low if found.interval else None,
                     "high": found.interval.high if found.interval else None,
                     "reason": None if mine else "no_relevant_pair_read"})
    return rows


def _identity(verdicts: pa.Table) -> dict[str, Any]:
    def distinct(column: str) -> list[str]:
        return sorted(value for value in set(verdicts.column(column).to_pylist()) if value is not None)

    judges = distinct("judge_id")
    if len(judges) > 1:
        raise DataError(f"table 'verdicts': {len(judges)} judges ({', '.join(judges)}); a card is about one")
    by_model: dict[str, Counter[str]] = {}
    for model, status in zip(verdicts.column("model_answered").to_pylist(), verdicts.column("status").to_pylist(),
                             strict=True):
        by_model.setdefault(model or "not named", Counter())[status] += 1
    return {"judge_id": judges[0] if judges else None, "model_asked": distinct("model_asked"),
            "prompt_hash": distinct("prompt_hash"),
            "answers_by_model": {model: dict(sorted(states.items())) for model, states in sorted(by_model.items())}}


def _quotes(verdicts: pa.Table) -> dict[str, int]:
    positive = [quote for relevant, quote in zip(verdicts.column("relevant").to_pylist(),
                                                 verdicts.column("quote").to_pylist(), strict=True) if relevant]
    return {"positives": len(positive), "with_a_quote_from_the_passage": sum(quote is not None for quote in positive)}


def _spent(verdicts: pa.Table) -> dict[str, Any]:
    """Totals over all answers, each counted once however often it was reused. Null where no answer says."""
    columns = ("prompt_tokens", "completion_tokens", "cost")
    answers = {row["cache_key"]: row for row in verdicts.select(["cache_key", *columns]).to_pylist()}
    spent: dict[str, Any] = {"answers": len(answers)}
    for column in columns:
        known = [row[column] for row in answers.values() if row[column] is not None]
        spent[column] = math.fsum(known) if column == "cost" and known else sum(known) if known else None
    return spent


def _sentences(card: dict[str, Any]) -> list[str]:
    """What may be concluded, and no more."""
    if card["weighted"] is None:
        return ["The judge cannot be measured yet: people have to read some of its positives and of its rejections."]
    said = []
    sensitivity, bias = card["weighted"]["sensitivity"], card["weighted"]["bias"]
    if sensitivity["value"] is not None:
        said.append(f"The judge finds {sensitivity['value']:.2f} of the relevant pairs of the pool"
                    + (f" (95 % interval {sensitivity['low']:.2f} to {sensitivity['high']:.2f})"
                       if sensitivity["low"] is not None else "")
                    + f", measured on {card['people']['decided']} pairs that people decided.")
    if bias["low"] is not None and bias["high"] < 0:
        said.append("The judge is too strict: it passes fewer pairs than people do.")
    elif bias["low"] is not None and bias["low"] > 0:
        said.append("The judge is too lenient: it passes more pairs than people do.")
    else:
        said.append("Whether the judge is too strict or too lenient cannot be told from these labels.")
    return said
