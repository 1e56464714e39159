"""Carry-forward: what people said of the same question and the same text is not asked again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.text import content_hash

from .desk import layer_of
from .history import Answer, Pair, standing

Said = dict[str, list[Answer]]
"""Layer (first, second, adjudication; '' where no item asked) -> its answers, by time."""


def carried_labels(*, queue: pa.Table, labels: pa.Table, earlier_queue: pa.Table, earlier_labels: pa.Table,
                   spans: pa.Table, questions: pa.Table, rubric_major: str, campaign: str) -> list[dict[str, Any]]:
    """Open items and what people said in earlier campaigns -> label rows for this one.

    An answer is carried if question and span text hash are the same and the rubric's major version is; for each pair
    the newest campaign with such answers counts. Each item takes the answer of its own layer: the first reader's, the
    second's, the adjudicator's. So differences come back as differences, and their adjudication with them. Passages
    that somebody found by searching, or imported, come along without an item. The rows keep person, time and evidence
    and name the label they come from; nothing of the earlier log is touched.
    """
    known = _known(earlier_queue, earlier_labels, spans, set(questions.column("question_id").to_pylist()), rubric_major)
    given = standing(labels.to_pylist())
    answered = {answer.item_id for answer in given if answer.answers}
    rows = {row["label_id"]: row for row in earlier_labels.to_pylist()}
    made = []
    for item in queue.to_pylist():
        said = known.get((item["question_id"], item["span_id"]), {})
        layer = layer_of(item["reason"])
        answers = said.get(layer) or (said.get("") if layer == "first" else None)
        if answers and item["item_id"] not in answered:
            made.append(_carried(answers[-1], rows, item["item_id"], campaign, "carried"))
    asked = set(zip(queue.column("question_id").to_pylist(), queue.column("span_id").to_pylist(), strict=True))
    asked |= {answer.pair for answer in given}
    for pair, said in known.items():
        if pair not in asked and "" in said:
            answer = said[""][-1]
            made.append(_carried(answer, rows, None, campaign, answer.origin))
    there = set(labels.column("label_id").to_pylist())  # carried once and taken back since: people's turn
    return [row for row in made if row["label_id"] not in there]


def _carried(answer: Answer, rows: dict[str, dict[str, Any]], item: str | None, campaign: str,
             origin: str) -> dict[str, Any]:
    return {**rows[answer.label_id], "label_id": "c" + content_hash("carried", answer.label_id, item, campaign)[:24],
            "item_id": item, "campaign": campaign, "supersedes": None, "origin": origin, "seconds": None,
            "evidence": [{"start": start, "end": end} for start, end in answer.evidence],
            "evidence_source": answer.evidence_source, "note": f"carried from {answer.label_id}"}


def _known(queue: pa.Table, labels: pa.Table, spans: pa.Table, questions: set[str],
           rubric_major: str) -> dict[Pair, Said]:
    """Pair -> what was said of it in the newest campaign that read the same text under the same rubric."""
    texts = dict(zip(spans.column("span_id").to_pylist(), spans.column("text_hash").to_pylist(), strict=True))
    layers = {row["item_id"]: layer_of(row["reason"]) for row in queue.to_pylist()}
    rows = {row["label_id"]: row for row in labels.to_pylist()}
    newest: dict[str, Any] = {}
    for row in rows.values():
        newest[row["campaign"]] = max(newest.get(row["campaign"], row["time"]), row["time"])
    known: dict[Pair, Said] = {}
    for campaign in sorted(newest, key=lambda name: (newest[name], name), reverse=True):
        fresh: dict[Pair, Said] = {}
        for answer in standing(labels.filter(pc.equal(labels.column("campaign"), campaign)).to_pylist()):
            row = rows[answer.label_id]
            same_text = row["span_text_hash"] == texts.get(answer.span_id)
            same_rubric = row["rubric_version"].split(".")[0] == rubric_major
            if same_text and same_rubric and answer.answers and answer.question_id in questions:
                layer = layers.get(answer.item_id or "", "")
                fresh.setdefault(answer.pair, {}).setdefault(layer, []).append(answer)
        for pair, said in fresh.items():
            known.setdefault(pair, said)
    return known
