"""How often the 95 % intervals of recall hold the truth, by seeded simulation: ``python tests/benchmarks/coverage.py``.

A question has one to seven relevant passages and a difficulty of its own. A judge rejects some relevant passages, the
undelivered ones three times as often. People read what it accepts and a sample of what it rejects, by one of three
designs; the estimators and intervals are the project's own. The truth is recall over a large population of the same
kind. Beside it, people answer wrongly in 3 % of all readings; in the careful design every yes is read by a second
person, and a third decides where they differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from goldset.stats import recall as estimators
from goldset.stats.intervals import Interval, ratio
from goldset.stats.recall import Finds, Parts

Bools = npt.NDArray[np.bool_]
MOST = 7
REJECTED = 30
"""Passages of a question's pool that are not relevant and that the judge rejects."""
ACCEPTED = 7
"""Passages of a question's pool that are not relevant and that the judge accepts."""
FALSE_DELIVERED = 0.3
"""Share of the passages that are not relevant, and that a reader takes for relevant, which the system delivers."""
POPULATION = 200_000
TEXTS = 20_000


class Pool(NamedTuple):
    """Relevant passages by question: which exist, which the system delivers, which the judge accepts, and its score."""

    there: Bools
    delivered: Bools
    accepted: Bools
    high: Bools


@dataclass(frozen=True)
class Cell:
    """One line of the table. ``design``: complete, log events, simple (10 % of rejections) or careful.

    ``fnr``: share of the relevant passages that the judge misses;
    log events: complete labels of questions that are asked unequally often; recall weighted by traffic.
    """

    design: str
    n: int
    fnr: float

    def __str__(self) -> str:
        return f"{self.design}, n = {self.n}" + ("" if self.fnr == 0 else f", judge misses {self.fnr:.0%}")


def draw(generator: np.random.Generator, questions: int, fnr: float) -> Pool:
    """A sample of questions of the population."""
    count = 1 + np.minimum(generator.poisson(1.2, questions), MOST - 1)
    there = np.arange(MOST) < count[:, None]
    ease = generator.beta(3.0, 0.8, questions)[:, None]
    delivered = there & (generator.random((questions, MOST)) < ease)
    # Misses: three times as likely where nothing was delivered; at the mean ease of .79 that is fnr overall.
    miss = np.where(delivered, 1.0, 3.0) * fnr / (0.79 + 3 * 0.21)
    accepted = there & (generator.random((questions, MOST)) >= miss)
    high = generator.random((questions, MOST)) < 0.7  # a missed passage is mostly among the better scored rejections
    return Pool(there, delivered, accepted, high)


def truth(fnr: float) -> tuple[float, float]:
    """(macro, micro) recall of the population."""
    pool = draw(np.random.default_rng(1), POPULATION, fnr)
    gold, got = pool.there.sum(1), pool.delivered.sum(1)
    return float((got / gold).mean()), float(got.sum() / gold.sum())


def says_yes(generator: np.random.Generator, relevant: Bools, error: float, *, twice: bool) -> Bools:
    """What people say of passages that are relevant or not; ``twice``: a yes needs two, a third decides."""
    yes: Bools = relevant ^ (generator.random(relevant.shape) < error)
    if not twice:
        return yes
    second, third = (relevant ^ (generator.random(relevant.shape) < error) for _ in range(2))
    confirmed: Bools = yes & (second | third)
    return confirmed


def intervals(cell: Cell, generator: np.random.Generator, reader_error: float) -> Iterator[tuple[str, Interval | None]]:
    """One simulated rebuild -> (macro or micro, interval) of each estimator that the cell is about."""
    pool = draw(generator, cell.n, cell.fnr)
    heard = pool.there if cell.design == "complete" else pool.accepted
    twice = cell.design == "careful"
    yes = heard & says_yes(generator, heard, reader_error, twice=twice)
    others = ACCEPTED + (REJECTED if cell.design == "complete" else 0)
    wrong = says_yes(generator, np.zeros((cell.n, others), np.bool_), reader_error, twice=twice).sum(1)
    gold = (yes.sum(1) + wrong).astype(np.float64)
    got = ((yes & pool.delivered).sum(1) + generator.binomial(wrong, FALSE_DELIVERED)).astype(np.float64)
    if cell.design == "complete":
        yield "macro", _interval(estimators.macro_naive(got, gold))
        yield "micro", _interval(estimators.micro_naive(got, gold))
        return
    missed = pool.there & ~pool.accepted
    # Strata: simple reads a tenth of all rejections; careful a quarter of the fifth with the best scores and a
    # sixteenth of the rest, and in full where nothing was found.
    full = gold == 0 if cell.design == "careful" else np.zeros(cell.n, np.bool_)
    strata = ([(missed & pool.high, 0.2, 0.25), (missed & ~pool.high, 0.8, 0.0625)] if cell.design == "careful"
              else [(missed, 1.0, 0.1)])
    owners: list[npt.NDArray[np.int64]] = []
    weights: list[npt.NDArray[np.float64]] = []
    hits: list[npt.NDArray[np.float64]] = []
    rejections = sampled = 0
    for inside, share, rate in strata:
        owner, place = np.nonzero(inside & ~full[:, None])
        size = len(owner) + round(share * REJECTED * int((~full).sum()))
        read = round(rate * size)
        rejections, sampled = rejections + size, sampled + read
        picked = generator.choice(size, read, replace=False)
        is_relevant = picked < len(owner)
        found = says_yes(generator, is_relevant, reader_error, twice=twice)
        right, false = picked[found & is_relevant], int((found & ~is_relevant).sum())
        owners += [owner[right], generator.choice(np.flatnonzero(~full), false)]
        hits += [pool.delivered[owner[right], place[right]].astype(np.float64),
                 (generator.random(false) < FALSE_DELIVERED).astype(np.float64)]
        weights.append(np.full(len(right) + false, size / read))
    whole = missed & full[:, None]
    whole &= says_yes(generator, whole, reader_error, twice=twice)
    wrong = full * says_yes(generator, np.zeros((cell.n, REJECTED), np.bool_), reader_error, twice=twice).sum(1)
    gold += whole.sum(1) + wrong
    got += (whole & pool.delivered).sum(1) + generator.binomial(wrong, FALSE_DELIVERED)
    finds = Finds(np.concatenate(owners), np.concatenate(weights), np.concatenate(hits))
    for name, parts in (("macro", estimators.macro_ht(got, gold, finds)),
                        ("micro", estimators.micro_ht(got, gold, finds))):
        extra = 0.0
        if not len(finds.weight) and (theta := parts.value) is not None:
            extra = estimators.unseen_variance(got, gold, parts.den, theta=theta, rejections=rejections,
                                               sampled=sampled, read_in_full=full, micro=name == "micro")
        yield name, _interval(parts, extra)


