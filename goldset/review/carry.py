"""Carry-forward: what people said of the same question and the same text is not asked again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.text import content_hash

from .history import Pair, answered_items, standing
from .queue import PRIMARY
from .resolve import resolve


def carried_labels(*, queue: pa.Table, labels: pa.Table, earlier_queue: pa.Table, earlier_labels: pa.Table,
                   spans: pa.Table, rubric_major: str) -> list[dict[str, Any]]:
    """Open items and what earlier campaigns decided -> label rows with origin ``carried``.

    A decision is carried if question and span text hash are the same and the rubric's major version is; the newest
    campaign that decided the pair on these terms counts. The first item takes the first of the people behind the
    decision, the second item another one of them, and stays open if there is none. The rows keep the time and name
    the label they come from; nothing of the earlier log is touched.
    """
    texts = dict(zip(spans.column("span_id").to_pylist(), spans.column("text_hash").to_pylist(), strict=True))
    rows = {row["label_id"]: row for row in earlier_labels.to_pylist()}
    known = _decided(earlier_queue, earlier_labels)
    given = answered_items(standing(labels.to_pylist()))
    made = []
    for item in queue.to_pylist():
        pair = (item["question_id"], item["span_id"])
        if item["item_id"] in given or pair not in known or item["reason"] == "adjudication":
            continue
        for decision in known[pair]:
            people: dict[str, dict[str, Any]] = {}
            for label_id in decision["label_ids"]:
                row = rows[label_id]
                if row["action"] == "label" and row["span_text_hash"] == texts.get(pair[1]) \
                        and row["rubric_version"].split(".")[0] == rubric_major:
                    people.setdefault(row["assessor"], row)
            if people:
                break
        turn = 0 if item["reason"] in PRIMARY else 1
        if len(people) > turn:
            source = people[sorted(people)[turn]]
            made.append({**source, "label_id": "c" + content_hash("carried", source["label_id"], item["item_id"])[:24],
                         "item_id": item["item_id"], "campaign": item["campaign"], "action": "label",
                         "relevant": decision["relevant"],
                         "evidence": decision["evidence"] if decision["relevant"] else [],
                         "evidence_source": decision["evidence_source"] if decision["relevant"] else None,
                         "reason": "cant_tell" if decision["status"] == "cant_tell" else None, "supersedes": None,
                         "origin": "carried", "note": f"carried from {source['label_id']}", "seconds": None})
    return made


def _decided(queue: pa.Table, labels: pa.Table) -> dict[Pair, list[dict[str, Any]]]:
    """Pair -> the decisions of the campaigns that settled it, the newest first."""
    newest: dict[str, Any] = {}
    for row in labels.select(["campaign", "time"]).to_pylist():
        newest[row["campaign"]] = max(newest.get(row["campaign"], row["time"]), row["time"])
    known: dict[Pair, list[dict[str, Any]]] = {}
    for campaign in sorted(newest, key=lambda name: (newest[name], name), reverse=True):
        part = [table.filter(pc.equal(table.column("campaign"), campaign)) for table in (queue, labels)]
        for row in resolve(queue=part[0], labels=part[1]).to_pylist():
            if row["status"] in ("decided", "cant_tell"):
                known.setdefault((row["question_id"], row["span_id"]), []).append(row)
    return known
