"""The queue grows in waves: what people's answers make necessary."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from goldset.config import ReviewConfig
from goldset.stats.sampling import pairs_of

from .history import Pair, answered_items, by_pair, standing
from .queue import PRIMARY, Wanted, as_row, item_id, ordered, permanent_number, second_rows, wanted_pairs
from .reread import checks
from .resolve import resolve


def next_wave(*, queue: pa.Table, labels: pa.Table, candidates: pa.Table, verdicts: pa.Table, spans: pa.Table,
              config: ReviewConfig, seed: int) -> pa.Table:
    """queue, labels -> queue rows to append. The queue is closed when no item is open and this is empty.

    * Top-ups: pairs that the profile asks for and the queue lacks, because candidates, verdicts or ``rejection_share``
      grew since. Samples nest, so no earlier answer is wasted.
    * Profile careful: every remaining pair of a question whose items are all answered and that has no yes (reason
      ``no_gold``, read in full), and a second label for every yes.
    * Second labels for ``second_share`` within each reason, dealt as whole questions.
    * Second readings of ``carried_share`` of the answers that earlier rebuilds gave.
    * Adjudications: pairs on which two people differ. They go to a third person; where everybody who takes part has
      read the pair already, to any of them, who is not shown what was said.

    Pure: the same tables give the same rows, however often it is asked and whichever rows come first.
    """
    rows = queue.to_pylist()
    campaign = rows[0]["campaign"] if rows else "rebuild"
    wave = 1 + max((row["wave"] for row in rows), default=0)
    asked = {(row["question_id"], row["span_id"]) for row in rows if row["reason"] in PRIMARY}
    wanted = wanted_pairs(candidates=candidates, verdicts=verdicts, config=config, seed=seed)
    # A pair found through the search box and answered needs no first item.
    new = [as_row(want, campaign=campaign, wave=wave) for want in wanted if want.pair not in asked]
    decisions = {(row["question_id"], row["span_id"]): row
                 for row in resolve(queue=queue, labels=labels).to_pylist()}
    if config.profile == "careful":
        asked |= {(row["question_id"], row["span_id"]) for row in new}
        new += [as_row(want, campaign=campaign, wave=wave)
                for want in _unread(candidates, rows, new, labels, decisions, asked, seed)]
    second = {(row["question_id"], row["span_id"]) for row in rows if row["reason"] == "second"}
    seconds = second_rows([*rows, *new], share=config.second_share, seed=seed, campaign=campaign, wave=wave)
    if config.profile == "careful":
        seconds += _every_yes(rows, labels, campaign=campaign, wave=wave, seed=seed)
    fresh: dict[Pair, dict[str, Any]] = {}
    for row in seconds:
        pair = (row["question_id"], row["span_id"])
        if pair not in second:
            fresh.setdefault(pair, row)
    new += fresh.values()
    new += checks(queue=queue, labels=labels, share=config.carried_share, seed=seed, campaign=campaign, wave=wave)
    adjudicated = {(row["question_id"], row["span_id"]) for row in rows if row["reason"] == "adjudication"}
    origin = {(row["question_id"], row["span_id"]): row for row in reversed(rows)}
    new += [_again(pair, origin.get(pair), "adjudication", campaign=campaign, wave=wave, seed=seed)
            for pair, decision in decisions.items() if decision["status"] == "conflict" and pair not in adjudicated]
    return ordered(new, seed=seed, first=1 + max((row["order"] for row in rows), default=-1))


def is_closed(*, queue: pa.Table, labels: pa.Table, grown: pa.Table) -> bool:
    """Whether every item is answered and ``grown``, the next wave, is empty."""
    given = answered_items(standing(labels.to_pylist()))
    return len(grown) == 0 and all(item in given for item in queue.column("item_id").to_pylist())


def _unread(candidates: pa.Table, rows: list[dict[str, Any]], new: list[dict[str, Any]], labels: pa.Table,
            decisions: dict[Pair, dict[str, Any]], asked: set[Pair], seed: int) -> list[Wanted]:
    """Remaining pairs of the questions left without gold: all answered, nothing in conflict, no yes."""
    given = answered_items(standing(labels.to_pylist()))
    waiting = {row["question_id"] for row in new}
    waiting |= {row["question_id"] for row in rows if row["reason"] != "second" and row["item_id"] not in given}
    waiting |= {pair[0] for pair, decision in decisions.items()
                if decision["relevant"] or decision["status"] == "conflict"}
    remaining: dict[str, list[Pair]] = {}
    for pair in pairs_of(candidates):
        if pair[0] not in waiting and pair not in asked:
            remaining.setdefault(pair[0], []).append(pair)
    return [Wanted(*pair, "no_gold", "no_gold", len(pairs), permanent_number(seed, pair))
            for pairs in remaining.values() for pair in pairs]


def _every_yes(rows: list[dict[str, Any]], labels: pa.Table, *, campaign: str, wave: int,
               seed: int) -> list[dict[str, Any]]:
    first = {(row["question_id"], row["span_id"]): row for row in reversed(rows) if row["reason"] in PRIMARY}
    groups = by_pair(answer for answer in standing(labels.to_pylist()) if answer.answers)
    return [_again(pair, first.get(pair), "second", campaign=campaign, wave=wave, seed=seed)
            for pair, answers in sorted(groups.items())
            if len({answer.assessor for answer in answers}) == 1 and any(answer.relevant for answer in answers)]


def _again(pair: Pair, first: dict[str, Any] | None, reason: str, *, campaign: str, wave: int,
           seed: int) -> dict[str, Any]:
    """A further item for a pair; it repeats the stratum of the first, or stands alone where nobody had asked."""
    identity = item_id(campaign, wave, reason, *pair)
    if first is not None:
        return {**first, "item_id": identity, "wave": wave, "reason": reason}
    return as_row(Wanted(*pair, reason, reason, 1, permanent_number(seed, pair)), campaign=campaign, wave=wave)
