"""Synthetic sets with a planted defect, at three strengths, and sets that only look as if they had one.

Every case is a function of a seed alone and made of plain draws: ranks from stated laws, words from a Zipf law. METHODS
5, 6 and 8 have the rules that they try.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.audit import Context, Drawn, Probe, audit_context, audit_set, by_check, take
from goldset.schemas import schema_of
from tests.audit.conftest import build_set

QUESTIONS, DEPTH = 180, 100
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One kind of set: the property it concerns, its strength (clean, trap, weak, medium, strong) and its maker.

    ``bar`` is False where a known limit is shown and nothing is promised.
    """

    check: str
    strength: str
    what: str
    make: Callable[[Rng], pa.Table]
    bar: bool = True


# --- circularity: ranks of the gold in R and in a control ---

Law = Callable[[Rng, int], np.ndarray]


def lognormal(median: float, sigma: float) -> Law:
    """Ranks whose logarithm is normal."""
    return lambda rng, size: np.exp(rng.normal(np.log(median), sigma, size))


def geometric(mean: float) -> Law:
    """Ranks with a light tail, which the cliff's assumption excludes."""
    return lambda rng, size: rng.geometric(1 / mean, size).astype(float)


def run_of(name: str, family: str, ranks: dict[tuple[str, str], float], other: str = "x") -> pa.Table:
    """(question, passage) -> wished rank -> run with 100 results a question; what lies deeper is not returned."""
    questions: dict[str, list[tuple[float, str]]] = {}
    for (question, passage), rank in ranks.items():
        questions.setdefault(question, []).append((rank, passage))
    chunks: list[str] = []
    for question, gold in questions.items():
        row = [f"{question}-{other}{place}" for place in range(DEPTH)]
        taken: set[int] = set()
        for rank, passage in sorted(gold):
            place = max(1, round(rank))
            while place in taken:
                place += 1
            taken.add(place)
            if place <= DEPTH:
                row[place - 1] = passage
        chunks += row
    count = len(chunks)
    schema = schema_of("run")
    columns = {"system": [name] * count, "family": [family] * count, "rank": list(range(1, DEPTH + 1)) * len(questions),
               "question_id": [question for question in questions for _ in range(DEPTH)], "chunk_id": chunks,
               "score": [None] * count}
    return pa.Table.from_arrays([pa.array(columns[column.name], column.type) for column in schema], schema=schema)


def circular(law: Law, *, cut: int | None = None, noise: float = 0.0) -> Callable[[Rng], pa.Table]:
    """Complete labels under ``law``, or only what R had within ``cut`` when the set was built.

    ``noise`` is the standard deviation of the log rank between the R of that day and today's.
    """

    def make(rng: Rng) -> pa.Table:
        gold: dict[str, list[str]] = {}
        mine: dict[tuple[str, str], float] = {}
        other: dict[tuple[str, str], float] = {}
        for i in range(QUESTIONS):
            size = 1 + rng.poisson(1.2)
            ranks, control = law(rng, size), lognormal(10, 1.6)(rng, size)
            for j in range(size):
                if cut is not None and round(ranks[j]) > cut:
                    continue
                gold.setdefault(f"q{i}", []).append(f"q{i}-g{j}")
                mine[f"q{i}", f"q{i}-g{j}"] = ranks[j] * np.exp(rng.normal(0, noise)) if noise else ranks[j]
                other[f"q{i}", f"q{i}-g{j}"] = control[j]
        runs = {"R": run_of("R", "lexical", mine), "control": run_of("control", "dense", other)}
        return audit_set(build_set(gold), runs, checks=checks("circularity"))

    return make


# --- a probe: what R and the control return in their first ten results, read by people who do not err ---

Labels = Callable[[Rng, list[float]], list[int]]


def missed(share: float) -> Labels:
    """Every relevant passage is labelled but this share; at least one of a question."""
    return lambda rng, ranks: [j for j in range(len(ranks)) if rng.random() >= share] or [0]


