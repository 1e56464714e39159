"""What people have said before, in earlier rebuilds or for another reason, answers the items of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from goldset.config import Config
from goldset.pipeline.runner import Artifacts

if TYPE_CHECKING:
    from goldset.review import ReviewStore


def carry(config: Config, artifacts: Artifacts, store: ReviewStore) -> int:
    """Answer the open items that people have answered already; returns the number of answers carried.

    Holes that were filled for an earlier rebuild come along as items of this one, where question and text are the
    same: they were read with certainty, and stay so.
    """
    from goldset.judges import load_rubric
    from goldset.review import ReviewStore, answered_before

    campaign: str = artifacts.table("queue").column("campaign")[0].as_py()
    major = load_rubric(config.path(config.judge.rubric)).version.split(".")[0]
    here = {"spans": artifacts.table("spans"), "questions": artifacts.table("questions"), "rubric_major": major,
            "campaign": campaign}
    everything = ReviewStore(config.review_url)
    queue, labels = everything.queue(), everything.labels()
    count = 0
    if any(name != campaign for name in pc.unique(labels.column("campaign")).to_pylist()):
        earlier = {"earlier_queue": queue.filter(pc.not_equal(queue.column("campaign"), campaign)),
                   "earlier_labels": labels.filter(pc.not_equal(labels.column("campaign"), campaign))}
        count += _holes(store, {**here, **earlier}, seed=config.project.seed)
        count += len(store.append_labels(_labels(store, {**here, **earlier})))
    return count + answered_before(store, **here)


def _labels(store: ReviewStore, known: dict[str, Any]) -> list[dict[str, Any]]:
    from goldset.review import carried_labels

    return carried_labels(queue=store.queue(), labels=store.labels(), **known)


def _holes(store: ReviewStore, known: dict[str, Any], *, seed: int) -> int:
    """Ask again, in this campaign, about the holes of earlier ones whose answers can be carried."""
    from goldset.review import ask, carried_labels, pairs_asked
    from goldset.review.queue import Wanted, as_row, ordered

    earlier, campaign = known["earlier_queue"], known["campaign"]
    holes = earlier.filter(pc.equal(earlier.column("reason"), "hole"))
    asked = pairs_asked(store.queue(), "hole")
    wanted = {}
    for row in holes.to_pylist():
        want = Wanted(row["question_id"], row["span_id"], "hole", row["stratum"], row["stratum_size"], row["u"])
        if want.pair not in asked:
            wanted[want.pair] = want
    if not wanted:
        return 0
    trial = ordered([as_row(want, campaign=campaign, wave=1) for want in wanted.values()], seed=seed, first=0)
    items = dict(zip(trial.column("item_id").to_pylist(), zip(trial.column("question_id").to_pylist(),
                                                              trial.column("span_id").to_pylist(), strict=True),
                     strict=True))
    answered = {items[row["item_id"]] for row in carried_labels(queue=trial, labels=store.labels().slice(0, 0), **known)
                if row["item_id"] in items}
    return ask(store, [want for pair, want in wanted.items() if pair in answered], campaign=campaign, seed=seed)
