"""Circularity: did the audited system choose its own truth? Always relative to one system (METHODS 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from goldset.audit.context import Context, percent
from goldset.audit.neartwins import near_twins_outside
from goldset.audit.verdicts import LIMITS, finding
from goldset.stats.compare import mcnemar
from goldset.stats.intervals import clopper_lower, clopper_pearson, clopper_upper
from goldset.stats.pooling import CLIFF_RANKS, cliff_p


@dataclass(frozen=True)
class Cliff:
    """Questions with gold just before and just after a cut of the ranking."""

    cut: int
    before: int
    after: int

    def p(self, ratio: float) -> float:
        """How rare so few are after the cut, uncorrected."""
        return cliff_p(self.before, self.after, ratio)

    def convicts(self, ratio: float) -> bool:
        """Whether the drop is too steep at ``ratio`` after Bonferroni over all cuts, tested or not."""
        return len(CLIFF_RANKS) * self.p(ratio) < LIMITS.alpha

    @property
    def ratio(self) -> tuple[float, float]:
        """Exact 95 % interval of after / before."""
        low, high = clopper_pearson(self.after, self.before + self.after) or (0.0, 1.0)
        return low / (1 - low), float("inf") if high >= 1 else high / (1 - high)


def steepest_cliff(ranks: pd.DataFrame, lengths: dict[str, int], cuts: Sequence[int] = CLIFF_RANKS) -> Cliff | None:
    """Columns question_id, lenient (rank of each gold) -> the cut with the steepest drop; None if none can be seen.

    b counts questions with gold at ranks (K/2, K], c those with gold at (K, 2K]; only questions whose list reaches 2K
    take part, since elsewhere nothing could be seen after the cut.
    """
    reach = ranks["question_id"].map(lengths).fillna(0)
    found = []
    for cut in cuts:
        table = ranks[reach >= 2 * cut]
        before, after = ((table["lenient"] > low) & (table["lenient"] <= high)
                         for low, high in ((cut / 2, cut), (cut, 2 * cut)))
        counts = [int(table.loc[inside, "question_id"].nunique()) for inside in (before, after)]
        if sum(counts):
            found.append(Cliff(cut, *counts))
    return min(found, key=lambda cliff: (cliff.p(LIMITS.cliff_convicts), cliff.cut), default=None)


def asymmetry_p(b: int, c: int) -> float:
    """Exact McNemar p of b against c discordant questions; 1 where none is: no sign of a side."""
    p = mcnemar(b, c)
    return 1.0 if p is None else p


@dataclass(frozen=True)
class Probed:
    """What people found among the unlabelled results of a probe, outside and inside the audited system's cut."""

    outside: int
    found_outside: int
    inside: int
    found_inside: int

    @property
    def low(self) -> float:
        """One-sided 95 % lower bound of the share of relevant ones outside the cut (Clopper and Pearson)."""
        return clopper_lower(self.found_outside, self.outside) or 0.0

    @property
    def missed(self) -> bool:
        """Whether relevant passages outside the cut are unlabelled, beyond what readers miss."""
        return self.low > LIMITS.probe_rate

    @property
    def one_sided(self) -> bool:
        """Whether they are, and more often than inside the cut, as where labels were looked for inside only."""
        return self.missed and self.found_outside * self.inside >= self.found_inside * self.outside


@dataclass(frozen=True)
class Evidence:
    """What decides the word for one system."""

    questions: int
    low: float
    upper: float  # one-sided bound where nothing is outside
    cliff: Cliff | None
    control: tuple[int, int] | None  # questions where only R, only the control has gold within the cut
    shallow: bool = False
    known: Cliff | None = None  # at a k that production or the headline uses, named before looking
    probed: Probed | None = None  # where people have answered a probe

    @property
    def known_drop(self) -> bool:
        """Whether the drop at a k that was known in advance is too steep; one test, so without Bonferroni."""
        return self.known is not None and self.known.p(LIMITS.cliff_convicts) < LIMITS.alpha