class Log(NamedTuple):
    """A finite log: how often each text is asked (Zipf .7) and its recall."""

    chance: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]


def a_log() -> Log:
    """Twenty thousand texts; the recall of each is that of a question of the population."""
    pool = draw(np.random.default_rng(2), TEXTS, 0.0)
    asked = 1.0 / np.arange(1, TEXTS + 1) ** 0.7
    return Log(asked / asked.sum(), pool.delivered.sum(1) / pool.there.sum(1))


def log_events(cell: Cell, generator: np.random.Generator, log: Log) -> Interval | None:
    """Events drawn from the log, a text labelled once and counted as often as drawn -> interval of traffic recall."""
    times = generator.multinomial(cell.n, log.chance)
    texts = np.flatnonzero(times)
    return ratio(log.recall[texts], np.ones(len(texts)), weight=times[texts].astype(np.float64)).interval


def _interval(parts: Parts, extra: float = 0.0) -> Interval | None:
    return ratio(parts.num, parts.den, extra_variance=extra).interval


def coverage(cell: Cell, *, runs: int, reader_error: float = 0.0, seed: int = 7) -> dict[str, float]:
    """Share of simulated rebuilds whose interval holds the truth, for macro and micro recall."""
    if cell.design == "log events":
        log, generator = a_log(), np.random.default_rng([seed, cell.n])
        traffic = float(log.chance @ log.recall)
        found = [log_events(cell, generator, log) for _ in range(runs)]
        return {"macro": sum(ends is not None and ends.low <= traffic <= ends.high for ends in found) / runs}
    macro, micro = truth(cell.fnr)
    target = {"macro": macro, "micro": micro}
    generator = np.random.default_rng([seed, cell.n, round(1000 * cell.fnr), len(cell.design)])
    held = dict.fromkeys(target, 0)
    for _ in range(runs):
        for name, ends in intervals(cell, generator, reader_error):
            held[name] += ends is not None and ends.low <= target[name] <= ends.high
    return {name: count / runs for name, count in held.items()}


CELLS = [*(Cell(design, n, 0.0) for design in ("complete", "log events") for n in (50, 180, 500)),
         *(Cell(design, n, fnr) for design in ("simple", "careful") for n in (50, 180, 500)
           for fnr in (0.01, 0.03, 0.08))]


def table(runs: int) -> str:
    """The whole table in Markdown, readers without error and with 3 % of it side by side."""
    lines = ["| labels | macro | micro | macro, 3 % reader error | micro, 3 % reader error |", "|---|---|---|---|---|"]
    columns: list[list[float]] = [[], [], [], []]
    for cell in CELLS:
        row: list[float | None] = []
        for error in (0.0, 0.03):
            found = None if error and cell.design == "log events" else coverage(cell, runs=runs, reader_error=error)
            row += [found.get(name) if found else None for name in ("macro", "micro")]
        for column, value in zip(columns, row, strict=True):
            column += [] if value is None else [value]
        lines.append(f"| {cell} | " + " | ".join("" if value is None else f"{value:.3f}" for value in row) + " |")
    return "\n".join([*lines, "| mean | " + " | ".join(f"{np.mean(column):.3f}" for column in columns) + " |"])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulated rebuilds a cell")
    options = parser.parse_args()
    print(f"coverage of 95 % intervals, {options.runs:,} simulated rebuilds a cell, seed 7\n\n{table(options.runs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
