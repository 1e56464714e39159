"""The measures of one system at one cutoff: numerators and denominators over questions, turned into rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from goldset.arrays import distinct
from goldset.metrics.questions import Ints, Mask
from goldset.metrics.reach import Ceiling, ceiling, reordered
from goldset.metrics.results import NEVER, Results
from goldset.stats import recall as estimators
from goldset.stats.intervals import Estimate, Floats, Interval, clopper_pearson, clopper_upper, kish, ratio
from goldset.stats.recall import UNRELIABLE_BELOW, Finds, Parts

CLIPPED = "; clipped to [0, 1]"
_LAST = int(np.iinfo(np.int32).max)


class Cut:
    """One system's list cut at ``k`` (None = as long as it is): what each question got."""

    def __init__(self, results: Results, k: int | None) -> None:
        self.results = results
        self.questions = results.questions
        self.k = k
        self.at = _LAST if k is None else k

    def delivered(self, ranks: Ints, rows: Mask) -> Floats:
        """Number of the given gold rows that each question got, by these ranks."""
        owner = self.questions.gold_owner[rows & (ranks <= self.at)]
        return np.bincount(owner, minlength=len(self.questions.ids)).astype(np.float64)

    @cached_property
    def got(self) -> Floats:
        """Confirmed gold delivered, strict reading."""
        return self.delivered(self.results.low, self.questions.confirmed)

    @cached_property
    def got_lenient(self) -> Floats:
        """Confirmed gold delivered, lenient reading."""
        return self.delivered(self.results.high, self.questions.confirmed)

    @cached_property
    def unknown(self) -> Mask:
        """Questions in which the two readings of some gold of the pool differ at this cutoff."""
        return self.unsettled(~self.questions.deep)

    def unsettled(self, rows: Mask) -> Mask:
        """Questions in which the two readings of some of these gold rows differ at this cutoff."""
        differ = rows & ((self.results.low <= self.at) != (self.results.high <= self.at))
        mask: Mask = np.bincount(self.questions.gold_owner[differ], minlength=len(self.questions.ids)) > 0
        return mask

    @cached_property
    def ties(self) -> tuple[Floats, Floats, Mask] | None:
        """Confirmed gold delivered if equal scores at the cut fell against and for it; questions where it differs."""
        found = None if self.k is None else reordered(self.results, self.k)
        if found is None:
            return None
        worst, best = (Cut(replace(self.results, run=run, uncut=None), self.k).got for run in (found.worst, found.best))
        low, high = (np.where(found.tied, end(got, self.got), self.got)
                     for end, got in ((np.minimum, worst), (np.maximum, best)))
        return low, high, low < high

    @cached_property
    def ceiling(self) -> Ceiling:
        """What a perfect order of what resolves could reach."""
        return ceiling(self.results)

    @cached_property
    def finds(self) -> Finds:
        """Gold from the sample of rejections."""
        return self._finds(self.questions.sampled)

    @cached_property
    def deep_finds(self) -> Finds:
        """Gold from the deep probe."""
        return self._finds(self.questions.deep)

    def _finds(self, rows: Mask) -> Finds:
        return Finds(self.questions.gold_owner[rows], self.questions.gold_weight[rows],
                     (self.results.low[rows] <= self.at).astype(np.float64))

    @cached_property
    def first_rank(self) -> Ints:
        """Smallest rank that delivers a confirmed gold."""
        first = np.full(len(self.questions.ids), NEVER)
        rows = self.questions.confirmed
        np.minimum.at(first, self.questions.gold_owner[rows], self.results.low[rows])
        return first

    def ndcg(self) -> Floats:
        """DCG over ideal DCG of each question."""
        questions = self.questions
        graded = self.results.graded
        if graded is not None:
            owner, rank, gain = graded
        else:
            # A rank that completes several golds gains once, so that the value stays within 1.
            rows = questions.confirmed & (self.results.low <= self.at)
            width = int(questions.gold_owner.max(initial=0)) + 1
            pairs = distinct(self.results.low[rows] * width + questions.gold_owner[rows])
            owner, rank, gain = pairs % width, pairs // width, np.ones(len(pairs))
        seen = rank <= self.at
        count = len(questions.ids)
        reached = np.bincount(owner[seen], gain[seen] / np.log2(1.0 + rank[seen]), count)
        if graded is None:
            owner = np.repeat(np.arange(count), questions.gold.astype(np.int64))
            gain = np.ones(len(owner))
        order = np.lexsort((-gain, owner))
        owner, gain = owner[order], gain[order]
        first = np.searchsorted(owner, np.arange(count))
        place = np.arange(len(owner)) - first[owner] + 1
        kept = place <= self.at
        ideal = np.bincount(owner[kept], gain[kept] / np.log2(1.0 + place[kept]), count)
        result: Floats = np.divide(reached, ideal, out=np.zeros(count), where=ideal > 0)
        return result