def circularity_word(evidence: Evidence) -> str:
    """Evidence -> the word of the table in METHODS 5.

    The cliff at ratio .25 convicts alone. ``circular`` needs next to nothing outside, and either the same drop at a k
    that was known in advance with the control asymmetry, or a probe that found relevant passages outside the cut which
    nobody labelled, more of them than inside. The drop at ratio .5 with the asymmetry is not enough: a strong system
    with complete labels and a weaker control shows both (convicted in half the seeds of the proof). A probe that finds
    as much inside the cut shows a set that is incomplete everywhere, as one gold a question is: no choice of R's.
    """
    if evidence.questions < LIMITS.circularity_n:
        return "too_few"
    if evidence.cliff and evidence.cliff.convicts(LIMITS.cliff_convicts):
        return "truncated"
    drop = evidence.cliff is not None and evidence.cliff.convicts(LIMITS.cliff_suspects)
    only_r, only_control = evidence.control or (0, 0)
    one_sided = only_r > only_control and asymmetry_p(only_r, only_control) < LIMITS.alpha
    little = evidence.upper < LIMITS.outside and not evidence.shallow
    probed = evidence.probed
    if little and ((evidence.known_drop and one_sided) or (probed and probed.one_sided)):
        return "circular"
    if drop or (little and (one_sided or (probed and probed.missed))):
        return "suspected"
    if little:
        return "low"
    if evidence.shallow:
        return "too_shallow"
    return "healthy" if evidence.low >= LIMITS.outside else "inconclusive"


