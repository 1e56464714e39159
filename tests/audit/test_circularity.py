"""Circularity: oracle values, the words, planted defects and clean sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from goldset.audit import audit_set, decides
from goldset.audit.circularity import (
    Circularity,
    Cliff,
    Evidence,
    Probed,
    asymmetry_p,
    circularity_word,
    steepest_cliff,
)
from goldset.formats.sets import LabelledSet
from goldset.stats.pooling import CLIFF_RANKS

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


def words(labelled: LabelledSet, runs: Mapping[str, pa.Table], **facts: Any) -> dict[str, dict[str, Any]]:
    """System -> its decisive circularity finding."""
    table = audit_set(labelled, dict(runs), checks=[Circularity()], **facts)
    return {row["subject"]: row for row in table.to_pylist() if decides(row["check"], row["reason"])}


def ranked(gold_ranks: Mapping[str, Sequence[int]], depth: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """question -> ranks of its gold -> (gold ids, lists of ``depth`` ids); ranks beyond the list stay outside it."""
    gold = {question: [f"{question}-{rank}" for rank in ranks] for question, ranks in gold_ranks.items()}
    return gold, {question: [f"{question}-{rank}" for rank in range(1, depth + 1)] for question in gold_ranks}


def lognormal(seed: int, questions: int = 180) -> dict[str, list[int]]:
    """Complete labels: one to three gold a question, log ranks normal (mean 2.3, SD 1.8: 19 % beyond rank 50)."""
    generator = np.random.default_rng(seed)
    drawn = [np.ceil(np.exp(generator.normal(2.3, 1.8, generator.integers(1, 4)))) for _ in range(questions)]
    return {f"q{i}": sorted({int(rank) for rank in ranks}) for i, ranks in enumerate(drawn)}


# METHODS 13, 23.
@pytest.mark.parametrize(("before", "after", "ratio", "p"), [
    (20, 0, 0.25, 0.011529), (20, 5, 0.25, 0.616689), (12, 0, 0.5, 0.007707)])
def test_cliff_p_value(before: int, after: int, ratio: float, p: float) -> None:
    assert Cliff(10, before, after).p(ratio) == pytest.approx(p, abs=1e-6)


def test_cliff_needs_23_or_13_questions_when_nothing_follows() -> None:
    # 8 x .8^23 = .047, 8 x .8^22 = .059; 8 x (2/3)^13 = .041, 8 x (2/3)^12 = .062 (METHODS 5: 8p < .05).
    assert [Cliff(10, b, 0).convicts(0.25) for b in (22, 23)] == [False, True]
    assert [Cliff(10, b, 0).convicts(0.5) for b in (12, 13)] == [False, True]


# METHODS 13, 22; c = 0 with b = 6: 2 x .5^6 = .031.
@pytest.mark.parametrize(("b", "c", "p"), [(12, 4, 0.076813), (0, 6, 0.031250), (0, 0, 1.0), (3, 3, 1.0)])
def test_asymmetry_p(b: int, c: int, p: float) -> None:
    assert asymmetry_p(b, c) == pytest.approx(p, abs=1e-6)


def test_a_list_that_ends_cannot_show_a_cliff() -> None:
    # All 30 gold stand at rank 8 of lists of 15: ranks 11-20 are not there to be looked at, so cut 10 is not tested.
    ranks = pd.DataFrame({"question_id": [f"q{i}" for i in range(30)], "lenient": [8.0] * 30})
    cliff = steepest_cliff(ranks, dict.fromkeys(ranks["question_id"], 15))
    assert cliff is None or cliff.cut == 5
    cliff = steepest_cliff(ranks, dict.fromkeys(ranks["question_id"], 20))
    assert cliff == Cliff(10, 30, 0)


def test_the_cliff_is_at_the_rank_where_the_gold_ends_and_pays_for_looking() -> None:
    # Gold at ranks 3 and 7 of 30 questions, at 9 of ten more: ranks 6-10 hold some of all 40, ranks 11-20 none; .8^40.
    ranks = pd.DataFrame([(f"q{i}", float(rank)) for i in range(40) for rank in ((3, 7) if i < 30 else (9,))],
                         columns=["question_id", "lenient"])
    cliff = steepest_cliff(ranks, dict.fromkeys(ranks["question_id"], 200))
    assert cliff == Cliff(10, 40, 0)
    assert cliff.p(0.25) == pytest.approx(0.8**40)
    assert [Cliff(10, b, 0).convicts(0.25) for b in (40, 22)] == [True, False]
    assert steepest_cliff(ranks[:0], {}) is None


@pytest.mark.parametrize(("evidence", "word"), [
    (Evidence(9, 0, 0.28, None, None), "too_few"),
    (Evidence(60, 0.10, 0.30, Cliff(10, 5, 5), None), "healthy"),
    (Evidence(60, 0.0, 0.049, None, None), "low"),
    (Evidence(20, 0.0, 0.139, None, None), "inconclusive"),
    (Evidence(43, 0.0, 0.067, Cliff(10, 34, 0), None), "truncated"),
    (Evidence(60, 0.10, 0.30, Cliff(10, 34, 0), None), "truncated"),  # the cliff convicts by itself
    (Evidence(60, 0.0, 0.049, Cliff(10, 15, 0), None), "suspected"),  # rho .5 only
    (Evidence(60, 0.0, 0.049, None, (9, 0)), "suspected"),  # a much better system shows the same
    (Evidence(60, 0.0, 0.049, Cliff(10, 15, 0), (9, 0)), "suspected"),  # a strong system and a weak control show both
    # K named in advance: 14 before and none after have p = .8^14 = .044, 13 have .055 (METHODS 5, circular).
    (Evidence(60, 0.0, 0.049, None, (9, 0), known=Cliff(10, 14, 0)), "circular"),
    (Evidence(60, 0.0, 0.049, None, (9, 0), known=Cliff(10, 13, 0)), "suspected"),
    (Evidence(60, 0.0, 0.049, None, (0, 9), known=Cliff(10, 14, 0)), "low"),
    (Evidence(60, 0.0, 0.049, Cliff(10, 15, 0), (0, 9)), "suspected"),  # asymmetry the other way is no evidence
    # A probe: 5 of 360 have a one-sided lower bound of .55 %, 4 of .38 % (Clopper and Pearson): the bar is .5 %.
    (Evidence(60, 0.0, 0.049, None, None, probed=Probed(360, 5, 300, 0)), "circular"),
    (Evidence(60, 0.0, 0.049, None, None, probed=Probed(360, 4, 300, 0)), "low"),
    (Evidence(60, 0.0, 0.049, None, None, probed=Probed(360, 5, 0, 0)), "circular"),
    # As many inside the cut as outside: incomplete everywhere, not taken from this system.
    (Evidence(60, 0.0, 0.049, None, None, probed=Probed(360, 10, 300, 9)), "suspected"),
    (Evidence(60, 0.10, 0.30, None, None, probed=Probed(360, 50, 300, 0)), "healthy"),  # gold outside: not its choice
    (Evidence(60, 0.0, 0.049, None, None, shallow=True), "too_shallow"),
    (Evidence(60, 0.4, 0.6, Cliff(5, 30, 0), None, shallow=True), "truncated"),
])
def test_words(evidence: Evidence, word: str) -> None:
    assert circularity_word(evidence) == word


def test_c14_zero_outside_is_said_and_does_not_convict(make_set: MakeSet, make_run: MakeRun) -> None:
    # 20 questions, 40 gold spans, all inside bm25's top 50; upper bound 1 - .05^(1/20) = 13.9 %.
    gold, lists = ranked({f"q{i}": [1 + i % 7, 12 + 2 * i % 33] for i in range(20)}, 100)
    row = words(make_set(gold), {"bm25": make_run("bm25", lists)})["bm25"]
    assert row["message"].startswith("0 of 40 gold spans outside bm25 top 50 "
                                     "(20 questions: one-sided 95 % upper bound 13.9 %)")
    assert (row["verdict"], row["reason"], row["n"], row["measured"]) == ("insufficient", "inconclusive", 20, 0.0)
    assert row["high"] == pytest.approx(1 - 0.05 ** (1 / 20))


def test_share_outside_counts_spans_and_rests_on_questions(make_set: MakeSet, make_run: MakeRun) -> None:
    # 60 questions, two gold each, one of them at rank 60 in half of the questions: 30 of 120 outside = 25 %.
    gold, lists = ranked({f"q{i:02}": [1 + i * 7 % 40, 60 if i % 2 else 45] for i in range(60)}, 100)
    row = words(make_set(gold), {"bm25": make_run("bm25", lists)})["bm25"]
    assert (row["measured"], row["n"], row["reason"]) == (0.25, 60, "healthy")
    assert row["low"] < 0.25 < row["high"]
    assert "30 of 120 gold spans outside bm25 top 50 (60 questions: 95 % interval" in row["message"]


def test_questions_the_run_does_not_answer_are_neither_inside_nor_outside(make_set: MakeSet, make_run: MakeRun) -> None:
    gold, lists = ranked({f"q{i:02}": [3] for i in range(80)}, 100)
    answered = {question: ids for question, ids in lists.items() if question < "q70"}
    row = words(make_set(gold), {"bm25": make_run("bm25", answered)})["bm25"]
    assert (row["n"], row["measured"]) == (70, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_planted_truncation_convicts_and_complete_acquits(seed: int, make_set: MakeSet, make_run: MakeRun) -> None:
    complete = lognormal(seed)
    gold, lists = ranked(complete, 200)
    run = {"bm25": make_run("bm25", lists)}
    assert words(make_set(gold), run)["bm25"]["reason"] == "healthy"
    cut = {question: kept for question, ranks in complete.items() if (kept := [rank for rank in ranks if rank <= 10])}
    row = words(make_set(ranked(cut, 200)[0]), run)["bm25"]
    assert (row["verdict"], row["reason"]) == ("fail", "truncated")
    assert "the gold stops at rank 10 of bm25" in row["message"]


def test_control_and_families(make_set: MakeSet, make_run: MakeRun) -> None:
    # Gold is dense's first result; bm25 has it at rank 60: the control disagrees in all 60 questions.
    names = [f"q{i:02}" for i in range(60)]
    gold = {name: [f"{name}-gold"] for name in names}
    filler = {name: [f"{name}-{i}" for i in range(99)] for name in names}
    dense = make_run("dense", {name: [*gold[name], *filler[name]] for name in names}, family="minilm")
    bm25 = make_run("bm25", {name: [*filler[name][:59], *gold[name], *filler[name][59:]] for name in names},
                    family="lexical")
    hybrid = make_run("hybrid", {name: [*gold[name], *filler[name]] for name in names}, family="lexical+minilm")
    table = audit_set(make_set(gold), {"dense": dense, "bm25": bm25, "hybrid": hybrid}, checks=[Circularity()])
    rows = {(row["subject"], row["reason"]): row for row in table.to_pylist()}
    assert rows["dense", "asymmetry"]["measured"] == 60
    assert "of bm25 in 60 questions" in rows["dense", "asymmetry"]["message"]
    assert ("hybrid", "asymmetry") not in rows  # both others share a family with it
    assert rows["bm25", "healthy"]["measured"] == 1.0
    # Only minilm's systems have the gold in their top 50: without it nothing is left.
    assert rows["family minilm", "family_out"]["n"] == 60
    assert rows["family lexical", "family_out"]["n"] == 0
    assert "goes from 1.000 to nothing" in rows["family minilm", "family_out"]["message"]


def test_unjudged_share_of_the_results(make_set: MakeSet, make_run: MakeRun) -> None:
    # Top 10 of each question: one gold, one judged not relevant, one pooled but unjudged, seven never seen: 8 of 10.
    gold, lists = ranked({f"q{i}": [1] for i in range(12)}, 100)
    labelled = make_set(gold, not_relevant=[(f"q{i}", f"q{i}-2") for i in range(12)],
                        unjudged=[(f"q{i}", f"q{i}-3") for i in range(12)])
    table = audit_set(labelled, {"bm25": make_run("bm25", lists)}, checks=[Circularity()])
    (row,) = [row for row in table.to_pylist() if row["reason"] == "unjudged"]
    assert (row["measured"], row["n"]) == (0.8, 12)
    assert "96 of 120 results in bm25's top 10" in row["message"]


def test_a_short_run_cannot_acquit(make_set: MakeSet, make_run: MakeRun) -> None:
    gold, lists = ranked({f"q{i}": [1 + i % 20, 30] for i in range(60)}, 20)
    row = words(make_set(gold), {"bm25": make_run("bm25", lists)})["bm25"]
    assert (row["verdict"], row["reason"]) == ("insufficient", "too_shallow")


def test_without_run_and_corpus_it_says_what_is_missing(make_set: MakeSet) -> None:
    row = words(make_set({"q1": ["d1"]}), {})["all"]
    assert (row["verdict"], row["reason"]) == ("insufficient", "no_run")
    assert "--run NAME=FILE" in row["remedy"]


def test_shuffled_rows_change_nothing(make_set: MakeSet, make_run: MakeRun) -> None:
    gold, lists = ranked(lognormal(3, 40), 120)
    labelled, run = make_set(gold), make_run("bm25", lists)
    order = np.random.default_rng(1).permutation(len(run))
    shuffled = labelled.gold.take(np.random.default_rng(2).permutation(len(labelled.gold)))
    other = dataclasses.replace(labelled, gold=shuffled)
    first = audit_set(labelled, {"bm25": run}, checks=[Circularity()]).to_pylist()
    again = audit_set(other, {"bm25": run.take(order)}, checks=[Circularity()]).to_pylist()
    assert first == again


def test_cuts_are_those_of_the_bonferroni_correction() -> None:
    assert len(CLIFF_RANKS) == 8


def test_near_twins_of_gold_outside_are_looked_for_inside(make_set: MakeSet, make_run: MakeRun) -> None:
    # 20 questions with one gold of 40 words that the run does not return; for three of them its first result differs
    # in the last word alone (37 of 38 runs of three words in common: 37 / 39 = .949), for two in five (33 / 43).
    words = {i: [f"w{i}x{j}" for j in range(40)] for i in range(20)}
    passages = {f"g{i}": " ".join(words[i]) for i in words} | {f"o{i}": f"other {i}" for i in words}
    passages |= {f"n{i}": " ".join([*words[i][:-1], "end"]) for i in (0, 1, 2)}
    passages |= {f"n{i}": " ".join([*words[i][:-5], "a", "b", "c", "d", "e"]) for i in (3, 4)}
    gold = {f"q{i:02}": [f"g{i}"] for i in words}
    labelled = make_set(gold, passages=passages, questions={q: q for q in gold})
    lists = {f"q{i:02}": [f"n{i}" if i < 5 else f"o{i}", *(f"o{(i + step) % 20}" for step in range(1, 4))]
             for i in words}
    found = audit_set(labelled, {"R": make_run("R", lists)}, checks=[Circularity()]).to_pylist()
    row = next(row for row in found if row["reason"] == "near_twins")
    assert (row["verdict"], row["n"]) == ("pass", 20)
    assert row["measured"] == pytest.approx(3 / 20)
    assert "15.0 % of the gold less, more than 2 points: it hangs on near twins" in row["message"]
    assert "Of 20 gold spans outside R top 4, 3 have a near twin inside (similarity 0.8; 0 at 0.95)" in row["message"]
    # Without texts there is nothing to compare, without twins nothing to tell.
    assert "near_twins" not in {r["reason"] for r in audit_set(make_set(gold), {"R": make_run("R", lists)},
                                                                 checks=[Circularity()]).to_pylist()}