def measure_cut(cut: Cut, mask: Mask) -> Iterator[dict[str, Any]]:
    """Every measure over the questions in ``mask``: a row of measurements each, and the estimate behind it."""
    results, questions = cut.results, cut.questions
    unsettled = "evidence_missing" if bool((cut.unknown & mask).any()) else None
    gold, got = questions.gold, cut.got
    plain = estimators.macro_naive(got, gold)
    scored = Slice(cut, mask, mask & (gold > 0))
    yield scored.row("recall", plain, reason=unsettled, no_parts="no_gold")
    if questions.traffic is not None:
        yield _traffic(scored, plain, questions.traffic, unsettled)
    if results.two_readings:
        yield scored.row("recall_low", plain, no_parts="no_gold")
        yield scored.row("recall_high", estimators.macro_naive(cut.got_lenient, gold), no_parts="no_gold")
    yield from _reach(scored, plain)
    weighted = Slice(cut, mask, mask & (gold + questions.found > 0))
    finds = cut.finds
    micro = estimators.micro_ht(got, gold, finds)
    yield weighted.row("recall_micro", micro, reason=unsettled, no_parts="no_gold", unseen="micro")
    yield scored.row("recall_micro_naive", estimators.micro_naive(got, gold), reason=unsettled, no_parts="no_gold")
    yield weighted.row("recall_macro_ht", estimators.macro_ht(got, gold, finds), no_parts="no_gold", unseen="macro",
                       reason=unsettled or _macro_reason(cut))
    yield _deep(cut, mask)
    labelled = Slice(cut, mask, mask & questions.is_labelled)
    yield labelled.row("recall_floor", Parts(plain.num, questions.is_labelled.astype(np.float64)), reason=unsettled,
                       no_parts="no_labelled_question")
    capped = np.minimum(gold, cut.at)
    attained = np.divide(np.minimum(got, capped), capped, out=np.zeros(len(gold)), where=capped > 0)
    yield scored.row("recall_capped", Parts(attained, plain.den), reason=unsettled, no_parts="no_gold")
    if (facets := _facets(cut)) is not None:
        yield scored.row("facet_recall", facets, reason=unsettled, no_parts="no_gold")
    yield scored.row("hit", Parts((got > 0).astype(np.float64), plain.den), reason=unsettled, no_parts="no_gold")
    yield _unjudged(cut, mask)
    first = cut.first_rank
    reciprocal = np.where(first <= cut.at, 1.0 / np.minimum(first, _LAST), 0.0)
    yield scored.row("mrr", Parts(reciprocal, plain.den), reason=unsettled, no_parts="no_gold")
    gain = np.where(gold > 0, cut.ndcg(), 0.0)
    yield scored.row("ndcg", Parts(gain, plain.den), reason=unsettled, no_parts="no_gold")
    yield _answerable(cut, mask)


def _reach(scored: Slice, plain: Parts) -> Iterator[dict[str, Any]]:
    """Recall if equal scores at the cut fell the other way, and what it cannot exceed; only where it matters."""
    cut, used = scored.cut, scored.used
    if cut.ties is not None and (tied := int((cut.ties[2] & used).sum())):
        for name, got in zip(("recall_ties_low", "recall_ties_high"), cut.ties[:2], strict=True):
            row = scored.row(name, estimators.macro_naive(got, cut.questions.gold), no_parts="no_gold")
            _add(row, "counted_tied", tied)
            yield row
    most = cut.ceiling
    if bool((used & (most.share < 1)).any()):
        row = scored.row("recall_ceiling", Parts(most.share, plain.den), no_parts="no_gold")
        row["k"] = None
        if outside := int((used & most.outside).sum()):
            _add(row, "counted_gold_outside", outside)
        yield row


def _add(row: dict[str, Any], reason: str, count: int) -> None:
    row["excluded"] = sorted([*row["excluded"], {"reason": reason, "count": count}], key=lambda item: item["reason"])


