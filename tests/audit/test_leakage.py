"""Lexical leakage: oracle values, the words, planted copies and clean sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.audit import Context, audit_context, audit_set
from goldset.audit.leakage import Leakage, copied_run, coverage, leakage_word, measure, norm
from goldset.formats.sets import LabelledSet
from goldset.lexical import BM25Index, robertson_idf

MakeSet = Callable[..., LabelledSet]
VOCABULARY = np.array([f"w{i}" for i in range(1500)])
ZIPF = 1 / np.arange(5, 1505)
ZIPF /= ZIPF.sum()


def findings(labelled: LabelledSet, logs: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Reason -> row about the whole set."""
    table = audit_set(labelled, {}, checks=[Leakage()],
                      log_questions=None if logs is None else pa.table({"text": pa.array(logs, pa.string())}))
    return {row["reason"]: row for row in table.to_pylist() if row["subject"] == "all"}


class World:
    """300 passages of 60 words; a question takes a share of its words from one passage, the rest from anywhere."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.passages = {f"d{i:03}": " ".join(self.generator.choice(VOCABULARY, 60, p=ZIPF)) for i in range(300)}

    def question(self, passage: str, share: float, words: int) -> str:
        own = self.generator.choice(self.passages[passage].split(), words)
        other = self.generator.choice(VOCABULARY, words, p=ZIPF)
        return " ".join(np.where(self.generator.random(words) < share, own, other))

    def questions(self, count: int, share: float, *,
                  words: tuple[int, int] = (6, 9)) -> tuple[dict[str, str], Mapping[str, list[str]]]:
        golds = self.generator.choice(sorted(self.passages), count)
        texts = {f"q{i}": self.question(gold, share, int(self.generator.integers(*words)))
                 for i, gold in enumerate(golds)}
        return texts, {f"q{i}": [gold] for i, gold in enumerate(golds)}

    def logs(self, count: int, share: float) -> list[str]:
        return list(self.questions(count, share)[0].values())


def test_oracle_25() -> None:
    # METHODS 13, 25: N = 1000, df 10 and 500; the gold has the rare term once, at average length (k1 1.2, b .75).
    idf = {"rare": robertson_idf(1000, 10), "common": robertson_idf(1000, 500)}
    assert idf["rare"] == pytest.approx(4.557380, abs=1e-6)
    assert idf["common"] == pytest.approx(0.693147, abs=1e-6)
    passage = ["rare", *["x"] * 9]
    assert norm(idf, passage, average_length=10) == pytest.approx(0.394539, abs=1e-6)
    assert coverage(idf, set(passage)) == pytest.approx(0.867985, abs=1e-6)


def test_a_question_without_a_known_term_has_no_coverage() -> None:
    assert coverage({}, {"a"}) is None
    assert norm({}, ["a"], 1.0) is None


@pytest.mark.parametrize(("question", "passage", "longest"), [
    ("a b c d", "x a b c y", 3),
    ("a b a b c", "a b c", 3),
    ("ab c", "a b c", 1),  # tokens, not characters
    ("a", "", 0),
    ("", "a b", 0),
    ("the cat sat", "the cat sat", 3),
])
def test_copied_run(question: str, passage: str, longest: int) -> None:
    assert copied_run(question.split(), passage.split()) == longest


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=12))
def test_copied_run_equals_the_slow_way(question: list[str], passage: list[str]) -> None:
    runs = [len(question[i:j]) for i in range(len(question)) for j in range(i + 1, len(question) + 1)
            if any(passage[k : k + j - i] == question[i:j] for k in range(len(passage)))]
    assert copied_run(question, passage) == max(runs, default=0)


def test_unknown_terms_stay_out_of_the_sums_and_several_gold_give_the_maximum() -> None:
    index = BM25Index.build(["d1", "d2", "d3"], [["zephyr", "valve"], ["small", "valve"], ["other"]])
    seen = measure(index, "Zephyr valve xyzzy?", ["small valve", "Zephyr valve"], top=True)
    assert (seen.terms, seen.idfcov, seen.copied) == (3, 1.0, 2)
    assert seen.unknown == pytest.approx(1 / 3)
    # The best passage is d1, which is gold too, so top equals norm; average length is 5/3.
    assert seen.top == pytest.approx(seen.norm)


def test_c20_rare_words_of_the_gold_count_and_the_users_own_do_not() -> None:
    # In the index "zephyr" and "tolerates" are rare; the second question shares only "valve".
    texts = ["the zephyr 9 valve tolerates 41 bar", "a valve for water", "pressure in pipes", "small parts"]
    index = BM25Index.build(["d0", "d1", "d2", "d3"], [text.split() for text in texts])
    copied = measure(index, "How many bar does the Zephyr-9 valve tolerate?", [texts[0]], top=False)
    own = measure(index, "max pressure for our small valve?", [texts[0]], top=False)
    assert copied.idfcov == 1.0
    assert own.idfcov is not None
    assert own.idfcov < 0.3


@pytest.mark.parametrize(("low", "high", "word"), [
    (0.72, 0.9, "strong"), (0.71, 0.9, "strong"), (0.60, 0.8, "leak"), (0.45, 0.59, "none"),
    (0.55, 0.65, "inconclusive"), (0.45, 0.60, "inconclusive")])
def test_words(low: float, high: float, word: str) -> None:
    assert leakage_word(low, high) == word


@pytest.mark.parametrize("seed", range(3))
def test_planted_copies_convict_and_clean_sets_do_not(seed: int, make_set: MakeSet) -> None:
    world = World(seed)
    logs = world.logs(150, 0.45)
    texts, gold = world.questions(120, 0.95)
    row = next(iter(findings(make_set(gold, passages=world.passages, questions=texts), logs).values()))
    assert (row["verdict"], row["reason"]) == ("fail", "strong")
    texts, gold = world.questions(120, 0.45)
    row = next(iter(findings(make_set(gold, passages=world.passages, questions=texts), logs).values()))
    assert (row["reason"], row["verdict"]) in {("none", "pass"), ("inconclusive", "insufficient")}
    # The null is .5; DeLong's SE of 120 against 150 is about .036.
    assert row["measured"] == pytest.approx(0.5, abs=0.11)


def test_longer_questions_alone_are_no_leak(make_set: MakeSet) -> None:
    world = World(11)
    logs = world.logs(150, 0.45)
    texts, gold = world.questions(120, 0.45, words=(8, 13))
    row = next(iter(findings(make_set(gold, passages=world.passages, questions=texts), logs).values()))
    assert row["verdict"] != "fail"


def test_without_logs_copied_runs_raise_suspicion_only(make_set: MakeSet) -> None:
    world = World(5)
    texts, gold = world.questions(60, 0.45)
    copies = {question: " ".join(world.passages[gold[question][0]].split()[4:11]) for question in list(texts)[:30]}
    rows = findings(make_set(gold, passages=world.passages, questions={**texts, **copies}))
    # 30 of 60: Wilson .377 to .623, above .15.
    assert rows["suspected"]["verdict"] == "warn"
    assert rows["suspected"]["measured"] == 0.5
    assert rows["suspected"]["low"] == pytest.approx(0.3773, abs=1e-3)
    clean = findings(make_set(gold, passages=world.passages, questions=texts))
    assert clean["no_reference"]["verdict"] == "insufficient"
    assert "--logs" in clean["no_reference"]["remedy"]


def test_few_questions_are_too_few(make_set: MakeSet) -> None:
    world = World(6)
    texts, gold = world.questions(49, 0.95)
    labelled = make_set(gold, passages=world.passages, questions=texts)
    assert findings(labelled)["too_few"]["n"] == 49
    assert findings(labelled, world.logs(150, 0.45))["too_few"]["verdict"] == "insufficient"
    texts, gold = world.questions(60, 0.95)
    labelled = make_set(gold, passages=world.passages, questions=texts)
    assert findings(labelled, world.logs(49, 0.45))["too_few"]["n"] == 49


@pytest.mark.parametrize(("texts", "passages", "lacks"), [
    (None, {"d1": "a b"}, "--questions FILE"), ({"q1": "a"}, None, "--corpus FILE")])
def test_missing_texts_are_named(texts: dict[str, str] | None, passages: dict[str, str] | None, lacks: str,
                                 make_set: MakeSet) -> None:
    rows = findings(make_set({"q1": ["d1"]}, questions=texts, passages=passages))
    assert rows["no_text"]["verdict"] == "insufficient"
    assert lacks in rows["no_text"]["message"]
    assert rows["no_text"]["remedy"].count("--") == 1


def test_the_string_sent_to_retrieval_is_compared_where_it_differs(make_set: MakeSet) -> None:
    world = World(8)
    texts, gold = world.questions(60, 0.45)
    labelled = make_set(gold, passages=world.passages, questions=texts)
    logs = world.logs(60, 0.45)
    half = [query if i % 2 else None for i, query in enumerate(logs)]
    told = pa.table({"text": [text if query is None else "zzz" for text, query in zip(logs, half, strict=True)],
                     "query": pa.array(half, pa.string())})
    assert audit_set(labelled, {}, checks=[Leakage()], log_questions=told).to_pylist()[0] == next(
        iter(findings(labelled, logs).values()))


def test_origins_are_shown_apart(make_set: MakeSet) -> None:
    world = World(7)
    texts, gold = world.questions(60, 0.5)
    labelled = make_set(gold, passages=world.passages, questions=texts,
                        origins={f"q{i}": "synthetic" if i % 2 else "log" for i in range(60)})
    table = audit_set(labelled, {}, checks=[Leakage()]).to_pylist()
    shown = {row["subject"]: row["n"] for row in table if row["reason"] == "origin"}
    assert shown == {"origin log": 30, "origin synthetic": 30}


def against(world: World, share: float, reference: LabelledSet, *, logs: list[str] | None = None,
            make_set: MakeSet) -> list[dict[str, Any]]:
    texts, gold = world.questions(80, share)
    labelled = make_set(gold, passages=world.passages, questions=texts)
    table = None if logs is None else pa.table({"text": pa.array(logs, pa.string())})
    rows: list[dict[str, Any]] = audit_context(Context(labelled, log_questions=table, reference=reference),
                                               [Leakage()]).to_pylist()
    return rows


def test_real_questions_with_gold_are_the_better_reference(make_set: MakeSet) -> None:
    world = World(5)
    asked, answers = world.questions(80, 0.4)
    reference = make_set(answers, passages=world.passages, questions=asked)
    copied, *_ = against(world, 0.95, reference, make_set=make_set)
    alike, *_ = against(world, 0.4, reference, make_set=make_set)
    assert copied["verdict"] == "fail"
    assert alike["verdict"] != "fail"
    assert alike["measured"] == pytest.approx(0.5, abs=0.1)
    assert "far more of their rare words with their gold than real questions" in copied["message"]
    # Nothing says who pooled the reference, so its leaning is told.
    assert "leans towards acquittal" in copied["message"]
    # Logs without gold stand below it on the ladder and do not decide beside it.
    row, *_ = against(world, 0.4, reference, logs=world.logs(80, 0.4), make_set=make_set)
    assert "those of small whose gold people found" in row["message"]


def test_too_small_a_reference_gives_way_to_the_logs_or_decides_nothing(make_set: MakeSet) -> None:
    world = World(6)
    asked, answers = world.questions(20, 0.4)
    reference = make_set(answers, passages=world.passages, questions=asked)
    row, *_ = against(world, 0.95, reference, make_set=make_set)
    assert (row["reason"], row["n"]) == ("too_few", 20)
    row, *_ = against(world, 0.95, reference, logs=world.logs(80, 0.4), make_set=make_set)
    assert "log questions" in row["message"]


def test_the_plain_ratio_is_shown_with_what_length_alone_explains(make_set: MakeSet) -> None:
    # Set questions of 12 words against log questions of 6, copied alike: BM25 is a sum over words, about twice as much.
    world = World(7)
    texts, gold = world.questions(60, 0.4, words=(12, 13))
    labelled = make_set(gold, passages=world.passages, questions=texts)
    logs = list(world.questions(60, 0.4, words=(6, 7))[0].values())
    rows = findings(labelled, logs)
    row = rows["bm25_ratio"]
    assert row["verdict"] == "pass"
    measured = [measure(Context(labelled).index or pytest.fail("no index"), text, [world.passages[gold[name][0]]],
                        top=False) for name, text in texts.items()]
    best = [measure(Context(labelled).index or pytest.fail("no index"), text, [], top=True) for text in logs]
    mean = np.mean([row.plain for row in measured]) / np.mean([(row.top or 0) * row.attainable for row in best])
    assert row["measured"] == pytest.approx(mean)
    assert "which proves nothing: BM25 is a sum over the question's terms" in row["message"]
    assert "bm25_ratio" not in findings(labelled)


def test_c20_the_result_is_split_by_where_the_questions_come_from(make_set: MakeSet) -> None:
    world = World(8)
    texts, gold = world.questions(120, 0.4)
    written = {f"q{i}" for i in range(60)}
    for name in written:  # these repeat their gold
        texts[name] = " ".join(world.passages[gold[name][0]].split()[:8])
    labelled = make_set(gold, passages=world.passages, questions=texts,
                        origins={name: "synthetic" if name in written else "log" for name in texts})
    table = audit_set(labelled, {}, checks=[Leakage()], log_questions=pa.table({"text": world.logs(80, 0.4)}))
    by = {row["subject"]: row for row in table.to_pylist() if row["reason"] == "origin"}
    assert by["origin synthetic"]["measured"] == 1.0
    assert "60 with 5 or more copied words; against real questions AUC" in by["origin synthetic"]["message"]
    assert "0 with 5 or more copied words" in by["origin log"]["message"]
    assert by["origin log"]["measured"] < 0.9
