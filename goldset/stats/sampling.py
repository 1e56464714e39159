"""Inclusion probabilities, as a pure function of queue and decisions (METHODS 0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from goldset.schemas import CHECK, DEEP

Pair = tuple[str, str]
Known = Mapping[Pair, str | None]
"""Pairs that were known before the sample was drawn -> the stratum that they are in; null where in none."""

SAMPLED_REASONS = ("rejection", "probe", "deep")
"""Reasons for which a random part of the stratum is read; everything else is read whole."""
REPEATS = ("second", "adjudication", "calibration", CHECK)
"""Reasons for which a pair is read once more: they say nothing of how it came to be read at first."""
READ = ("decided", "cant_tell", "conflict")

PROBABILITIES = pa.schema([
    pa.field("question_id", pa.string(), nullable=False),
    pa.field("span_id", pa.string(), nullable=False),
    pa.field("inclusion_prob", pa.float64(), nullable=False),
    pa.field("stratum", pa.string()),
])


def pairs_of(table: pa.Table) -> list[Pair]:
    """Question and span of each row."""
    return list(zip(table.column("question_id").to_pylist(), table.column("span_id").to_pylist(), strict=True))


@dataclass(frozen=True)
class _Asked:
    """How a pair came to be read: for a reason under which all is read, or drawn from strata (with their sizes)."""

    certain: bool = False
    strata: Mapping[tuple[str, str], int] = field(default_factory=dict)


def inclusion_probabilities(queue: pa.Table, decisions: pa.Table, known: Known | None = None, *,
                            entered: Mapping[str, float] | None = None) -> pa.Table:
    """Queue, decisions -> (question_id, span_id, inclusion_prob, stratum) of every decided or undecidable pair.

    A pair that was asked only because it was sampled has n_h / N_h: pairs of its stratum that people read, over the
    size of the stratum. A pair of the deep probe was drawn twice, so its n_h / N_h is multiplied by the chance with
    which pairs of its question entered the strata. A pair that was asked for any other reason too (positive, no
    verdict, full reading, hole), or that nobody was asked about (found by searching, carried), has 1. Pairs in
    ``known`` have 1 and are a stratum of their own: the others are counted without them. Computed once, at publish:
    top-ups and full reading raise it. Rows come in order of question_id, span_id.

    Args:
        queue: table ``queue``.
        decisions: table ``decisions``.
        known: pairs that were known before the sample was drawn.
        entered: question -> chance that a pair of the deep probe's window was drawn.
    """
    asked = _asked(queue, known or {})
    status = {(row["question_id"], row["span_id"]): row["status"]
              for row in decisions.select(["question_id", "span_id", "status"]).to_pylist()}
    read: dict[tuple[str, str], int] = {}
    for pair, how in asked.items():
        if status.get(pair) in READ:
            for key in how.strata:
                read[key] = read.get(key, 0) + 1
    rows: list[dict[str, Any]] = []
    for pair in sorted(pair for pair, state in status.items() if state in READ):
        how = asked.get(pair, _Asked(certain=True))
        chances = {name: read[campaign, name] / size * ((entered or {})[pair[0]] if name.startswith(DEEP) else 1.0)
                   for (campaign, name), size in how.strata.items()}
        stratum = max(sorted(chances), key=lambda name: chances[name]) if chances else None
        probability = 1.0 if how.certain or stratum is None else min(1.0, chances[stratum])
        rows.append({"question_id": pair[0], "span_id": pair[1], "inclusion_prob": probability, "stratum": stratum})
    return pa.Table.from_pylist(rows, schema=PROBABILITIES)


def _asked(queue: pa.Table, known: Known) -> dict[Pair, _Asked]:
    columns = ["question_id", "span_id", "campaign", "reason", "stratum", "stratum_size"]
    rows = [row for row in queue.select(columns).to_pylist() if row["reason"] not in REPEATS]
    drawn = {(row["question_id"], row["span_id"]): row["stratum"] for row in rows if row["reason"] in SAMPLED_REASONS}
    # Where all that was drawn was known, it is all that can speak for the rest of its stratum.
    fresh = {stratum for pair, stratum in drawn.items() if pair not in known}
    apart = {pair: drawn.get(pair, stratum) for pair, stratum in known.items()
             if pair not in drawn or drawn[pair] in fresh}
    less = Counter(apart.values())
    asked: dict[Pair, _Asked] = {}
    for row in rows:
        pair = (row["question_id"], row["span_id"])
        how = asked.get(pair, _Asked())
        if row["reason"] in SAMPLED_REASONS and pair not in apart:
            key = (row["campaign"], row["stratum"])
            size = row["stratum_size"] - less[row["stratum"]]
            how = _Asked(how.certain, {**how.strata, key: max(size, how.strata.get(key, 0))})
        else:
            how = _Asked(True, how.strata)
        asked[pair] = how
    return asked


def strata_counts(queue: pa.Table, decisions: pa.Table, *, campaign: str = "rebuild",
                  known: Known | None = None, deep: bool = False) -> list[dict[str, Any]]:
    """Queue, decisions -> stratum, size N_h, read n_h, found of a campaign's sampled strata.

    ``found`` counts the relevant pairs that stand for others: not those that are certain for another reason. Pairs
    in ``known`` belong to no stratum. ``deep`` takes the strata of the deep probe instead of the others.
    """
    state = {(row["question_id"], row["span_id"]): row
             for row in decisions.select(["question_id", "span_id", "status", "relevant"]).to_pylist()}
    counts: dict[str, dict[str, Any]] = {}
    for pair, how in _asked(queue, known or {}).items():
        for (owner, name), size in how.strata.items():
            if owner != campaign or name.startswith(DEEP) != deep:
                continue
            row = counts.setdefault(name, {"stratum": name, "size": size, "read": 0, "found": 0})
            decision = state.get(pair)
            if decision is not None and decision["status"] in READ:
                row["read"] += 1
                row["found"] += decision["relevant"] is True and not how.certain
    return [counts[name] for name in sorted(counts)]
