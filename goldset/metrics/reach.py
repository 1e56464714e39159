"""How far a number could move: equal scores at the cut, gold that does not resolve, questions that a run lacks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.metrics.questions import Mask, index_in
from goldset.metrics.results import Results
from goldset.stats.intervals import Floats


class Reordered(NamedTuple):
    """Lists with the tied results in the order worst and best for the gold; ``tied``: questions with gold in them."""

    worst: pa.Table
    best: pa.Table
    tied: Mask


def reordered(results: Results, k: int) -> Reordered | None:
    """One system's results, a cutoff -> Reordered; None where no equal scores straddle the cut, or none holds gold.

    Only the stretch of neighbouring ranks around the cut that share one score is reordered, so a reranked list that
    kept older scores stays as it was served. The two orders are attained; where gold needs several chunks together, a
    more extreme one may exist.
    """
    if results.chunks is not None:
        return None
    rows = _around(results.full, k)
    if rows is None:
        return None
    question = results.questions.index(rows.column("question_id"))
    rank = rows.column("rank").to_numpy().astype(np.int64)
    order = np.lexsort((rank, question))
    rows, question, rank = rows.take(pa.array(order)), question[order], rank[order]
    score = rows.column("score").to_numpy()
    stretch = np.cumsum(np.r_[True, (question[1:] != question[:-1]) | (score[1:] != score[:-1])])
    near = np.flatnonzero(np.isin(stretch, stretch[rank == k]) & (question >= 0))
    holds = _holds_gold(results, rows)
    if not holds[near].any():
        return None
    tables = []
    for late in (holds, ~holds):
        moved = rank.copy()
        moved[near[np.lexsort((rank[near], late[near], stretch[near]))]] = rank[near]
        position = rows.schema.get_field_index("rank")
        tables.append(rows.set_column(position, rows.schema.field(position), pa.array(moved.astype(np.int32))))
    tied = np.zeros(len(results.questions.ids), np.bool_)
    tied[question[near[holds[near]]]] = True
    return Reordered(tables[0], tables[1], tied)


def _around(run: pa.Table, k: int) -> pa.Table | None:
    """All results of the questions whose results at k and k + 1 have the same score; None where there is none."""
    here, after = (run.filter(pc.equal(run.column("rank"), rank)) for rank in (k, k + 1))
    if not len(here):
        return None
    place = index_in(after.column("question_id"), here.column("question_id").combine_chunks())
    there = here.column("score").to_numpy()[place]
    same = (place >= 0) & (after.column("score").to_numpy() == there)  # a null is NaN here and equals nothing
    if not same.any():
        return None
    asked = after.column("question_id").filter(pa.array(same))
    return run.filter(pc.is_in(run.column("question_id"), value_set=asked.combine_chunks()))


def _holds_gold(results: Results, rows: pa.Table) -> Mask:
    """Whether each result holds a gold of its question, or a part of one."""
    questions = results.questions
    groups = questions.labelled.gold.column("twin_group")
    names = pc.unique(groups)
    gold = questions.gold_owner * len(names) + index_in(groups, names)
    question = questions.index(rows.column("question_id"))
    corpus = questions.labelled.corpus if questions.labelled.kind == "published" else None
    if corpus is None:
        place = index_in(rows.column("chunk_id"), names)
        mask: Mask = (place >= 0) & (question >= 0) & np.isin(question * len(names) + place, gold)
        return mask
    group = corpus.spans.column("twin_group").take(
        pc.index_in(corpus.links.column("span_id"), value_set=corpus.spans.column("span_id").combine_chunks()))
    chunks = pc.unique(rows.column("chunk_id"))
    owner, place = index_in(corpus.links.column("chunk_id"), chunks), index_in(group, names)
    held: dict[int, set[int]] = {}
    for chunk, span in zip(owner.tolist(), place.tolist(), strict=True):
        if chunk >= 0 and span >= 0:
            held.setdefault(chunk, set()).add(span)
    wanted = set(gold.tolist())
    return np.array([any(asked * len(names) + span in wanted for span in held.get(chunk, ())) for asked, chunk in
                     zip(question.tolist(), index_in(rows.column("chunk_id"), chunks).tolist(), strict=True)], np.bool_)


class Ceiling(NamedTuple):
    """What a perfect order could reach: share of each question's gold; and where it is short, and why."""

    share: Floats
    outside: Mask
    missing: Mask


def ceiling(results: Results) -> Ceiling:
    """One system's results -> Ceiling: gold that stands in no passage cannot be delivered, nor can a missing question.

    A question that was answered with an empty list is the system's own doing and lowers nothing here.
    """
    questions = results.questions
    gone = questions.unresolved & questions.confirmed
    lost = np.bincount(questions.gold_owner[gone], minlength=len(questions.ids))
    missing = (results.length == 0) & ~results.is_empty & (questions.gold > 0)
    left = np.where(missing, 0.0, questions.gold - lost)
    share: Floats = np.divide(left, questions.gold, out=np.zeros(len(left)), where=questions.gold > 0)
    return Ceiling(share, lost > 0, missing)
