"""Inclusion probabilities, as a pure function of queue and decisions (STATISTICS 0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

Pair = tuple[str, str]
Known = Mapping[Pair, str | None]
"""Pairs that were known before the sample was drawn -> the stratum that they are in; null where in none."""

SAMPLED_REASONS = ("rejection", "probe")
"""Reasons for which a random part of the stratum is read; everything else is read whole."""
_REPEATS = ("second", "adjudication", "calibration")
READ = ("decided", "cant_tell", "conflict")

PROBABILITIES = pa.schema([
    pa.field("question_id", pa.string(), nullable=False),
    pa.field("span_id", pa.string(), nullable=False),
    pa.field("inclusion_prob", pa.float64(), nullable=False),
    pa.field("stratum", pa.string()),
])


def inclusion_probabilities(queue: pa.Table, decisions: pa.Table, known: Known | None = None) -> pa.Table:
    """Queue, decisions -> (question_id, span_id, inclusion_prob, stratum) of every decided or undecidable pair.

    A pair that was asked only because it was sampled has n_h / N_h: pairs of its stratum that people read, over the
    size of the stratum. A pair that was asked for any other reason too (positive, no verdict, full reading), or that
    nobody was asked about (found by searching, carried), has 1. Pairs in ``known`` have 1 and are a stratum of their
    own: the others are counted without them. Computed once, at publish: top-ups and full reading raise it. Rows come
    in order of question_id, span_id.
    """
    asked = _asked(queue, known or {})
    status = {(row["question_id"], row["span_id"]): row["status"]
              for row in decisions.select(["question_id", "span_id", "status"]).to_pylist()}
    read: dict[tuple[str, str], int] = {}
    for pair, (_, drawn_from) in asked.items():
        if status.get(pair) in READ:
            for key in drawn_from:
                read[key] = read.get(key, 0) + 1
    rows: list[dict[str, Any]] = []
    for pair in sorted(pair for pair, state in status.items() if state in READ):
        certain, strata = asked.get(pair, (True, {}))
        chances = {key[1]: read[key] / size for key, size in strata.items()}
        stratum = max(sorted(chances), key=lambda name: chances[name]) if chances else None
        probability = 1.0 if certain or stratum is None else min(1.0, chances[stratum])
        rows.append({"question_id": pair[0], "span_id": pair[1], "inclusion_prob": probability, "stratum": stratum})
    return pa.Table.from_pylist(rows, schema=PROBABILITIES)


def _asked(queue: pa.Table, known: Known) -> dict[Pair, tuple[bool, dict[tuple[str, str], int]]]:
    """Pair -> (whether it is known or read for a reason under which all is read, strata it was drawn from, sizes)."""
    columns = ["question_id", "span_id", "campaign", "reason", "stratum", "stratum_size"]
    rows = [row for row in queue.select(columns).to_pylist() if row["reason"] not in _REPEATS]
    drawn = {(row["question_id"], row["span_id"]): row["stratum"] for row in rows if row["reason"] in SAMPLED_REASONS}
    # Where all that was drawn was known, it is all that can speak for the rest of its stratum.
    fresh = {stratum for pair, stratum in drawn.items() if pair not in known}
    apart = {pair: stratum for pair, stratum in known.items() if pair not in drawn or drawn[pair] in fresh}
    less = Counter(apart.values())
    asked: dict[Pair, tuple[bool, dict[tuple[str, str], int]]] = {}
    for row in rows:
        pair = (row["question_id"], row["span_id"])
        certain, strata = asked.get(pair, (False, {}))
        if row["reason"] in SAMPLED_REASONS and pair not in apart:
            key = (row["campaign"], row["stratum"])
            strata = {**strata, key: max(row["stratum_size"] - less[row["stratum"]], strata.get(key, 0))}
        else:
            certain = True
        asked[pair] = (certain, strata)
    return asked


def strata_counts(queue: pa.Table, decisions: pa.Table, *, campaign: str = "rebuild",
                  known: Known | None = None) -> list[dict[str, Any]]:
    """Queue, decisions -> stratum, size N_h, read n_h, found (relevant among them) of a campaign's sampled strata.

    Pairs in ``known`` belong to none of them.
    """
    state = {(row["question_id"], row["span_id"]): row
             for row in decisions.select(["question_id", "span_id", "status", "relevant"]).to_pylist()}
    counts: dict[str, dict[str, Any]] = {}
    for pair, (_, strata) in _asked(queue, known or {}).items():
        for (owner, name), size in strata.items():
            if owner != campaign:
                continue
            row = counts.setdefault(name, {"stratum": name, "size": size, "read": 0, "found": 0})
            decision = state.get(pair)
            if decision is not None and decision["status"] in READ:
                row["read"] += 1
                row["found"] += decision["relevant"] is True
    return [counts[name] for name in sorted(counts)]