class Circularity:
    """Gold outside the top 50, the octave cliff, a control system, and the gold without each family."""

    name = "circularity"

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> findings: a word for each system, then what was shown beside it."""
        if not context.runs:
            return [finding(self.name, "all", "no_run", n=0,
                            message="There is neither a run nor a corpus with question texts, so it cannot be seen "
                                    "whose results the gold repeats.")]
        rows = []
        for system in context.runs:
            rows += self._system(context, system)
        return rows + _family_out(context)

    def _system(self, context: Context, system: str) -> list[dict[str, Any]]:
        frame = context.delivered(system)
        lengths = context.lengths(system)
        table = frame[frame["question_id"].isin(list(lengths))]
        questions = int(table["question_id"].nunique())
        depth = min(LIMITS.depth, context.depth(system))
        by_question = table.assign(outside=table["lenient"] > depth).groupby("question_id")["outside"]
        outside, count = by_question.sum(), by_question.size()
        total, gold = int(outside.sum()), int(count.sum())
        head = f"{total} of {gold} gold spans outside {system} top {depth}"
        if not gold:
            return [finding(self.name, system, "too_few", n=0, threshold=LIMITS.outside,
                            message=f"{system} answers no question that has gold, so nothing is known relative to it.")]
        if total:
            low, upper = context.ratio(outside, count).interval or (0.0, 1.0)
            head += f" ({questions} questions: 95 % interval {100 * low:.1f} to {percent(upper)})"
        else:
            low, upper = 0.0, clopper_upper(0, questions) or 1.0
            head += f" ({questions} questions: one-sided 95 % upper bound {percent(upper)})"
        cliff = steepest_cliff(table, lengths)
        cut = cliff.cut if cliff and cliff.convicts(LIMITS.cliff_suspects) else min(10, depth)
        control = _control(context, system, cut)
        # One k named in advance: the quoted one, at which a set is most often built, else the served one.
        named = next((k for k in (context.quoted_k, *context.known_ks) if k), None)
        evidence = Evidence(questions, low, upper, cliff, control[1:] if control else None,
                            context.depth(system) < LIMITS.depth,
                            steepest_cliff(table, lengths, (named,)) if named else None,
                            _probed(context, system, cut))
        word = circularity_word(evidence)
        rows = [finding(self.name, system, word, n=questions, measured=total / gold, interval=(low, upper),
                        threshold=LIMITS.outside, message=_sentence(word, head, system, evidence, cut))]
        if control:
            name, only_r, only_control = control
            rows.append(finding(
                self.name, system, "asymmetry", n=only_r + only_control, measured=only_r - only_control,
                message=f"First gold within the top {cut} of {system} but not of {name} in {only_r} questions, the "
                        f"reverse in {only_control} (exact McNemar p {asymmetry_p(only_r, only_control):.3f}); a much "
                        "better system shows the same."))
        rows += near_twins_outside(context, system, table[table["lenient"] > depth], gold, depth)
        if evidence.probed and evidence.probed.outside:
            probed = evidence.probed
            rows.append(finding(
                self.name, system, "probed", n=probed.outside, measured=probed.found_outside / probed.outside,
                threshold=LIMITS.probe_rate, interval=(probed.low, None),
                message=_said(probed, system, cut)[0].upper() + _said(probed, system, cut)[1:] + "."))
        return rows + _unjudged(context, system)


def _sentence(word: str, head: str, system: str, evidence: Evidence, cut: int) -> str:
    cliff = evidence.known if word == "circular" else evidence.cliff
    probed = _said(evidence.probed, system, cut) if evidence.probed else ""
    drop = ""
    if cliff:
        after, before = 2 * cliff.cut, cliff.cut
        high = cliff.ratio[1]
        upper = "without upper bound" if high == float("inf") else f"at most {high:.2f}"
        drop = (f"gold at ranks {before // 2 + 1}-{before} in {cliff.before} questions, at ranks {before + 1}-{after} "
                f"in {cliff.after} (ratio {upper} with 95 % confidence, Bonferroni p "
                f"{min(1.0, len(CLIFF_RANKS) * cliff.p(LIMITS.cliff_convicts)):.2g})")
    closing = {
        "truncated": f"the gold stops at rank {cliff.cut if cliff else 0} of {system}: {drop}",
        "circular": (f"{drop}, and an unrelated system disagrees one way: {system} chose this gold"
                     if not (evidence.probed and evidence.probed.one_sided) else f"{probed}: {system} chose this gold"),
        "suspected": f"relative to {system} the set looks made from its own results, short of proof"
                     + (f": {drop}" if drop else f": {probed}" if evidence.probed and evidence.probed.missed else ""),
        "low": f"either {system} is strong or the gold was taken from its results; no cliff was found, "
               "so nothing is proved",
        "healthy": f"{system} alone did not choose this gold",
        "inconclusive": f"too few to tell whether {system} chose this gold; no cliff was found",
        "too_few": f"fewer than {LIMITS.circularity_n} questions say nothing about {system}",
        "too_shallow": f"the run of {system} ends before rank {LIMITS.depth}, so gold beyond it cannot be told from "
                       "gold it would have returned",
    }[word]
    return f"{head}; {closing}."


def _said(probed: Probed, system: str, cut: int) -> str:
    inside = f", {probed.found_inside} of {probed.inside} inside it" if probed.inside else ""
    return (f"of the unlabelled results that were probed, {probed.found_outside} of {probed.outside} outside "
            f"{system}'s top {cut} answer after all (at least {percent(probed.low)}){inside}")


def _probed(context: Context, system: str, cut: int) -> Probed | None:
    """The probe's answers, split at the system's cut; a judge's rejections that nobody read count as not found."""
    probe = context.probe
    if probe is None or probe.open or not probe.drawn:
        return None
    head = context.head(system, cut)
    counts = {True: [0, 0], False: [0, 0]}
    for row in probe.drawn:
        answer = probe.answers.get(row.pair) if row.asked else False
        if answer is not None:
            side = counts[row.pair in head]
            side[0] += 1
            side[1] += answer
    return Probed(*counts[False], *counts[True])


