"""Two systems on the same questions and gold: the paired difference, and whether the data can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Ints, Questions
from goldset.metrics.results import NEVER, Results
from goldset.metrics.words import words_served
from goldset.stats.compare import EXACT_UP_TO, detectable, half_width, mcnemar, paired_ends, sign_flip
from goldset.stats.intervals import Floats

ENOUGH_CHANGED = 20
"""Fewer questions whose recall differs than this decide nothing."""
ALPHA = 0.05
_UNLIKE = 1.25


def compare(labelled: LabelledSet, run_a: pa.Table, run_b: pa.Table, k: int, *, names: tuple[str, str] = ("A", "B"),
            seed: int = 0, words: bool = True, chunks: Mapping[str, pa.Table] | None = None) -> dict[str, Any]:
    """Labelled set, run A, run B, k -> the paired difference of recall@k, B minus A (METHODS 9).

    Over questions with confirmed gold whose recall is known in both. A question counts as often as it was drawn; the
    near-duplicate cluster is the unit of resampling and of the sign flips. ``words`` reads the texts, where there are
    any, to say how many words each system serves at this k. ``chunks`` (system -> table chunks) says what a system's
    chunk ids mean where they are of another chunking than the set's.

    Returns:
        JSON-able dict: systems, k, n, units, recall of each, difference, low and high (percentile bootstrap, 10,000
        seeded draws), p (sign flips, exact to 15 non-zero units), discordant, up, down, sd of the unit differences,
        detectable (smallest difference seen with 80 % power; null where
        all units are alike), hit (McNemar), words, changed (the questions that
        differ, largest change first, with the rank of each gold in both lists, null = not in it), excluded,
        verdict (better, worse: of B against A; no_difference_shown; too_few_to_tell) and warnings.
    """
    questions = Questions.of(labelled)
    own = chunks or {}
    cuts = [Cut(Results.of(name, questions, run, chunks=own.get(name)), k)
            for name, run in zip(names, (run_a, run_b), strict=True)]
    outside = [cut.results.resolved.questions_outside for cut in cuts]
    unknown = cuts[0].unknown | cuts[1].unknown
    used = (questions.gold > 0) & ~unknown
    recall = [np.divide(cut.got, questions.gold, out=np.zeros(len(questions.ids)), where=questions.gold > 0)[used]
              for cut in cuts]
    hits = [cut.got[used] > 0 for cut in cuts]
    draws = questions.draws[used]
    change = np.round(recall[1] - recall[0], 12)
    num, den = _by_unit(questions.cluster[used], draws * change, draws)
    moved = int((change != 0).sum())
    p = sign_flip(num, seed=seed)
    ends = paired_ends(num, den, seed=seed)
    units = len(num)
    total = float(den.sum())
    difference = float(num.sum()) / total if total else None
    # Deviations of the ratio, in units of a mean over units: with one draw a question this is the sd of d.
    sd = None
    if units > 1 and difference is not None:
        sd = float(np.std((num - difference * den) / den.mean(), ddof=1))
    b, c = int((hits[1] & ~hits[0]).sum()), int((hits[0] & ~hits[1]).sum())
    told = [words_served(labelled, {name: run}, ks=[k], chunks=own.get(name))[0]["words"] if words else None
            for name, run in zip(names, (run_a, run_b), strict=True)]
    return {
        "measure": "recall", "k": k, "system_a": names[0], "system_b": names[1], "n": int(used.sum()), "units": units,
        "recall_a": _mean(recall[0], draws), "recall_b": _mean(recall[1], draws), "difference": difference,
        "low": ends.low if ends else None, "high": ends.high if ends else None,
        "method": "percentile bootstrap over clusters, 10000 draws", "p": p,
        "p_method": "sign flips, exact" if int((num != 0).sum()) <= EXACT_UP_TO else "sign flips, 10000 draws",
        "discordant": moved, "up": int((change > 0).sum()), "down": int((change < 0).sum()), "sd": sd,
        "detectable": detectable(sd, units) if sd else None,
        "hit": {"gained": b, "lost": c, "p": mcnemar(b, c)}, "words_a": told[0], "words_b": told[1],
        "changed": _changed(cuts, np.flatnonzero(used), change),
        "excluded": {why: count for why, count in (
            ("not_labelled", int((~questions.is_labelled).sum())),
            ("no_gold", int((questions.is_labelled & (questions.gold == 0)).sum())),
            ("evidence_missing", int(((questions.gold > 0) & unknown).sum())),
            ("not_in_set", max(outside))) if count},
        "verdict": verdict_of(moved, difference, p), "warnings": _warnings(told),
        "weighting": questions.weighting, "gold_version": labelled.label,
    }


def _changed(cuts: list[Cut], places: Ints, change: Floats) -> list[dict[str, Any]]:
    """The questions whose recall differs: largest change first, then by id; with the rank of each gold in A and B."""
    questions = cuts[0].questions
    table = questions.labelled.questions
    texts = {} if table is None else dict(zip(table.column("question_id").to_pylist(), table.column("text").to_pylist(),
                                              strict=True))
    spans = questions.labelled.gold.column("span_id")
    rows = []
    for number in np.flatnonzero(change):
        place = int(places[number])
        gold = np.flatnonzero((questions.gold_owner == place) & questions.confirmed)
        ranks = [{"span_id": spans[int(row)].as_py(), **{
            f"rank_{side}": None if cut.results.low[row] == NEVER else int(cut.results.low[row])
            for side, cut in zip("ab", cuts, strict=True)}} for row in gold]
        identity = questions.ids[place]
        rows.append({"question_id": identity, "text": texts.get(identity), "change": float(change[number]),
                     "gold": ranks})
    return sorted(rows, key=lambda row: (-abs(row["change"]), row["question_id"]))


def _by_unit(cluster: Any, num: Floats, den: Floats) -> tuple[Floats, Floats]:
    if not len(num):
        return num, den
    codes = np.unique(cluster, return_inverse=True)[1]
    return np.bincount(codes, num).astype(np.float64), np.bincount(codes, den).astype(np.float64)


def _mean(values: Floats, weights: Floats) -> float | None:
    return float(np.average(values, weights=weights)) if len(values) else None


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
        return [f"the systems serve {a:.0f} and {b:.0f} words at this k; compare them at a budget of words"]
    return []


def power(*, sd: float, n: int) -> dict[str, float | int]:
    """Standard deviation of the paired difference, questions -> what a comparison can see (METHODS 9).

    Returns:
        sd, n, detectable (difference seen with 80 % power), half_width (of its 95 % interval).
    """
    return {"sd": sd, "n": n, "detectable": detectable(sd, n), "half_width": half_width(sd, n)}
