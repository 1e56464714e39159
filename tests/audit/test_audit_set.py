"""The whole audit, and a further check as one class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from goldset.audit import CHECKS, Context, audit_context, audit_set, finding, overall
from goldset.formats.sets import LabelledSet
from goldset.schemas import conform

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


def test_every_check_speaks_even_when_nothing_is_known(make_set: MakeSet) -> None:
    table = audit_set(make_set({"q1": ["d1"]}), {})
    conform(table, "findings")
    reasons = {(row["check"], row["reason"], row["verdict"]) for row in table.to_pylist()}
    assert reasons == {
        ("integrity", "clean", "pass"), ("circularity", "no_run", "insufficient"),
        ("leakage", "no_text", "insufficient"), ("k_mismatch", "not_measured", "insufficient"),
        ("completeness", "too_few", "insufficient")}
    assert overall(table) == "insufficient"


def test_bm25_over_the_corpus_is_the_second_system(make_set: MakeSet, make_run: MakeRun) -> None:
    passages = {f"d{i:02}": f"alpha{i} beta{i} common words here" for i in range(30)}
    labelled = make_set({f"q{i}": [f"d{i:02}"] for i in range(20)}, passages=passages,
                        questions={f"q{i}": f"alpha{i} common" for i in range(20)})
    table = audit_set(labelled, {}).to_pylist()
    assert {row["subject"] for row in table if row["check"] == "circularity"} == {"bm25"}
    (first,) = [row for row in table if row["reason"] == "rank"]
    assert first["measured"] == 1.0
    # A further system of ours stands beside it.
    vectors = {f"q{i}": [f"d{i:02}"] for i in range(20)}
    both = audit_context(Context(labelled, own={"dense": make_run("dense", vectors)})).to_pylist()
    assert {row["subject"] for row in both if row["check"] == "circularity"} >= {"bm25", "dense"}
    # Our own search is nobody's served list.
    reasons = audit_set(labelled, {}, eval_k=5, serving_k=5).column("reason").to_pylist()
    assert not any(reason.startswith("recall@") for reason in reasons)


def test_a_further_check_is_one_class(make_set: MakeSet) -> None:
    class LongQuestions:
        name = "integrity"

        def run(self, context: Context) -> list[dict[str, Any]]:
            many = sum(len(text.split()) > 5 for text in context.queries.values())
            return [finding("integrity", "questions", "note:long", n=len(context.queries), measured=many,
                            message=f"{many} questions have more than five words.")]

    labelled = make_set({"q1": ["d1"]}, questions={"q1": "one two three four five six"}, passages={"d1": "one"})
    rows = audit_set(labelled, {}, checks=[*CHECKS, LongQuestions()]).to_pylist()
    assert rows[-1]["message"] == "1 questions have more than five words."


def test_a_system_without_any_result_is_not_acquitted(make_set: MakeSet, make_run: MakeRun) -> None:
    gold = {f"q{i}": [f"d{i}"] for i in range(20)}
    table = audit_set(make_set(gold), {"dead": make_run("dead", {})}, eval_k=5, serving_k=5).to_pylist()
    reasons = {row["check"]: row["reason"] for row in reversed(table) if row["subject"] == "dead"}
    assert reasons == {"integrity": "missing_questions", "circularity": "too_few", "k_mismatch": "equal"}
    assert "recall_not_measured@5" in {row["reason"] for row in table}
    assert "recall@5" not in {row["reason"] for row in table}
