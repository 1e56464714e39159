"""Decisions and queue -> judgments (negatives too) and gold, with inclusion probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.schemas import CHECK, DEEP, HOLE, from_rows
from goldset.stats.sampling import Known, strata_counts


@dataclass(frozen=True)
class GoldTables:
    """judgments and gold of one version, and what the manifest says of the sampling."""

    judgments: pa.Table
    gold: pa.Table
    sampling: dict[str, Any]
    read_in_full: list[str]
    merged: int = 0
    """Gold that is the evidence of another one over again (overlap by half or more)."""


def build_gold(*, decisions: pa.Table, probabilities: pa.Table, queue: pa.Table, spans: pa.Table,
               candidates: pa.Table, known: Known | None = None) -> GoldTables:
    """Decisions -> judgments, gold. One row a pair that people settled; open pairs and conflicts are left out.

    ``probabilities`` has question_id, span_id, inclusion_prob (stats.sampling, computed here once and never
    earlier). A pair that people could not tell keeps its row with relevant = null. Judge verdicts never become
    gold. A relevant pair without evidence ranges keeps an empty list and a null source. Two golds of one question
    whose evidence overlaps by half or more of the shorter are one: with the evidence of both, under the pair that was
    surer to be asked; both judgments stay. ``known`` are the pairs that the probabilities count apart.
    """
    prob = {(row["question_id"], row["span_id"]): row["inclusion_prob"] for row in probabilities.to_pylist()}
    first_stratum: dict[tuple[str, str], str] = {}
    for row in queue.sort_by([("wave", "ascending"), ("item_id", "ascending")]).to_pylist():
        pair = (row["question_id"], row["span_id"])
        if row["reason"] == HOLE and first_stratum.get(pair, "").startswith(DEEP):
            first_stratum[pair] = row["stratum"]  # read with certainty: it stands for no other pair of the window
        if row["reason"] != CHECK:
            first_stratum.setdefault(pair, row["stratum"])
    twin = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    judgments: list[dict[str, Any]] = []
    gold: list[dict[str, Any]] = []
    for row in decisions.sort_by([("question_id", "ascending"), ("span_id", "ascending")]).to_pylist():
        if row["status"] in ("open", "conflict"):
            continue
        pair = (row["question_id"], row["span_id"])
        chance = prob.get(pair, 1.0)  # found by search or brought by people: known with certainty
        judgments.append({"question_id": pair[0], "span_id": pair[1], "relevant": row["relevant"], "grade": None,
                          "basis": row["basis"], "inclusion_prob": chance,
                          "stratum": first_stratum.get(pair), "label_ids": row["label_ids"]})
        if row["relevant"]:
            gold.append({"question_id": pair[0], "span_id": pair[1], "evidence": row["evidence"],
                         "evidence_source": row["evidence_source"] if row["evidence"] else None, "facet": None,
                         "weight": 1.0 / chance, "twin_group": twin[pair[1]]})
    documents = dict(zip(spans.column("span_id").to_pylist(), spans.column("doc_id").to_pylist(), strict=True))
    one_each = _merged(gold, documents)
    return GoldTables(from_rows("judgments", judgments), from_rows("gold", one_each),
                      _sampling(queue, decisions, known), _read_in_full(candidates, prob, decisions),
                      len(gold) - len(one_each))


def _merged(gold: list[dict[str, Any]], documents: dict[str, str]) -> list[dict[str, Any]]:
    """Gold rows -> the same, golds of one question that are one by their evidence merged; order is kept."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    kept: list[dict[str, Any]] = []
    for row in gold:
        same = groups.setdefault((row["question_id"], documents[row["span_id"]]), [])
        # What was merged may now overlap a third: until nothing does.
        while other := next((known for known in same if same_evidence(row["evidence"], known["evidence"])), None):
            same.remove(other)
            kept.remove(other)
            first = min(row, other, key=lambda one: (one["weight"], one["span_id"]))
            row = {**first, "evidence": _union([*row["evidence"], *other["evidence"]])}
        same.append(row)
        kept.append(row)
    return sorted(kept, key=lambda row: (row["question_id"], row["span_id"]))


def same_evidence(left: list[dict[str, int]], right: list[dict[str, int]]) -> bool:
    """Whether two lists of ranges of one document share half or more of the shorter (in code points)."""
    left, right = _union(left), _union(right)
    shared = sum(max(0, min(a["end"], b["end"]) - max(a["start"], b["start"])) for a in left for b in right)
    least = min(sum(part["end"] - part["start"] for part in side) for side in (left, right))
    return bool(shared) and 2 * shared >= least


def _union(ranges: list[dict[str, int]]) -> list[dict[str, int]]:
    """Ranges -> disjoint ranges in order; those that only touch stay apart, they are sentences."""
    found: list[dict[str, int]] = []
    for part in sorted(ranges, key=lambda part: (part["start"], part["end"])):
        if found and part["start"] < found[-1]["end"]:
            found[-1] = {"start": found[-1]["start"], "end": max(found[-1]["end"], part["end"])}
        else:
            found.append(dict(part))
    return found


def _settled(decisions: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["question_id"], row["span_id"]): row for row in decisions.to_pylist()
            if row["status"] in ("decided", "cant_tell")}


def _sampling(queue: pa.Table, decisions: pa.Table, known: Known | None) -> dict[str, Any]:
    """Rejections in the pool, how many people read, and what they found: what METHODS 2 needs."""
    campaign = queue.column("campaign")[0].as_py() if len(queue) else "rebuild"
    strata = strata_counts(queue, decisions, campaign=campaign, known=known)
    return {"strata": strata, "rejections": sum(row["size"] for row in strata),
            "sampled": sum(row["read"] for row in strata), "found": sum(row["found"] for row in strata)}


def _read_in_full(candidates: pa.Table, prob: dict[tuple[str, str], float], decisions: pa.Table) -> list[str]:
    """Questions of which every candidate was read by people with certainty."""
    settled = _settled(decisions)
    partly = {row["question_id"] for row in candidates.select(["question_id", "span_id"]).to_pylist()
              if (row["question_id"], row["span_id"]) not in settled
              or prob.get((row["question_id"], row["span_id"]), 1.0) < 1.0}
    every = set(candidates.column("question_id").to_pylist())
    return sorted(every - partly)
