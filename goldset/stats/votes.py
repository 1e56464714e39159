"""Votes of a judge -> what it says of a pair: the one rule behind queue and judge card."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from goldset.errors import DataError

Pair = tuple[str, str]


@dataclass(frozen=True)
class Settled:
    """What a judge says of a pair.

    ``relevant`` is None without a majority; ``status`` is ok, ``split`` where votes are even, else why the first vote
    gave no verdict; ``score`` is the mean of the scored votes.
    """

    relevant: bool | None
    status: str
    score: float | None


def settle(verdicts: pa.Table) -> dict[Pair, Settled]:
    """Table verdicts -> (question_id, span_id): the last attempt of each vote, then the majority.

    A vote that is not ``ok`` says nothing.

    Raises:
        DataError: the table holds more than one judge.
    """
    judges = sorted(set(verdicts.column("judge_id").to_pylist()))
    if len(judges) > 1:
        raise DataError(f"table 'verdicts': {len(judges)} judges ({', '.join(judges)}); they are settled one at a "
                        "time: hand in the verdicts of the configured judge")
    last: dict[Pair, dict[int, tuple[int, str, bool | None, float | None]]] = {}
    columns = ("question_id", "span_id", "vote", "attempt", "status", "relevant", "score")
    for question, span, vote, attempt, status, relevant, score in zip(
            *(verdicts.column(name).to_pylist() for name in columns), strict=True):
        votes = last.setdefault((question, span), {})
        if vote not in votes or attempt > votes[vote][0]:
            votes[vote] = (attempt, status, *((relevant, score) if status == "ok" else (None, None)))
    return {pair: _majority(votes) for pair, votes in last.items()}


def _majority(votes: dict[int, tuple[int, str, bool | None, float | None]]) -> Settled:
    yes = sum(relevant is True for _, _, relevant, _ in votes.values())
    no = sum(relevant is False for _, _, relevant, _ in votes.values())
    scores = [score for *_, score in votes.values() if score is not None]
    mean = math.fsum(scores) / len(scores) if scores else None
    if yes != no:
        return Settled(yes > no, "ok", mean)
    return Settled(None, "split" if yes else votes[min(votes)][1], mean)
