"""Carried answers, read again: a blind sample of what earlier rebuilds answered, and how far the two readings agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from goldset.schemas import CHECK
from goldset.text import unit_hash

from .history import Answer, Pair, answered_items, standing
from .queue import Wanted, as_row

SETTLING = (CHECK, "adjudication")
"""Reasons whose answers come after the carried one and do not belong to it."""
CARRIED_FROM = "carried from "
"""How the note of a carried label begins; the labels that it comes from follow."""


def sources(label: Mapping[str, Any]) -> list[str]:
    """The labels that a carried one names; empty for any other."""
    note = label["note"] or ""
    if not note.startswith(CARRIED_FROM):
        return []
    return note.removeprefix(CARRIED_FROM).partition(", on other spans")[0].split(", ")


def carried_answers(*, queue: pa.Table, labels: pa.Table) -> dict[Pair, bool]:
    """queue, labels of one campaign -> pairs that earlier campaigns answered with yes or no, and what they said.

    Answers of this campaign that stand for another item too are not carried; neither is "can't tell", nor a pair on
    which the carried answers differ.
    """
    said: dict[Pair, set[bool | None]] = {}
    for answer in _carried(queue, labels):
        said.setdefault(answer.pair, set()).add(answer.relevant)
    return {pair: True in given for pair, given in said.items() if given in ({True}, {False})}


def checks(*, queue: pa.Table, labels: pa.Table, share: float, seed: int, campaign: str,
           wave: int) -> list[dict[str, Any]]:
    """queue, labels -> rows that put a share of the carried answers before people again (reason carried_check).

    Yes and no are two strata. In each, the ``ceil(share N_h)`` pairs with the smallest permanent numbers (METHODS 0)
    are read, so the sample grows with what is carried; what stands in the queue already is not asked again. Left out
    are pairs that are adjudicated here: three people have read them.
    """
    rows = queue.to_pylist()
    asked, settled = ({(row["question_id"], row["span_id"]) for row in rows if row["reason"] == reason}
                      for reason in SETTLING)
    strata: dict[bool, list[Pair]] = {True: [], False: []}
    for pair, relevant in carried_answers(queue=queue, labels=labels).items():
        if pair in asked or pair not in settled:
            strata[relevant].append(pair)
    made = []
    for relevant, pairs in strata.items():
        name, number = "carried_yes" if relevant else "carried_no", math.ceil(round(share * len(pairs), 9))
        drawn = sorted((unit_hash(seed, CHECK, *pair), pair) for pair in pairs)[:number]
        made += [as_row(Wanted(*pair, CHECK, name, len(pairs), u), campaign=campaign, wave=wave)
                 for u, pair in drawn if pair not in asked]
    return made


def reread(*, queue: pa.Table, labels: pa.Table) -> dict[str, Any]:
    """queue, labels of one campaign -> carried answers against their second reading, for status and manifest.

    Keys: carried {yes, no} (pairs); asked, open (items); same_reader (re-read by somebody whose answer was carried);
    cannot_tell (re-read without a yes or no); and of the others ``two_raters`` (METHODS 10), the carried answer first:
    n, agreement with Wilson's interval, kappa, positive_agreement and so on, null where not defined. Adjudications
    change nothing here.
    """
    from goldset.stats.agreement import two_raters

    said = carried_answers(queue=queue, labels=labels)
    authors: dict[Pair, set[str]] = {}
    for answer in _carried(queue, labels):
        authors.setdefault(answer.pair, set()).add(answer.assessor)
    given = answered_items(standing(labels.to_pylist()))
    items = {row["item_id"]: (row["question_id"], row["span_id"]) for row in queue.to_pylist()
             if row["reason"] == CHECK}
    read = [(said[pair], given[item][-1]) for item, pair in sorted(items.items()) if item in given and pair in said]
    told = [(before, now.relevant) for before, now in read if now.relevant is not None]
    cells = [told.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))]
    return {"carried": {"yes": sum(said.values()), "no": len(said) - sum(said.values())}, "asked": len(items),
            "open": len(items.keys() - given.keys()), "cannot_tell": len(read) - len(told),
            "same_reader": sum(now.assessor in authors[now.pair] for _, now in read), **two_raters(*cells)}


def _carried(queue: pa.Table, labels: pa.Table) -> Iterable[Answer]:
    rows = {row["label_id"]: row for row in labels.to_pylist()}
    after = {row["item_id"] for row in queue.to_pylist() if row["reason"] in SETTLING}
    return [answer for answer in standing(rows.values())
            if answer.answers and answer.item_id not in after
            and (names := sources(rows[answer.label_id])) and not rows.keys() & set(names)]