def _control(context: Context, system: str, cut: int) -> tuple[str, int, int] | None:
    """The most one-sided system of an unrelated family: (name, questions only R, questions only the control)."""
    best: tuple[float, str, int, int] | None = None
    mine = context.delivered(system).groupby("question_id")["lenient"].min()
    for other in context.runs:
        if other == system or context.family(other) & context.family(system) or context.depth(other) < cut:
            continue
        theirs = context.delivered(other).groupby("question_id")["lenient"].min()
        both = [q for q in mine.index if q in context.lengths(system) and q in context.lengths(other)]
        first, second = mine.loc[both] <= cut, theirs.loc[both] <= cut
        only_r, only_control = int((first & ~second).sum()), int((second & ~first).sum())
        key = (asymmetry_p(only_r, only_control) if only_r >= only_control else 1.0, other, only_r, only_control)
        best = key if best is None else min(best, key)
    return best[1:] if best else None


def _unjudged(context: Context, system: str) -> list[dict[str, Any]]:
    """Share of the results at the served k (else 10) that nobody judged."""
    k = min(context.serving() or 10, context.depth(system))
    found = context.unjudged(system, k)
    if found is None:
        return []
    holes, results, estimate = found
    return [finding("circularity", system, "unjudged", n=estimate.units, measured=estimate.value,
                    interval=estimate.interval or (None, None),
                    message=f"{holes} of {results} results in {system}'s top {k} were never judged "
                            f"({percent(holes / results)}); an unjudged result is not a wrong one.")]


def _family_out(context: Context) -> list[dict[str, Any]]:
    """Recall and ranking of the systems on the gold without what only one family found."""
    families = sorted(frozenset().union(*(context.family(system) for system in context.runs)))
    if len(families) < 2:
        return []
    depth = LIMITS.depth
    k = min(context.serving() or 10, depth)
    ranks = pd.concat([context.delivered(system).assign(system=system) for system in context.runs])
    full = _recalls(ranks, k)
    rows = []
    for family in families:
        mine = [system for system in context.runs if family in context.family(system)]
        inside = ranks[ranks["lenient"] <= depth]
        own = set(_pairs(inside[inside["system"].isin(mine)])) - set(_pairs(inside[~inside["system"].isin(mine)]))
        pairs = pd.Series(_pairs(ranks), index=ranks.index)
        kept = _recalls(ranks[~pairs.isin(list(own)).to_numpy()], k)
        places = [scores.rank(ascending=False, method="min") for scores in (full, kept.reindex(full.index))]
        moved = places[0] - places[1]
        best = max(mine, key=lambda system: (full[system], system))
        after = f"{kept[best]:.3f}" if best in kept else "nothing"
        shift = (kept[best] - full[best]) if best in kept else None
        rows.append(finding(
            "circularity", f"family {family}", "family_out", n=len(own), measured=shift,
            message=f"Without the {len(own)} of {len(ranks) // len(context.runs)} gold spans that only {family} has "
                    f"in its top {depth}, recall@{k} of {best} goes from {full[best]:.3f} to {after}; Kendall tau of "
                    f"the ranking of {len(full)} systems {_tau(full, kept)}, largest change of rank "
                    f"{int(moved.abs().max(skipna=True)) if moved.notna().any() else 0}."))
    return rows


def _pairs(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame["question_id"], frame["span_id"], strict=True))


def _recalls(ranks: pd.DataFrame, k: int) -> pd.Series[float]:
    """System -> mean over questions of the share of gold within k (strict reading)."""
    hits = ranks.assign(hit=ranks["strict"] <= k)
    return hits.groupby(["system", "question_id"])["hit"].mean().groupby(level="system").mean()


def _tau(full: pd.Series[float], kept: pd.Series[float]) -> str:
    """Kendall tau-a of two score lists over the same systems, for a sentence."""
    names = [name for name in full.index if name in kept.index]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    if not pairs:
        return "not defined"
    agreed = sum(float(np.sign(full[a] - full[b]) * np.sign(kept[a] - kept[b])) for a, b in pairs)
    return f"{agreed / len(pairs):.2f}"
