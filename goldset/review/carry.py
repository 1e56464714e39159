"""Carry-forward: what people said of the same question and the same text is not asked again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.schemas import CHECK
from goldset.stats.sampling import REPEATS, SAMPLED_REASONS, pairs_of
from goldset.text import content_hash

from .desk import layer_of
from .history import Answer, Pair, standing
from .queue import Wanted, as_row, ordered, permanent_number
from .reread import CARRIED_FROM
from .resolve import resolve

Said = dict[str, list[Answer]]
"""Layer (first, second, check, adjudication; '' where no item asked) -> its answers, by time."""


def carried_labels(*, queue: pa.Table, labels: pa.Table, earlier_queue: pa.Table, earlier_labels: pa.Table,
                   spans: pa.Table, questions: pa.Table, candidates: pa.Table, rubric_major: str,
                   campaign: str) -> list[dict[str, Any]]:
    """Open items and what people said in earlier campaigns -> label rows for this one.

    An answer is carried if question, span and its text are the same and the rubric's major version is; for each pair
    the newest campaign with such answers counts. Where a second item or a check asks about the pair too, each item
    takes the answer of its own layer: the first reader's, the second's, the check's, the adjudicator's. So differences
    come back as differences, and their adjudication with them. An item that is alone takes what was decided in the end.
    Pairs that nobody asks now come along without an item: what somebody found by searching or imported, every yes, and
    what was said of the other candidates. The rows keep person, time and evidence and name the label they come from;
    nothing of the earlier log is touched.
    """
    known = _known(earlier_queue, earlier_labels, spans, set(questions.column("question_id").to_pylist()), rubric_major)
    given = standing(labels.to_pylist())
    answered = {answer.item_id for answer in given if answer.answers}
    rows = {row["label_id"]: row for row in earlier_labels.to_pylist()}
    checks = {row["item_id"]: (row["question_id"], row["span_id"]) for row in queue.to_pylist()
              if row["reason"] == CHECK}
    twice = second_pairs(queue) | set(checks.values())
    disputed = fresh_checks(queue, given)
    made = []
    for item in queue.to_pylist():
        pair = (item["question_id"], item["span_id"])
        said, layer = known.get(pair, {}), layer_of(item["reason"])
        if layer == "adjudication" and pair in disputed:
            continue
        answers = said.get(layer) or (said.get("") if layer == "first" else None)
        if layer == "first" and pair not in twice:
            answers = _final(said)
        if answers and item["item_id"] not in answered:
            made.append(_carried(answers[-1], rows, item["item_id"], campaign, "carried"))
    asked = set(pairs_of(queue.filter(pc.not_equal(queue.column("reason"), CHECK))))
    asked |= {answer.pair for answer in given if answer.item_id not in checks}
    pooled = set(pairs_of(candidates))
    first = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    for pair, said in known.items():
        final = (said.get("") or said.get("first") or []) if pair in twice else _unasked(said)
        if first[pair[1]] != pair[1]:
            continue  # it has become the twin of another span, which is judged for both
        if pair not in asked and final and ("" in said or final[-1].relevant or pair in pooled):
            found = final[-1]
            made.append(_carried(found, rows, None, campaign, "carried" if found.item_id else found.origin))
    there = set(labels.column("label_id").to_pylist())  # carried once and taken back since: people's turn
    return [row for row in made if row["label_id"] not in there]


def fresh_checks(queue: pa.Table, given: Iterable[Answer]) -> set[Pair]:
    """Pairs whose carried answer was read again here: what settled them before settles no difference with that."""
    items = set(queue.filter(pc.equal(queue.column("reason"), CHECK)).column("item_id").to_pylist())
    return {answer.pair for answer in given if answer.item_id in items and answer.origin != "carried"}


def second_pairs(queue: pa.Table) -> set[Pair]:
    """Pairs that a second person is asked about."""
    return set(pairs_of(queue.filter(pc.equal(queue.column("reason"), "second"))))


def _final(said: Said) -> list[Answer]:
    """What was decided in the end; nothing where two differ and nobody has settled it."""
    if "adjudication" in said:
        return said["adjudication"]
    if len({answer.relevant for answers in said.values() for answer in answers}) > 1:
        return []
    return said.get("first") or said.get("") or []


def _unasked(said: Said) -> list[Answer]:
    """What stands for a pair that nobody asks: what was found or imported, unless an adjudication overruled it."""
    beside, settled = said.get(""), said.get("adjudication")
    if not beside or (settled and settled[-1].relevant != beside[-1].relevant):
        return _final(said)
    return beside


def _carried(answer: Answer, rows: Mapping[str, dict[str, Any]], item: str | None, campaign: str,
             origin: str) -> dict[str, Any]:
    return {**rows[answer.label_id], "label_id": "c" + content_hash("carried", answer.label_id, item, campaign)[:24],
            "item_id": item, "campaign": campaign, "supersedes": None, "origin": origin, "seconds": None,
            "evidence": [{"start": start, "end": end} for start, end in answer.evidence],
            "evidence_source": answer.evidence_source, "note": f"{CARRIED_FROM}{answer.label_id}"}


def _known(queue: pa.Table, labels: pa.Table, spans: pa.Table, questions: set[str],
           rubric_major: str) -> dict[Pair, Said]:
    """Pair -> what was said of it in the newest campaign that read the same text under the same rubric."""
    texts = dict(zip(spans.column("span_id").to_pylist(), spans.column("text_hash").to_pylist(), strict=True))
    layers = {row["item_id"]: layer_of(row["reason"]) for row in queue.to_pylist()}
    rows = {row["label_id"]: row for row in labels.to_pylist()}
    known: dict[Pair, Said] = {}
    for campaign in newest_first(labels):
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


def newest_first(labels: pa.Table) -> list[str]:
    """Campaigns by their newest label."""
    newest: dict[str, Any] = {}
    for campaign, time in zip(labels.column("campaign").to_pylist(), labels.column("time").to_pylist(), strict=True):
        newest[campaign] = max(newest.get(campaign, time), time)
    return sorted(newest, key=lambda name: (newest[name], name), reverse=True)


# --- what another chunking answers -----------------------------------------------------------------------------------


def layer_decisions(*, queue: pa.Table, labels: pa.Table, spans: pa.Table, rubric_major: str) -> dict[str, pa.Table]:
    """One earlier campaign -> table ``decisions`` of each layer, and ``final``, of all.

    Labels under another major rubric, and of texts that ``spans`` does not hold, are left out.
    """
    texts = dict(zip(spans.column("span_id").to_pylist(), spans.column("text_hash").to_pylist(), strict=True))
    kept = [row["rubric_version"].split(".")[0] == rubric_major and texts.get(row["span_id"]) == row["span_text_hash"]
            for row in labels.select(["rubric_version", "span_id", "span_text_hash"]).to_pylist()]
    said = labels.filter(pa.array(kept, pa.bool_()))
    reasons = dict(zip(queue.column("item_id").to_pylist(), queue.column("reason").to_pylist(), strict=True))
    of_item = [layer_of(reasons.get(item, "")) for item in said.column("item_id").to_pylist()]
    empty = queue.slice(0, 0)
    made = {layer: resolve(queue=empty, labels=said.filter(pa.array([one == layer for one in of_item], pa.bool_())))
            for layer in ("first", "second")}
    adjudicated = queue.filter(pc.equal(queue.column("reason"), "adjudication"))
    return {**made, "final": resolve(queue=adjudicated, labels=said)}


def followed_label(*, decision: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]], text_hash: str,
                   item: str | None, campaign: str, avoid: Iterable[str] = ()) -> dict[str, Any] | None:
    """A decision that follows from labels on other spans -> its label row; None where only ``avoid`` stands behind it.

    The row carries the person and the time of the newest label that says the same, and its note names all of them.

    Args:
        decision: row of ``carry_decisions``.
        sources: the earlier labels by label_id.
        text_hash: of the span that is answered.
        item: the item that it answers, if any.
        campaign: of that item.
        avoid: people who have answered another item of the pair.
    """
    shunned = set(avoid)
    behind = sorted((row for name in decision["label_ids"] if (row := sources.get(name)) is not None
                     and row["action"] == "label" and row["relevant"] is decision["relevant"]
                     and row["assessor"] not in shunned), key=lambda row: (row["time"], row["label_id"]))
    if not behind:
        return None
    names = ", ".join(decision["label_ids"])
    return {**behind[-1], "label_id": "c" + content_hash("followed", names, item, decision["span_id"], campaign)[:24],
            "item_id": item, "question_id": decision["question_id"], "span_id": decision["span_id"],
            "span_text_hash": text_hash, "campaign": campaign, "supersedes": None, "seconds": None, "reason": None,
            "origin": "carried" if item or behind[-1]["item_id"] else behind[-1]["origin"],
            "evidence": decision["evidence"], "evidence_source": decision["evidence_source"],
            "note": f"{CARRIED_FROM}{names}, on other spans: " + (
                "their evidence lies here" if decision["relevant"] else "together they hold this text")}


def divided_rows(pairs: Iterable[Pair], *, queue: pa.Table, seed: int) -> pa.Table:
    """Pairs that may hold a part of what an earlier yes rests on -> queue rows (reason divided)."""
    rows = queue.to_pylist()
    wave = 1 + max((row["wave"] for row in rows), default=0)
    wanted = sorted(pairs)
    made = [as_row(Wanted(*pair, "divided", "divided", len(wanted), permanent_number(seed, pair)),
                   campaign=rows[0]["campaign"], wave=wave) for pair in wanted]
    return ordered(made, seed=seed, first=1 + max((row["order"] for row in rows), default=-1))


def known_before(*, queue: pa.Table, labels: pa.Table, earlier_queue: pa.Table,
                 earlier_labels: pa.Table) -> set[Pair]:
    """Pairs whose answer was known before this campaign's sample was drawn: a stratum of their own, read in full.

    A pair that the same permanent numbers drew before, and draw again, is still a part of the sample: its earlier
    answer is the sample's. So is one that was drawn and read here, whatever else its answer answers; to read it once
    more, as a second label, a check or an adjudication, makes no difference.
    """
    def drawn(table: pa.Table) -> set[Pair]:
        return set(pairs_of(table.filter(pc.is_in(table.column("reason"), value_set=pa.array(SAMPLED_REASONS)))))

    def repeats(table: pa.Table) -> set[str]:
        items = table.filter(pc.is_in(table.column("reason"), value_set=pa.array(REPEATS))).column("item_id")
        return set(items.to_pylist())

    names = ["question_id", "span_id", "span_text_hash"]
    texts = {(row["question_id"], row["span_id"]): row["span_text_hash"] for row in labels.select(names).to_pylist()}
    again, again_here = repeats(earlier_queue), repeats(queue)
    read = {(row["question_id"], row["span_id"])
            for row in earlier_labels.select([*names, "origin", "item_id"]).to_pylist()
            if row["origin"] != "carried" and row["item_id"] not in again
            and texts.get((row["question_id"], row["span_id"])) == row["span_text_hash"]}
    known = {answer.pair for answer in standing(labels.to_pylist())
             if answer.answers and (answer.origin == "carried" or answer.item_id is None)}
    here = {answer.pair for answer in standing(labels.to_pylist())
            if answer.answers and answer.origin != "carried" and answer.item_id not in again_here | {None}}
    return known - (drawn(queue) & ((drawn(earlier_queue) & read) | here))
