"""What is asked beside the profile: holes, probes. One way into the queue for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from goldset.schemas import HOLE
from goldset.stats.sampling import pairs_of

from .carry import carried_labels
from .history import Pair
from .queue import Wanted, as_row, ordered

if TYPE_CHECKING:
    from .database import ReviewStore

BESIDE = (HOLE, "deep", "probe")
"""Reasons for which pairs are asked that no wave of a profile asks for."""


def ask(store: ReviewStore, wanted: Iterable[Wanted], *, campaign: str, seed: int) -> int:
    """Append wanted pairs as one further wave of a campaign, all or none; returns how many are new.

    A pair that was asked for the same reason before is left as it is, so asking again, or after a kill, changes
    nothing. Order as everywhere: questions shuffled, items shuffled within a question, after what is there.
    """
    queue = store.queue()
    columns = (queue.column(name).to_pylist() for name in ("question_id", "span_id", "reason"))
    asked = set(zip(*columns, strict=True))
    wave = 1 + (pc.max(queue.column("wave")).as_py() or 0)
    rows = [as_row(want, campaign=campaign, wave=wave) for want in wanted if (*want.pair, want.reason) not in asked]
    after = pc.max(queue.column("order")).as_py()
    return store.append_queue(ordered(rows, seed=seed, first=0 if after is None else after + 1)) if rows else 0


def answered_before(store: ReviewStore, *, spans: pa.Table, questions: pa.Table, candidates: pa.Table,
                    rubric_major: str, campaign: str) -> int:
    """Answer open items of BESIDE whose pair people have read in this campaign for another reason; returns how many.

    A hole that stood in the sample of the rejections becomes certain by this, and nobody reads it twice.
    """
    queue, labels = store.queue(), store.labels()
    beside = queue.filter(pc.is_in(queue.column("reason"), pa.array(BESIDE)))
    if not len(beside):
        return 0
    rows = [row for row in carried_labels(
        queue=beside, labels=labels, spans=spans, questions=questions, candidates=candidates, campaign=campaign,
        earlier_queue=queue, earlier_labels=labels, rubric_major=rubric_major) if row["item_id"] is not None]
    return len(store.append_labels(rows)) if rows else 0


def pairs_asked(queue: pa.Table, reason: str) -> set[Pair]:
    """Pairs that stand in a queue for one reason."""
    return set(pairs_of(queue.filter(pc.equal(queue.column("reason"), reason))))