def one_of(rng: Rng, ranks: list[float]) -> list[int]:
    """The one passage that the question was written from, wherever it ranks."""
    return [int(rng.integers(len(ranks)))]


def within(cut: int) -> Labels:
    """Only what R had in its first results."""
    return lambda rng, ranks: [j for j, rank in enumerate(ranks) if round(rank) <= cut]


def probed(check: str, law: Law, labels: Labels, *, more: float = 1.2,
           noise: float = 0.0) -> Callable[[Rng], pa.Table]:
    """Relevant passages (one and on average ``more``) with ranks under ``law`` in R; some are labelled.

    ``noise`` is the standard deviation of the log rank between the R of that day and today's. Two
    unlabelled results a question are drawn from the first ten of R and of an unrelated control and read.
    """

    def make(rng: Rng) -> pa.Table:
        gold: dict[str, list[str]] = {}
        ranks: tuple[dict[tuple[str, str], float], ...] = ({}, {})
        for i in range(QUESTIONS):
            size = 1 + rng.poisson(more)
            mine, other = law(rng, size), lognormal(10, 1.6)(rng, size)
            chosen = labels(rng, list(mine))
            if not chosen:
                continue
            gold[f"q{i}"] = [f"q{i}-g{j}" for j in chosen]
            mine = mine * np.exp(rng.normal(0, noise, size))
            for j in range(size):
                ranks[0][f"q{i}", f"q{i}-g{j}"], ranks[1][f"q{i}", f"q{i}-g{j}"] = mine[j], other[j]
        # The control's other results are passages of its own.
        runs = {"R": run_of("R", "lexical", ranks[0]), "control": run_of("control", "dense", ranks[1], other="y")}
        reach: dict[str, set[str]] = {question: set() for question in gold}
        for run in runs.values():
            for row in run.filter(pc.less_equal(run["rank"], 10)).select(["question_id", "chunk_id"]).to_pylist():
                reach[row["question_id"]].add(row["chunk_id"])
        order = {q: rng.permutation(sorted(found - set(gold[q]))).tolist() for q, found in sorted(reach.items())}
        drawn: tuple[Drawn, ...] = take(order, 2)
        probe = Probe(drawn, {row.pair: "-g" in row.span_id for row in drawn})
        return audit_context(Context(build_set(gold), runs, probing=lambda _: probe), checks(check))

    return make


# --- leakage: words of questions, gold and logs ---

_WORDS, _PASSAGES, _ASKED = 2500, 400, 100


def leaking(copied: float, *, longer: int = 0, typos: float = 0.0, found: bool = False) -> Callable[[Rng], pa.Table]:
    """Set questions that take each word from their gold with the chance ``copied``; log questions do with .45.

    ``longer`` words more in each set question; ``typos`` is the share of log words that stand in no passage; with
    ``found`` people have found the gold of the log questions, and they are a reference set.
    """

    def make(rng: Rng) -> pa.Table:
        weight = 1 / np.arange(1, _WORDS + 1)
        weight /= weight.sum()
        passages = {f"d{i}": [f"w{word}" for word in rng.choice(_WORDS, rng.integers(50, 90), p=weight)]
                    for i in range(_PASSAGES)}
        names = list(passages)

        def ask(source: str, chance: float, words: int) -> list[str]:
            own = [word for word in dict.fromkeys(passages[source]) if int(word[1:]) >= 20]  # no function words
            free = [f"w{word}" for word in rng.choice(_WORDS, words, p=weight)]
            take = rng.permutation(len(own))[:words]
            return [own[take[i]] if i < len(take) and rng.random() < chance else free[i] for i in range(words)]

        gold = {f"q{i}": [names[rng.integers(_PASSAGES)]] for i in range(_ASKED)}
        questions = {name: " ".join(ask(source[0], copied, int(rng.integers(5, 11)) + longer))
                     for name, source in gold.items()}
        logs, answers = [], {}
        for i in range(_ASKED):
            answers[f"r{i}"] = [names[rng.integers(_PASSAGES)]]
            words = ask(answers[f"r{i}"][0], 0.45, int(rng.integers(5, 11)) + (longer and
                                                                                          int(rng.integers(0, longer))))
            logs.append(" ".join(f"typo{rng.integers(10**6)}" if rng.random() < typos else word for word in words))
        texts = {name: " ".join(words) for name, words in passages.items()}
        labelled = build_set(gold, passages=texts, questions=questions)
        if found:
            reference = build_set(answers, passages=texts,
                                  questions={f"r{i}": text for i, text in enumerate(logs)})
            return audit_context(Context(labelled, reference=reference), checks("leakage"))
        return audit_set(labelled, {}, log_questions=pa.table({"text": logs}), checks=checks("leakage"))

    return make


