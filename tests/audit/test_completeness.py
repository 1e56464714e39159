"""Completeness: the one-gold screen, missed gold, and why a set built here never passes by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import audit_set
from goldset.audit.completeness import Completeness
from goldset.formats.sets import LabelledSet

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


Rows = dict[tuple[str, str], dict[str, Any]]


def findings(labelled: LabelledSet, runs: dict[str, pa.Table] | None = None, **facts: Any) -> Rows:
    table = audit_set(labelled, runs or {}, checks=[Completeness()], **facts)
    return {(row["subject"], row["reason"]): row for row in table.to_pylist()}


def gold(single: int, double: int) -> dict[str, list[str]]:
    return {f"q{i:03}": [f"d{i}", f"e{i}"][: 1 if i < single else 2] for i in range(single + double)}


def sampled(size: int, read: int, found: int) -> dict[str, Any]:
    return {"sampling": {"strata": [{"stratum": "rejection", "size": size, "read": read, "found": found}]}}


def test_one_gold_a_question_warns(make_set: MakeSet) -> None:
    # Wilson lower bound of 60/60 is 1/(1 + 1.96^2/60) = .940; of 40/40 it is .912; of 30/30 it is .886.
    row = findings(make_set(gold(60, 0)))["all", "one_gold"]
    assert (row["verdict"], row["measured"], row["n"]) == ("warn", 1.0, 60)
    assert row["low"] == pytest.approx(0.9398, abs=1e-4)
    assert ("all", "one_gold") in findings(make_set(gold(40, 0)))
    assert ("all", "unprobed") in findings(make_set(gold(30, 0)))


def test_several_gold_a_question_are_no_proof(make_set: MakeSet) -> None:
    row = findings(make_set(gold(10, 50)))["all", "unprobed"]
    assert row["verdict"] == "insufficient"
    assert "unlabelled" in row["remedy"]


def test_few_questions(make_set: MakeSet) -> None:
    assert findings(make_set(gold(19, 0)))["all", "too_few"]["n"] == 19


def test_missed_gold_has_the_exact_interval(make_set: MakeSet) -> None:
    # METHODS 2.1: 2 of 667 among 6670 rejections -> 20 missed, 3 to 69. 180 gold, 2 of them found in the sample:
    # the set holds 180 / (178 + 20) = .909 of its pool's gold, from 180 / 247 = .729 to 180 / 181 = .994.
    labelled = make_set(gold(20, 80), manifest=sampled(6670, 667, 2), kind="published")
    row = findings(labelled)["pool", "inconclusive"]
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((180 / 198, 180 / 247, 180 / 181))
    assert "about 20 (95 % 3 to 69) of 6670 do" in row["message"]
    assert row["verdict"] == "insufficient"


def test_much_missed_gold_is_incomplete(make_set: MakeSet) -> None:
    labelled = make_set(gold(20, 80), manifest=sampled(2000, 400, 30), kind="published")
    row = findings(labelled)["pool", "incomplete"]
    assert row["verdict"] == "fail"
    assert row["high"] < 0.9


def test_too_small_a_sample_estimates_nothing(make_set: MakeSet) -> None:
    labelled = make_set(gold(20, 80), manifest=sampled(2000, 100, 0), kind="published")
    assert findings(labelled)["pool", "too_few"]["threshold"] == 300
    # Where there are fewer rejections than that, all of them are enough.
    assert ("pool", "pool_only") in findings(make_set(gold(20, 80), manifest=sampled(100, 100, 0), kind="published"))


def test_a_set_built_here_passes_only_with_an_independent_system(make_set: MakeSet, make_run: MakeRun) -> None:
    manifest = {**sampled(100, 100, 0), "systems": {"bm25": {"family": "lexical", "audit_only": False},
                                                    "judge_free": {"family": "x", "audit_only": True}}}
    pairs = gold(20, 80)
    whole = {question: [*spans, *(f"n{question}{i}" for i in range(10 - len(spans)))]
             for question, spans in pairs.items()}
    read = [(question, span) for question, spans in whole.items() for span in spans if span not in pairs[question]]
    labelled = make_set(pairs, manifest=manifest, kind="published", not_relevant=read)
    alone = findings(labelled, {"bm25": make_run("bm25", whole)})
    assert {row["verdict"] for row in alone.values()} == {"insufficient"}
    assert "audit_only = true" in alone["all", "unprobed"]["remedy"]
    graded = findings(labelled, {"judge_free": make_run("judge_free", whole)})
    assert graded["all", "complete"]["verdict"] == "pass"
    assert graded["judge_free", "holes"]["measured"] == 0
    # One unjudged result in each top 10: the pool has holes that nobody has read.
    holed = {question: [f"hole{question}", *ids[:9]] for question, ids in whole.items()}
    rows = findings(labelled, {"judge_free": make_run("judge_free", holed)})
    assert rows["judge_free", "holes"]["measured"] == pytest.approx(0.1)
    assert ("all", "unprobed") in rows