class Slice:
    """Questions that one measure rests on (``used``) among those of a slice (``mask``)."""

    def __init__(self, cut: Cut, mask: Mask, used: Mask) -> None:
        self.cut, self.mask, self.used = cut, mask, used

    def estimate(self, parts: Parts, *, extra: float = 0.0) -> Estimate:
        """The value and its interval over the slice."""
        questions, used = self.cut.questions, self.used
        return ratio(parts.num[used], parts.den[used], weight=questions.draws[used], cluster=questions.cluster[used],
                     extra_variance=extra)

    def row(self, measure: str, parts: Parts, *, no_parts: str, reason: str | None = None,
            unseen: str | None = None) -> dict[str, Any]:
        """One measurement; ``no_parts`` is the reason where no question has a denominator."""
        found = self.estimate(parts)
        if unseen and found.value is not None:
            found = self.estimate(parts, extra=self.unseen(parts, found.value, micro=unseen == "micro"))
        if found.value is None:
            reason = no_parts
        excluded = self.excluded()
        if measure == "recall":
            excluded["counted_more_gold_than_k"] = int((self.used & (self.cut.questions.gold > self.cut.at)).sum())
        return measurement(measure, self.cut.k, found, reason=reason, n=int(self.used.sum()), excluded=excluded)

    def unseen(self, parts: Parts, theta: float, *, micro: bool) -> float:
        """Variance of missed gold that the sample did not show; only where it showed none at all."""
        questions = self.cut.questions
        rejections, sampled = questions.sample
        if len(self.cut.finds.weight) or sampled >= rejections:
            return 0.0
        mask = self.mask & questions.is_labelled
        return estimators.unseen_variance(
            self.cut.got[mask], questions.gold[mask], parts.den[mask] * questions.draws[mask], theta=theta,
            rejections=rejections, sampled=sampled, read_in_full=questions.in_full[mask], micro=micro)

    def excluded(self) -> dict[str, int]:
        """Reason -> questions left out, and what is in the value though it could be overlooked."""
        questions, results = self.cut.questions, self.cut.results
        out, used = self.mask & ~self.used, self.used
        labelled = out & questions.is_labelled
        sampled = labelled & (questions.gold == 0) & (questions.found > 0)
        without = used & (results.length == 0)
        return {
            "not_labelled": int((out & ~questions.is_labelled).sum()),
            "only_sampled_gold": int(sampled.sum()),
            "no_gold": int((labelled & ~sampled).sum()),
            "not_in_set": results.resolved.questions_outside,
            "counted_missing": int((without & ~results.is_empty).sum()),
            "counted_empty": int((without & results.is_empty).sum()),
        }


def measurement(measure: str, k: int | None, found: Estimate, *, reason: str | None, n: int, excluded: dict[str, int],
                interval: Interval | None = None, method: str | None = None) -> dict[str, Any]:
    """A row of measurements, and the estimate behind it."""
    known = reason is None and found.value is not None
    ends = (interval or found.interval) if known else None
    how = method or (found.method + (CLIPPED if found.clipped else ""))
    return {
        "measure": measure, "k": k, "n": n,
        "value": found.value if known else None, "reason": None if known else reason,
        "excluded": [{"reason": why, "count": count} for why, count in sorted(excluded.items()) if count],
        "low": ends.low if ends else None, "high": ends.high if ends else None, "method": how if known else None,
        "estimate": found,
    }


def _macro_reason(cut: Cut) -> str | None:
    questions = cut.questions
    if questions.labelled.kind != "published" and not len(cut.finds.weight):
        return "no_rejection_sample"
    complete = estimators.completeness(questions.gold, cut.finds)
    return "macro_unreliable" if complete is not None and complete < UNRELIABLE_BELOW else None


def _deep(cut: Cut, mask: Mask) -> dict[str, Any]:
    """recall_micro with the finds of the deep probe; null where none was made, or where people have not read it."""
    questions = cut.questions
    told = questions.deep_probe
    strata = [] if told is None else told["strata"]
    if told is None or any(row["weight"] is None for row in strata):
        return measurement("recall_deep", cut.k, Estimate(None, None, "none", 0), n=0, excluded={},
                            reason="no_deep_probe" if told is None else "deep_probe_unread")
    parts = estimators.micro_ht(cut.got, questions.gold, cut.finds + cut.deep_finds)
    part = Slice(cut, mask, mask & (parts.den > 0))
    found = part.estimate(parts)
    if found.value is not None:
        labelled = mask & questions.is_labelled
        extra = part.unseen(parts, found.value, micro=True)
        below = estimators.unseen_below_variance(
            questions.draws[labelled], (parts.den * questions.draws)[labelled], theta=found.value,
            **{name: np.array([row[name] for row in strata], np.float64) for name in ("read", "found", "weight")})
        # What the probe did not show can only lower recall.
        found = estimators.one_sided(part.estimate(parts, extra=extra), part.estimate(parts, extra=extra + below))
    reason = "evidence_missing" if bool((cut.unsettled(np.ones(len(questions.deep), np.bool_)) & mask).any()) else None
    return measurement("recall_deep", cut.k, found, n=int(part.used.sum()), excluded=part.excluded(),
                        reason=reason if found.value is not None else "no_gold")


