"""k mismatch: the quoted k against the served one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import Context, audit_context, audit_set
from goldset.audit.k_mismatch import KMismatch, k_word
from goldset.errors import UsageError
from goldset.formats.sets import LabelledSet

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


@pytest.mark.parametrize(("eval_k", "serving_k", "word"), [
    (10, 3, "mismatch"), (3, 10, "mismatch_below"), (5, 5, "equal"), (None, 5, "not_measured"),
    (5, None, "not_measured")])
def test_word(eval_k: int | None, serving_k: int | None, word: str) -> None:
    assert k_word(eval_k, serving_k) == word


@pytest.fixture
def measured(make_set: MakeSet, make_run: MakeRun) -> Callable[..., dict[tuple[str, str], dict[str, Any]]]:
    """20 questions with one gold: at rank 1 in eight, rank 5 in eight, rank 15 in four; lists of 20."""
    names = [f"q{i:02}" for i in range(20)]
    places = [1] * 8 + [5] * 8 + [15] * 4
    gold = {name: [f"{name}-{place}"] for name, place in zip(names, places, strict=True)}
    lists = {name: [f"{name}-{rank}" for rank in range(1, 21)] for name in names}

    def run(systems: tuple[str, ...] = ("production",), manifest: dict[str, Any] | None = None,
            **facts: Any) -> dict[tuple[str, str], dict[str, Any]]:
        labelled = make_set(gold, manifest=manifest or {})
        table = audit_context(Context(labelled, {name: make_run(name, lists) for name in systems}, **facts),
                              [KMismatch()])
        return {(row["subject"], row["reason"]): row for row in table.to_pylist()}

    return run


Measured = Callable[..., dict[tuple[str, str], dict[str, Any]]]


def test_flattering_mismatch_fails_with_gap_and_recall_at_each(measured: Measured) -> None:
    # recall@3 = 8/20, recall@10 = 16/20, so the gap is .4 and .8 is true from k = 5 on.
    rows = measured(eval_k=10, serving_k=3)
    row = rows["production", "mismatch"]
    assert (row["verdict"], row["measured"], row["n"]) == ("fail", pytest.approx(0.4), 20)
    assert 0.2 < row["low"] < 0.4 < row["high"] < 0.65
    assert "recall@10 is 0.800, recall@3 is 0.400, 40.0 points less" in row["message"]
    assert "0.800 is true at k = 5 (95 % " in row["message"]
    assert row["remedy"] == "quote recall@3 (0.400)"
    assert rows["production", "recall@3"]["measured"] == pytest.approx(0.4)
    assert rows["production", "recall@10"]["measured"] == pytest.approx(0.8)


def test_the_k_of_the_headline_counts_questions_as_often_as_they_were_drawn(make_set: MakeSet,
                                                                            make_run: MakeRun) -> None:
    # Ten questions drawn nine times with gold at rank 1, ten drawn once with gold at rank 10: recall is 90/100 from
    # k = 1 on, and 1 from k = 10 on. Unweighted it would be 1/2 until k = 9.
    names = [f"q{i:02}" for i in range(20)]
    labelled = make_set({name: [f"{name}-{1 if i < 10 else 10}"] for i, name in enumerate(names)},
                        questions={name: f"question {name}" for name in names})
    assert labelled.questions is not None
    place = labelled.questions.schema.get_field_index("draws")
    drawn = labelled.questions.set_column(place, labelled.questions.schema.field(place), [[9] * 10 + [1] * 10])
    run = make_run("production", {name: [f"{name}-{rank}" for rank in range(1, 21)] for name in names})
    table = audit_set(replace(labelled, questions=drawn), {"production": run}, checks=[KMismatch()], eval_k=5,
                      serving_k=3)
    (row,) = [row for row in table.to_pylist() if row["reason"] == "mismatch"]
    assert "recall@5 is 0.900, recall@3 is 0.900" in row["message"]
    assert "0.900 is true at k = 1 (95 % " in row["message"]


def test_the_other_direction_warns(measured: Measured) -> None:
    row = measured(eval_k=3, serving_k=10)["production", "mismatch_below"]
    assert (row["verdict"], row["measured"]) == ("warn", pytest.approx(-0.4))
    assert row["low"] < -0.4 < row["high"] < 0


def test_equal_ks_pass_with_the_recall(measured: Measured) -> None:
    rows = measured(eval_k=5, serving_k=5)
    assert rows["production", "equal"]["verdict"] == "pass"
    assert rows["production", "recall@5"]["measured"] == pytest.approx(0.8)


def test_unknown_ks_are_not_measured_and_name_the_flag(measured: Measured) -> None:
    row = measured(eval_k=10)["all", "not_measured"]
    assert row["verdict"] == "insufficient"
    assert "--serving-k" in row["remedy"]
    assert "--eval-k" not in row["remedy"]


def test_the_manifest_knows_the_ks_and_the_system(measured: Measured) -> None:
    scoring = {"system": "production", "served_k": 3, "retrieved_k": 20, "evaluated_k": 10}
    rows = measured(("other", "production"), {"scoring": scoring})
    assert ("production", "mismatch") in rows
    assert ("production", "recall@20") in rows
    assert not any(subject == "other" for subject, _ in rows)


def test_an_unreranked_list_is_never_passed_off_as_the_served_one(measured: Measured) -> None:
    # 20 are retrieved, 3 reach the reader, and nothing says that this run is the reranked list.
    rows = measured(eval_k=20, retrieve_k=5, serving_k=3)
    row = rows["all", "mismatch"]
    assert "was not measured" in row["message"]
    # recall@20 - recall@5 = 1 - .8: the gap is at least that.
    assert "at least recall@20 - recall@5 = 20.0 points" in row["message"]
    assert rows["all", "recall_not_measured@3"]["verdict"] == "insufficient"
    assert not any(reason.startswith("recall@") for _, reason in rows)
    assert ("production", "recall@3") in measured(eval_k=20, retrieve_k=5, serving_k=3, served_system="production")


def test_a_list_shorter_than_k_does_not_measure_it(measured: Measured) -> None:
    rows = measured(eval_k=50, serving_k=5)
    assert rows["production", "mismatch"]["measured"] is None
    assert ("production", "recall@50") not in rows
    assert ("production", "recall@5") in rows


def test_a_served_system_without_a_run_is_refused(measured: Measured) -> None:
    with pytest.raises(UsageError, match="served system 'prodction' has no run; did you mean 'production'"):
        measured(eval_k=5, serving_k=5, served_system="prodction")


def test_the_gap_is_split_into_retrieval_and_rerank_loss(make_set: MakeSet, make_run: MakeRun) -> None:
    # Gold at retrieved rank 1 (8 questions), 5 (8), 15 (4). k_e 20, k_r 10, k_f 3. The reranker brings rank 5 to rank 2
    # in four questions and drops it in the other four. R_ret(20) = 1, R_ret(10) = .8, R_served(3) = 12/20 = .6.
    names = [f"q{i:02}" for i in range(20)]
    places = [1] * 8 + [5] * 8 + [15] * 4
    gold = {name: [f"{name}-{place}"] for name, place in zip(names, places, strict=True)}
    retrieved = {name: [f"{name}-{rank}" for rank in range(1, 21)] for name in names}
    served = {name: [f"{name}-{rank}" for rank in ((1, 5, 2) if i < 12 else (1, 2, 3))] for i, name in enumerate(names)}
    runs = {"raw": make_run("raw", retrieved), "production": make_run("production", served)}
    facts: dict[str, Any] = {"eval_k": 20, "retrieve_k": 10, "serving_k": 3, "served_system": "production"}
    table = audit_set(make_set(gold), runs, checks=[KMismatch()], retrieved_system="raw", **facts)
    rows = {(row["subject"], row["reason"]): row for row in table.to_pylist()}
    assert rows["production", "mismatch"]["measured"] == pytest.approx(0.4)
    assert rows["production", "retrieval_loss"]["measured"] == pytest.approx(0.2)
    assert rows["production", "rerank_loss"]["measured"] == pytest.approx(0.2)
    assert "recall@10 of raw against recall@3 of production" in rows["production", "rerank_loss"]["message"]
    # Without the list before reranking the served one is too short for the quoted k: no gap, and no split is claimed.
    alone = audit_set(make_set(gold), runs, checks=[KMismatch()], **facts).to_pylist()
    assert not any(row["reason"].endswith("_loss") for row in alone)
    assert [row["measured"] for row in alone if row["reason"] == "mismatch"] == [None]
    with pytest.raises(UsageError, match="retrieved system 'rwa' has no run"):
        audit_set(make_set(gold), runs, retrieved_system="rwa")


def test_c19_fewer_passages_in_the_log_than_said_fail_and_recall_is_taken_there(measured: Measured) -> None:
    # 10 are quoted, 5 said to be served, 3 reach most readers, 1 in two answers: recall@3 = recall@1 = 8 / 20.
    rows = measured(eval_k=10, serving_k=5, observed={0: 1, 1: 2, 3: 7})
    row = rows["log", "served_less"]
    assert (row["verdict"], row["n"], row["measured"], row["threshold"]) == ("fail", 10, 3, 5)
    assert ("5 are said to be served; 3 passages reached the reader in 7 of 10 logged answers, as few as 1 in 2, none "
            "in 1.") in row["message"]
    assert rows["production", "recall@3"]["measured"] == pytest.approx(0.4)
    assert rows["production", "recall@1"]["measured"] == pytest.approx(0.4)
    assert "Recall is quoted at k = 10, production serves 3" in rows["production", "mismatch"]["message"]


def test_the_log_alone_says_which_k_is_served(measured: Measured) -> None:
    rows = measured(eval_k=5, observed={5: 3})
    assert rows["log", "observed"]["measured"] == 5
    assert rows["production", "equal"]["verdict"] == "pass"
    assert ("log", "served_as_said") in measured(eval_k=5, serving_k=5, observed={5: 3})
    # More than said: recall is taken at what is said, which flatters less, and the difference is told.
    rows = measured(eval_k=5, serving_k=4, observed={5: 3})
    assert rows["log", "served_more"]["verdict"] == "warn"
    assert ("production", "recall@4") in rows