# --- k mismatch, completeness, integrity ---


def served(evaluated: int, serving: int) -> Callable[[Rng], pa.Table]:
    """Complete labels, recall quoted at one k and served at another."""

    def make(rng: Rng) -> pa.Table:
        ranks = {(f"q{i}", f"q{i}-g0"): rank for i, rank in enumerate(lognormal(6, 1.4)(rng, 60))}
        gold = {question: [passage] for question, passage in ranks}
        return audit_set(build_set(gold), {"R": run_of("R", "lexical", ranks)}, eval_k=evaluated, serving_k=serving,
                         served_system="R", checks=checks("k_mismatch"))

    return make


def missing(share: float) -> Callable[[Rng], pa.Table]:
    """A rebuilt set whose judge rejected this share of the relevant passages; a tenth of its rejections was read."""

    def make(rng: Rng) -> pa.Table:
        confirmed, rejections, read = 270, 6000, 600
        missed = round(confirmed * share / (1 - share))
        found = int(rng.hypergeometric(missed, rejections - missed, read))
        sizes = 1 + rng.poisson(0.6, confirmed)
        gold: dict[str, list[str]] = {}
        total = confirmed + found
        for i in range(total):
            gold.setdefault(f"q{i % max(1, total // 2) if sizes[i % confirmed] > 1 else i}", []).append(f"d{i}")
        labelled = build_set(gold, kind="published", manifest={"sampling": {
            "strata": [{"stratum": "rejection", "size": rejections, "read": read, "found": found}]}})
        return audit_set(labelled, {}, checks=checks("completeness"))

    return make


def one_gold(rng: Rng) -> pa.Table:
    """A corpus in which each question truly has one answer, all of them labelled."""
    ranks = {(f"q{i}", f"q{i}-g0"): rank for i, rank in enumerate(lognormal(10, 1.6)(rng, QUESTIONS))}
    return audit_set(build_set({question: [passage] for question, passage in ranks}),
                     {"R": run_of("R", "lexical", ranks)}, checks=checks("completeness"))


def stale(share: float) -> Callable[[Rng], pa.Table]:
    """Gold of which this share has left the corpus since."""

    def make(rng: Rng) -> pa.Table:
        there = {f"d{i}": f"passage {i}" for i in range(200) if rng.random() >= share}
        gold = {f"q{i}": [f"d{i}"] for i in range(200)}
        return audit_set(build_set(gold, passages=there), {}, checks=checks("integrity"))

    return make


def checks(name: str) -> Sequence[Any]:
    """The one check of a name."""
    from goldset.audit import CHECKS

    return [check for check in CHECKS if check.name == name]