def _traffic(scored: Slice, plain: Parts, traffic: Floats, unsettled: str | None) -> dict[str, Any]:
    """Recall with each distinct question weighing as often as it was asked; null where few questions carry the weight.

    Hájek's ratio sum f r / sum f (METHODS 3.4). The clusters' weights make Kish's effective size; it also replaces
    their number where the interval is the exact one, since a hundred questions asked once hide behind one asked often.
    """
    questions, used = scored.cut.questions, scored.used
    weight = traffic[used]
    found = ratio(plain.num[used], plain.den[used], weight=weight, cluster=questions.cluster[used])
    size = kish(np.bincount(questions.cluster[used], weight).astype(np.float64)) if weight.any() else 0.0
    reason = "no_gold" if not used.any() else unsettled or (
        "traffic_on_few_questions" if size < estimators.TRAFFIC_LEAST else None)
    exact = None
    if reason is None and found.value is not None and found.n_eff is None:
        units = int(size)
        exact = clopper_pearson(round(found.value * units), units)
    row = measurement("recall_traffic", scored.cut.k, found, n=int(used.sum()), reason=reason, interval=exact,
                      method=f"{found.method}, Kish n_eff {size:.1f}", excluded=scored.excluded())
    return {**row, "weighting": "traffic"}


def _facets(cut: Cut) -> Parts | None:
    """Facets delivered and facets of each question; a gold without a facet is its own. None where there are none."""
    questions = cut.questions
    names = questions.labelled.gold.column("facet")
    if names.null_count == len(names):
        return None
    rows = np.flatnonzero(questions.confirmed)
    facet = [name if name is not None else row for row, name in enumerate(names.to_pylist())]
    hit = cut.results.low <= cut.at
    got: dict[tuple[int, Any], bool] = {}
    for row in rows:
        key = (int(questions.gold_owner[row]), facet[row])
        got[key] = got.get(key, False) or bool(hit[row])
    count = len(questions.ids)
    owner = np.array([key[0] for key in got], np.int64)
    total = np.bincount(owner, minlength=count)
    reached = np.bincount(owner, np.array(list(got.values()), np.float64), count)
    share: Floats = np.divide(reached, total, out=np.zeros(count), where=total > 0)
    return Parts(share, (questions.gold > 0).astype(np.float64))


def _unjudged(cut: Cut, mask: Mask) -> dict[str, Any]:
    results, questions = cut.results, cut.questions
    counts = results.unjudged(cut.at)
    if counts is None:
        none = Estimate(None, None, "none", 0)
        return measurement("unjudged", cut.k, none, reason="texts_missing", n=0, excluded={})
    unjudged, slots, unknown = counts
    used = mask & (slots > 0) & questions.is_labelled
    share = np.divide(unjudged, slots, out=np.zeros(len(slots)), where=slots > 0)
    found = Slice(cut, mask, used).estimate(Parts(share, (slots > 0).astype(np.float64)))
    excluded = {"no_results": int((mask & (slots == 0) & questions.is_labelled).sum()),
                "not_labelled": int((mask & ~questions.is_labelled).sum()),
                "counted_unknown_chunk": int((used & (unknown > 0)).sum())}
    reason = None if found.value is not None else "no_results"
    return measurement("unjudged", cut.k, found, reason=reason, n=int(used.sum()), excluded=excluded)


def none_answerable(found: Estimate) -> tuple[Interval | None, str | None]:
    """Interval and method where no question at all has an answer; (None, None) else."""
    if found.value == 0 and (upper := clopper_upper(0, found.units)) is not None:
        return Interval(0.0, upper), "clopper_pearson, one-sided"
    return None, None


def _answerable(cut: Cut, mask: Mask) -> dict[str, Any]:
    """Share of labelled questions with gold, weighted finds of questions without confirmed gold included."""
    questions = cut.questions
    used = mask & questions.is_labelled
    den = estimators.macro_ht(cut.got, questions.gold, cut.finds).den
    found = Slice(cut, mask, used).estimate(Parts(den, np.ones(len(den))))
    interval, method = none_answerable(found)
    if found.clipped and found.interval is not None:
        # Questions with gold that was read with certainty are answerable, whatever the finds stand for.
        least = Slice(cut, mask, used).estimate(Parts((questions.gold > 0).astype(np.float64), np.ones(len(den))))
        if least.interval is not None:
            interval = Interval(max(found.interval.low, least.interval.low), found.interval.high)
    reason = None if found.value is not None else "no_labelled_question"
    return measurement("answerable", None, found, reason=reason, n=int(used.sum()), interval=interval, method=method,
                        excluded={"not_labelled": int((mask & ~questions.is_labelled).sum())})
