"""Two systems on the same questions and gold: the paired difference, and whether the data can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Ints, Questions
from goldset.metrics.results import NEVER, Results
from goldset.metrics.words import cut_by_words, words_served
from goldset.stats.compare import (
    Units,
    detectable,
    half_width,
    mcnemar,
    paired_ends,
    sign_flip,
    sign_flip_method,
)
from goldset.stats.intervals import Floats

ENOUGH_CHANGED = 20
"""Fewer questions whose recall differs than this decide nothing."""
ALPHA = 0.05
MOST_CHANGED = 10_000
"""Questions that differ and are named; nobody reads more, and memory is bounded."""
_UNLIKE = 1.25
_LAST = 2**31 - 1


def compare(labelled: LabelledSet, run_a: pa.Table, run_b: pa.Table, k: int | None = None, *,
            names: tuple[str, str] = ("A", "B"), seed: int = 0, words: bool = True,
            chunks: Mapping[str, pa.Table] | None = None, budget: int | None = None) -> dict[str, Any]:
    """Labelled set, run A, run B, k or ``budget`` -> the paired difference of recall, B minus A (METHODS 9).

    Over questions with confirmed gold whose recall is known in both. A question counts as often as it was drawn; the
    near-duplicate cluster is the unit of resampling and of the sign flips. ``words`` reads the texts, where there are
    any, to say how many words each system serves. ``chunks`` (system -> table chunks) says what a system's chunk ids
    mean where they are of another chunking than the set's. With ``budget`` each list is cut at so many words instead.

    Returns:
        JSON-able dict: systems, k, n, units, recall of each, difference, low and high (percentile bootstrap, 10,000
        seeded draws), p (sign flips, exact to 15 non-zero units), discordant, up, down, sd of the unit differences,
        detectable (smallest difference seen with 80 % power; null where
        all units are alike), hit (McNemar), words, changed (the questions that
        differ, largest change first, with the rank of each gold in both lists, null = not in it; the first
        10,000, changed_left_out counts the others), excluded,
        verdict (better, worse: of B against A; no_difference_shown; too_few_to_tell) and warnings.
    """
    questions = Questions.of(labelled)
    own = chunks or {}
    runs = dict(zip(names, (run_a, run_b), strict=True))
    whole = [Results.of(name, questions, run, chunks=own.get(name)) for name, run in runs.items()]
    a, b = whole if budget is None else (_within(results, budget) for results in whole)
    told = [words_served(labelled, {part.name: part.run}, ks=[k or _LAST], chunks=part.chunks)[0]["words"]
            if words else None for part in (a, b)]
    document = Paired.of(a, b, k).told(k, names=names, words=(told[0], told[1]), seed=seed,
                                       weighting=questions.weighting, label=labelled.label)
    return document if budget is None else {**document, "budget": budget, "warnings": []}


def _within(results: Results, budget: int) -> Results:
    """The same lists cut at so many words, once their ids are checked."""
    resolved = results.resolved
    cut = cut_by_words(results.questions.labelled, results.run, budget, chunks=results.chunks)
    return Results.of(results.name, results.questions, cut, chunks=results.chunks, resolved=resolved)


@dataclass(frozen=True)
class Paired:
    """What a comparison keeps of its questions: no more, so that they may come part by part.

    ``recalls`` hold draws x recall over draws of each question, in A and in B; ``change`` the same of the difference,
    by unit. ``excluded`` is reason -> count, ``outside`` counts the questions of each run that the set does not have.
    """

    n: int
    recalls: tuple[Units, Units]
    change: Units
    up: int
    down: int
    gained: int
    lost: int
    changed: list[dict[str, Any]]
    excluded: dict[str, int]
    outside: tuple[int, int]

    @classmethod
    def of(cls, a: Results, b: Results, k: int | None) -> Paired:
        """Both systems on the same questions."""
        outside = a.resolved.questions_outside, b.resolved.questions_outside  # ids that do not join are told first
        questions, cuts = a.questions, (Cut(a, k), Cut(b, k))
        unknown = cuts[0].unknown | cuts[1].unknown
        used = (questions.gold > 0) & ~unknown
        recall = [np.divide(cut.got, questions.gold, out=np.zeros(len(questions.ids)), where=questions.gold > 0)[used]
                  for cut in cuts]
        hits = [cut.got[used] > 0 for cut in cuts]
        draws = questions.draws[used]
        change = np.round(recall[1] - recall[0], 12)
        return cls(
            int(used.sum()), (Units.of(draws * recall[0], draws), Units.of(draws * recall[1], draws)),
            Units.of(*_by_unit(questions.cluster[used], draws * change, draws)),
            int((change > 0).sum()), int((change < 0).sum()),
            int((hits[1] & ~hits[0]).sum()), int((hits[0] & ~hits[1]).sum()),
            _changed(cuts, np.flatnonzero(used), change),
            {"not_labelled": int((~questions.is_labelled).sum()),
             "no_gold": int((questions.is_labelled & (questions.gold == 0)).sum()),
             "evidence_missing": int(((questions.gold > 0) & unknown).sum())},
            outside)

    def joined(self, other: Paired) -> Paired:
        """The questions of both, which share no unit."""
        return Paired(
            self.n + other.n,
            (self.recalls[0].joined(other.recalls[0]), self.recalls[1].joined(other.recalls[1])),
            self.change.joined(other.change), self.up + other.up, self.down + other.down, self.gained + other.gained,
            self.lost + other.lost, _largest([*self.changed, *other.changed]),
            {why: count + other.excluded[why] for why, count in self.excluded.items()},
            (self.outside[0] + other.outside[0], self.outside[1] + other.outside[1]))

    def told(self, k: int | None, *, names: tuple[str, str], words: tuple[float | None, float | None], seed: int,
             weighting: str, label: str) -> dict[str, Any]:
        """The document of ``compare``."""
        change, moved = self.change, self.up + self.down
        p, ends, difference = sign_flip(change, seed=seed), paired_ends(change, seed=seed), change.ratio
        sd = None if difference is None else change.deviation(difference)
        excluded = self.excluded | {"not_in_set": max(self.outside)}
        return {
            "measure": "recall", "k": k, "system_a": names[0], "system_b": names[1], "n": self.n,
            "units": change.count, "recall_a": self.recalls[0].ratio, "recall_b": self.recalls[1].ratio,
            "difference": difference, "low": ends.low if ends else None, "high": ends.high if ends else None,
            "method": "percentile bootstrap over clusters, 10000 draws", "p": p,
            "p_method": sign_flip_method(change), "discordant": moved, "up": self.up, "down": self.down, "sd": sd,
            "detectable": detectable(sd, change.count) if sd else None,
            "hit": {"gained": self.gained, "lost": self.lost, "p": mcnemar(self.gained, self.lost)},
            "words_a": words[0], "words_b": words[1], "changed": self.changed,
            "changed_left_out": moved - len(self.changed),
            "excluded": {why: count for why, count in excluded.items() if count},
            "verdict": verdict_of(moved, difference, p), "warnings": _warnings(list(words)), "weighting": weighting,
            "gold_version": label,
        }


def _changed(cuts: tuple[Cut, Cut], places: Ints, change: Floats) -> list[dict[str, Any]]:
    """The questions whose recall differs, see ``_largest``; with the rank of each gold in A and B."""
    questions = cuts[0].questions
    table = questions.labelled.questions
    texts = {} if table is None else dict(zip(table.column("question_id").to_pylist(), table.column("text").to_pylist(),
                                              strict=True))
    spans = questions.labelled.gold.column("span_id")
    rows = _largest([{"question_id": questions.ids[int(places[number])], "change": float(change[number]),
                      "place": int(places[number])} for number in np.flatnonzero(change)])
    confirmed = np.flatnonzero(questions.confirmed)
    by_owner = confirmed[np.argsort(questions.gold_owner[confirmed], kind="stable")]
    first = np.searchsorted(questions.gold_owner[by_owner], np.arange(len(questions.ids) + 1))
    for row in rows:
        place = row.pop("place")
        row["text"] = texts.get(row["question_id"])
        row["gold"] = [{"span_id": spans[int(gold)].as_py(), **{
            f"rank_{side}": None if cut.results.low[gold] == NEVER else int(cut.results.low[gold])
            for side, cut in zip("ab", cuts, strict=True)}} for gold in by_owner[first[place] : first[place + 1]]]
    return rows


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest changes first, equal ones by id; no more than MOST_CHANGED."""
    return sorted(rows, key=lambda row: (-abs(row["change"]), row["question_id"]))[:MOST_CHANGED]