CASES: tuple[Case, ...] = (
    Case("circularity", "clean", "complete labels", circular(lognormal(10, 1.6))),
    Case("circularity", "trap", "a strong retriever, complete labels", circular(lognormal(2.5, 1.0))),
    Case("circularity", "trap", "built from an old retriever's top 10 (log ranks moved by 1.0 since)",
         circular(lognormal(10, 1.6), cut=10, noise=1.0)),
    Case("circularity", "weak", "gold from the retriever's top 50", circular(lognormal(10, 1.6), cut=50)),
    Case("circularity", "medium", "gold from its top 10, log ranks moved by 0.2 since",
         circular(lognormal(10, 1.6), cut=10, noise=0.2)),
    Case("circularity", "strong", "gold from its top 10", circular(lognormal(10, 1.6), cut=10)),
    Case("circularity", "trap", "a strong retriever, 2 % unlabelled, results probed",
         probed("circularity", lognormal(2.5, 1.0), missed(0.02))),
    Case("circularity", "trap", "a strong retriever, one gold a question from its author, results probed",
         probed("circularity", lognormal(2.5, 1.0), one_of)),
    Case("circularity", "medium", "gold from its top 10, log ranks moved by 0.5 since, results probed",
         probed("circularity", lognormal(10, 1.6), within(10), noise=0.5)),
    Case("circularity", "strong", "gold from its top 10, log ranks moved by 0.3 since, results probed",
         probed("circularity", lognormal(10, 1.6), within(10), noise=0.3)),
    Case("circularity", "limit", "complete labels, light-tailed (geometric) ranks", circular(geometric(8)), bar=False),
    Case("leakage", "clean", "questions like the logs'", leaking(0.45)),
    Case("leakage", "trap", "longer questions", leaking(0.45, longer=6)),
    Case("leakage", "trap", "spell-checked questions, logs with 15 % typos", leaking(0.45, typos=0.15)),
    Case("leakage", "weak", "65 % of the words copied from the gold (logs: 45 %)", leaking(0.65)),
    Case("leakage", "medium", "80 % copied", leaking(0.80)),
    Case("leakage", "strong", "95 % copied", leaking(0.95)),
    Case("leakage", "clean", "questions like those of a reference set with gold", leaking(0.45, found=True)),
    Case("leakage", "trap", "longer questions than those of a reference set", leaking(0.45, longer=6, found=True)),
    Case("leakage", "trap", "spell-checked questions, a reference set with 15 % typos",
         leaking(0.45, typos=0.15, found=True)),
    Case("leakage", "weak", "65 % copied, against a reference set", leaking(0.65, found=True)),
    Case("leakage", "medium", "80 % copied, against a reference set", leaking(0.80, found=True)),
    Case("leakage", "strong", "95 % copied, against a reference set", leaking(0.95, found=True)),
    Case("k_mismatch", "clean", "quoted at 5, served 5", served(5, 5)),
    Case("k_mismatch", "weak", "quoted at 6, served 5", served(6, 5)),
    Case("k_mismatch", "medium", "quoted at 10, served 5", served(10, 5)),
    Case("k_mismatch", "strong", "quoted at 20, served 5", served(20, 5)),
    Case("completeness", "clean", "2 % of the relevant passages missed", missing(0.02)),
    Case("completeness", "trap", "one true answer a question", one_gold),
    Case("completeness", "weak", "15 % missed", missing(0.15)),
    Case("completeness", "medium", "25 % missed", missing(0.25)),
    Case("completeness", "strong", "40 % missed", missing(0.40)),
    Case("completeness", "clean", "2 % unlabelled, results probed",
         probed("completeness", lognormal(10, 1.6), missed(0.02))),
    Case("completeness", "trap", "one true answer a question, results probed",
         probed("completeness", lognormal(10, 1.6), missed(0.0), more=0.0)),
    Case("completeness", "weak", "15 % unlabelled, results probed",
         probed("completeness", lognormal(10, 1.6), missed(0.15))),
    Case("completeness", "medium", "30 % unlabelled, results probed",
         probed("completeness", lognormal(10, 1.6), missed(0.30))),
    Case("completeness", "strong", "one gold where there are 2.2 on average, results probed",
         probed("completeness", lognormal(10, 1.6), one_of)),
    Case("integrity", "clean", "all gold in the corpus", stale(0.0)),
    Case("integrity", "weak", "4 % of the gold gone", stale(0.04)),
    Case("integrity", "medium", "8 % gone", stale(0.08)),
    Case("integrity", "strong", "15 % gone", stale(0.15)),
)


def verdict(case: Case, seed: int) -> str:
    """The gravest verdict of the case's check on its set of this seed."""
    rng = np.random.default_rng([seed, *case.what.encode(), *case.check.encode()])
    return by_check(case.make(rng))[case.check]


