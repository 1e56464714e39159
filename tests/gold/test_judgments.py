"""Decisions and queue -> judgments and gold, against a case worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.gold import GoldTables, build_gold, content_hash_of, version_paths, write_version
from goldset.schemas import empty, from_rows
from goldset.stats.sampling import inclusion_probabilities
from goldset.store import read_json

# Question a: span s0 is a judge positive (yes). Of its ten rejections s1..s10 five were drawn (s1..s5): s1 yes, s2
# cannot be told, the others no. Question b: its only candidate s0 is a positive that people refused.
REJECTED = [f"d#{i}" for i in range(1, 11)]


def _item(question: str, span: str, reason: str, size: int) -> dict[str, Any]:
    return {"item_id": f"{question}{span}", "question_id": question, "span_id": span, "campaign": "rebuild", "wave": 1,
            "reason": reason, "stratum": reason, "stratum_size": size, "u": 0.5, "order": 0}


def _decision(question: str, span: str, relevant: bool | None, status: str = "decided") -> dict[str, Any]:
    start = 10 * int(span.removeprefix("d#"))
    return {"question_id": question, "span_id": span, "relevant": relevant, "status": status, "basis": "human",
            "evidence": [{"start": start, "end": start + 4}] if relevant else [],
            "evidence_source": "selected" if relevant else None, "label_ids": [f"l{question}{span}"]}


def _spans() -> pa.Table:
    return from_rows("spans", [
        {"span_id": f"d#{i}", "doc_id": "d", "start": 10 * i, "end": 10 * i + 9, "text": f"text {i}", "heading": None,
         "doc_sha256": None, "text_hash": str(i), "twin_group": f"d#{i}", "words": 2, "offsets": "verified"}
        for i in range(11)])


def _candidates() -> pa.Table:
    pairs = [("a", f"d#{i}") for i in range(11)] + [("b", "d#0")]
    return from_rows("candidates", [{"question_id": q, "span_id": s, "best_ranks": [], "systems": [], "families": []}
                                    for q, s in pairs])


def _tables(last: str = "decided") -> GoldTables:
    queue = from_rows("queue", [
        _item("a", "d#0", "positive", 2), _item("b", "d#0", "positive", 2),
        *(_item("a", span, "rejection", 10) for span in REJECTED[:5])])
    decisions = from_rows("decisions", [
        _decision("a", "d#0", True), _decision("b", "d#0", False), _decision("a", "d#1", True),
        _decision("a", "d#2", None, "cant_tell"), _decision("a", "d#3", False), _decision("a", "d#4", False),
        _decision("a", "d#5", False if last == "decided" else None, last)])
    return build_gold(decisions=decisions, probabilities=inclusion_probabilities(queue, decisions), queue=queue,
                      spans=_spans(), candidates=_candidates())


def test_weights_are_the_inverse_of_what_was_read() -> None:
    made = _tables()
    # 5 of 10 rejections were read: each stands for two.
    assert {(row["question_id"], row["span_id"]): row["weight"] for row in made.gold.to_pylist()} == {
        ("a", "d#0"): 1.0, ("a", "d#1"): 2.0}
    chances = {row["span_id"]: row["inclusion_prob"] for row in made.judgments.to_pylist() if row["question_id"] == "a"}
    assert chances == {"d#0": 1.0, "d#1": 0.5, "d#2": 0.5, "d#3": 0.5, "d#4": 0.5, "d#5": 0.5}


def test_the_manifest_knows_what_was_sampled_and_what_was_read_in_full() -> None:
    made = _tables()
    assert made.sampling == {"rejections": 10, "sampled": 5, "found": 1, "strata": [
        {"stratum": "rejection", "size": 10, "read": 5, "found": 1}]}
    assert made.read_in_full == ["b"]


def test_a_pair_from_below_that_is_served_since_is_gold_of_the_pool() -> None:
    below, served = _item("a", "d#1", "deep", 4), _item("a", "d#1", "hole", 1)
    rows = [{**below, "stratum": "deep_positive"},
            {**served, "item_id": "later", "wave": 2, "stratum": "hole production"}]
    decisions = from_rows("decisions", [_decision("a", "d#1", True)])
    for kept, stratum, weight in ((rows[:1], "deep_positive", 8.0), (rows, "hole production", 1.0)):
        queue = from_rows("queue", kept)
        made = build_gold(decisions=decisions, queue=queue, spans=_spans(), candidates=_candidates(),
                          probabilities=inclusion_probabilities(queue, decisions, entered={"a": 0.5}))
        # Read: one of four in its stratum, of a window of which half was drawn.
        assert made.judgments.column("stratum").to_pylist() == [stratum]
        assert made.gold.column("weight").to_pylist() == [weight]


def _golds(*rows: tuple[str, str, list[tuple[int, int]]], weights: dict[str, float] | None = None,
           doc: str = "d") -> GoldTables:
    decisions = from_rows("decisions", [
        {**_decision(question, span, True), "evidence": [{"start": start, "end": end} for start, end in evidence],
         "evidence_source": "selected" if evidence else None} for question, span, evidence in rows])
    chances = from_pairs({(question, span): 1 / (weights or {}).get(span, 1.0) for question, span, _ in rows})
    spans = _spans().to_pylist()
    table = from_rows("spans", [{**row, "doc_id": doc if row["span_id"] == "d#1" else "d"} for row in spans])
    return build_gold(decisions=decisions, probabilities=chances, queue=empty("queue"), spans=table,
                      candidates=_candidates())


def from_pairs(chances: dict[tuple[str, str], float]) -> pa.Table:
    return pa.Table.from_pylist([{"question_id": q, "span_id": s, "inclusion_prob": chance}
                                 for (q, s), chance in chances.items()])


def _evidence(made: GoldTables) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(row["span_id"], [(part["start"], part["end"]) for part in row["evidence"]])
            for row in made.gold.to_pylist()]


def test_two_golds_whose_evidence_overlaps_by_half_are_one() -> None:
    # [0,8) and [4,14) share 4 of the shorter's 8: one, with the evidence of both; [5,14) shares 3: two.
    made = _golds(("a", "d#0", [(0, 8)]), ("a", "d#1", [(4, 14)]))
    assert (_evidence(made), made.merged, len(made.judgments)) == ([("d#0", [(0, 14)])], 1, 2)
    made = _golds(("a", "d#0", [(0, 8)]), ("a", "d#1", [(5, 14)]))
    assert (_evidence(made), made.merged) == ([("d#0", [(0, 8)]), ("d#1", [(5, 14)])], 0)


def test_sentences_that_only_touch_stay_sentences() -> None:
    # [0,5) [5,9) against [5,9): 4 of 4 shared. The ranges stay two, each must be delivered.
    assert _evidence(_golds(("a", "d#0", [(0, 5), (5, 9)]), ("a", "d#1", [(5, 9)]))) == [("d#0", [(0, 5), (5, 9)])]


def test_merged_gold_stands_under_the_surer_pair() -> None:
    made = _golds(("a", "d#0", [(0, 8)]), ("a", "d#1", [(0, 8)]), weights={"d#0": 2.0})
    assert [(row["span_id"], row["weight"]) for row in made.gold.to_pylist()] == [("d#1", 1.0)]


def test_a_chain_is_one_gold_in_any_order() -> None:
    # [0,10) and [10,20) share nothing; [4,16) shares 6 of 10 with each.
    places = {"d#0": (0, 10), "d#1": (10, 20), "d#2": (4, 16)}
    for order in (["d#0", "d#1", "d#2"], ["d#2", "d#0", "d#1"]):
        named = dict(zip(["d#0", "d#1", "d#2"], order, strict=True))
        made = _golds(*(("a", span, [places[named[span]]]) for span in named))
        assert (_evidence(made), made.merged) == ([("d#0", [(0, 20)])], 2)


def test_other_questions_documents_and_missing_evidence_are_not_merged() -> None:
    assert len(_golds(("a", "d#0", [(0, 8)]), ("b", "d#1", [(0, 8)])).gold) == 2
    assert len(_golds(("a", "d#0", [(0, 8)]), ("a", "d#1", [(0, 8)]), doc="e").gold) == 2
    assert len(_golds(("a", "d#0", []), ("a", "d#1", [])).gold) == 2
    assert len(_golds(("a", "d#0", []), ("a", "d#1", [(0, 8)])).gold) == 2


def test_negatives_and_the_untold_stay_and_conflicts_do_not() -> None:
    rows = {row["span_id"]: row["relevant"] for row in _tables().judgments.to_pylist() if row["question_id"] == "a"}
    assert rows["d#2"] is None
    assert rows["d#3"] is False
    for state in ("conflict", "open"):
        assert "d#5" not in {row["span_id"] for row in _tables(state).judgments.to_pylist()}


def _version() -> dict[str, pa.Table]:
    made = _tables()
    return {"questions": empty("questions"), "spans": _spans(), "judgments": made.judgments, "gold": made.gold}


def test_the_same_content_is_the_same_version(tmp_path: Path) -> None:
    manifest = {"partial": False, "made": datetime(2026, 1, 1, tzinfo=UTC).isoformat()}
    first, new = write_version(tmp_path, _version(), manifest, lambda folder: None)
    again, repeated = write_version(tmp_path, _version(), {"partial": False, "made": "later"}, lambda folder: None)
    assert (first, new, again, repeated) == (tmp_path / "v1", True, tmp_path / "v1", False)
    changed = {**_version(), "gold": _version()["gold"].slice(0, 1)}
    other, new = write_version(tmp_path, changed, manifest, lambda folder: None)
    assert (other.name, new) == ("v2", True)
    assert [path.name for path in version_paths(tmp_path)] == ["v1", "v2"]
    assert read_json(other / "manifest.json")["content_hash"] == content_hash_of(changed)


def test_label_ids_do_not_change_the_hash_and_labels_do() -> None:
    tables = _version()
    renamed = tables["judgments"].set_column(
        tables["judgments"].schema.get_field_index("label_ids"), tables["judgments"].schema.field("label_ids"),
        pa.array([["other"]] * len(tables["judgments"])))
    assert content_hash_of({**tables, "judgments": renamed}) == content_hash_of(tables)
    assert content_hash_of({**tables, "judgments": tables["judgments"].slice(1)}) != content_hash_of(tables)


def test_a_version_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_version(tmp_path, _version(), {"partial": False}, fail)
    assert list(tmp_path.iterdir()) == []