def _by_unit(cluster: Any, num: Floats, den: Floats) -> tuple[Floats, Floats]:
    if not len(num):
        return num, den
    codes = np.unique(cluster, return_inverse=True)[1]
    return np.bincount(codes, num).astype(np.float64), np.bincount(codes, den).astype(np.float64)


def verdict_of(moved: int, difference: float | None, p: float | None) -> str:
    """The word for a difference that rests on ``moved`` questions which can tell."""
    if moved < ENOUGH_CHANGED or difference is None or p is None:
        return "too_few_to_tell"
    if p < ALPHA:
        return "better" if difference > 0 else "worse"
    return "no_difference_shown"


def _warnings(words: list[float | None]) -> list[str]:
    a, b = words
    if a and b and max(a, b) > _UNLIKE * min(a, b):
        return [f"the systems serve {a:.0f} and {b:.0f} words at this k; compare them at a budget of words "
                "(--budget)"]
    return []


def power(*, sd: float, n: int) -> dict[str, float | int]:
    """Standard deviation of the paired difference, questions -> what a comparison can see (METHODS 9).

    Returns:
        sd, n, detectable (difference seen with 80 % power), half_width (of its 95 % interval).
    """
    return {"sd": sd, "n": n, "detectable": detectable(sd, n), "half_width": half_width(sd, n)}
