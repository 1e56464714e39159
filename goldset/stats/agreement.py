"""Agreement of a judge with people, and of two people: in the sample, and weighted back to the population.

Counts are always (a, b, c, d) = (pass pass, pass fail, fail pass, fail fail), the judge or the first rater first.
Undefined values are None, never 0.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from goldset.stats.intervals import LEVEL, Floats, Interval, mover, wilson

DRAWS = 20_000


class Counts(NamedTuple):
    """Cells of a two-by-two table: judge pass and human pass, pass and fail, fail and pass, fail and fail."""

    tp: int
    fp: int
    fn: int
    tn: int


@dataclass(frozen=True)
class Agreement:
    """Numbers of one table, in the sample or weighted.

    ``false_alarm``: judge fails among human passes; ``miss``: judge passes among human fails; ``ppv``: human passes
    among judge passes; ``for_rate``: human passes among judge fails (false omission); ``positive_agreement``:
    2a / (2a + b + c); ``bias``: judge's rate minus true rate, negative where the judge is too strict.
    """

    agreement: float | None
    p_e: float | None
    kappa: float | None
    sensitivity: float | None
    specificity: float | None
    false_alarm: float | None
    miss: float | None
    ppv: float | None
    npv: float | None
    for_rate: float | None
    pass_rate: float | None
    bias: float | None
    ac1: float | None
    positive_agreement: float | None

    def as_dict(self) -> dict[str, float | None]:
        """Name -> value."""
        return asdict(self)


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def agreement(tp: float, fp: float, fn: float, tn: float) -> Agreement:
    """Numbers of a table of counts or of shares. Source: Cohen (1960), Gwet (2008), METHODS 1 and 10."""
    total = tp + fp + fn + tn
    agree = _over(tp + tn, total)
    p_e = kappa = ac1 = None
    if agree is not None:
        first, second = (tp + fp) / total, (tp + fn) / total
        p_e = first * second + (1 - first) * (1 - second)
        kappa = (agree - p_e) / (1 - p_e) if 1 - p_e > 1e-12 else None
        mean = (first + second) / 2
        chance = 2 * mean * (1 - mean)
        ac1 = (agree - chance) / (1 - chance)
    sensitivity, specificity = _over(tp, tp + fn), _over(tn, tn + fp)
    npv = _over(tn, fn + tn)
    return Agreement(
        agreement=agree, p_e=p_e, kappa=kappa, sensitivity=sensitivity, specificity=specificity,
        false_alarm=_over(fn, tp + fn), miss=_over(fp, tn + fp), ppv=_over(tp, tp + fp), npv=npv,
        for_rate=_over(fn, fn + tn), pass_rate=_over(tp + fn, total), bias=_over(fp - fn, total), ac1=ac1,
        positive_agreement=_over(2 * tp, 2 * tp + fp + fn),
    )


def weighted(counts: Counts, pass_share: float) -> Agreement | None:
    """A verdict-stratified sample weighted back to a population whose judge-pass share is ``pass_share``.

    Cell weights Q/n1 for judge passes, (1-Q)/n0 for judge fails. None where a stratum that the population has was
    not sampled.
    """
    passed, failed = counts.tp + counts.fp, counts.fn + counts.tn
    if (passed == 0 and pass_share > 0) or (failed == 0 and pass_share < 1):
        return None
    up = pass_share / passed if passed else 0.0
    down = (1 - pass_share) / failed if failed else 0.0
    return agreement(up * counts.tp, up * counts.fp, down * counts.fn, down * counts.tn)


def pass_rate_se(counts: Counts, pass_share: float, judged: int | None = None) -> float | None:
    """Standard error of the weighted true pass rate; ``judged``: items behind the pass share, None = the whole run."""
    passed, failed = counts.tp + counts.fp, counts.fn + counts.tn
    if passed == 0 or failed == 0:
        return None
    ppv, omission = counts.tp / passed, counts.fn / failed
    variance = (pass_share**2 * ppv * (1 - ppv) / passed
                + (1 - pass_share) ** 2 * omission * (1 - omission) / failed)
    if judged:
        variance += (ppv - omission) ** 2 * pass_share * (1 - pass_share) / judged
    return math.sqrt(variance)


def pass_rate_mover(counts: Counts, pass_share: float) -> Interval | None:
    """Closed-form interval of the weighted true pass rate: MOVER with Wilson per verdict (METHODS 1)."""
    passed, failed = counts.tp + counts.fp, counts.fn + counts.tn
    if passed == 0 or failed == 0:
        return None
    return mover(np.array([counts.tp / passed, counts.fn / failed]), np.array([pass_share, 1 - pass_share]),
                 np.array([float(passed), float(failed)]))


def weighted_intervals(counts: Counts, pass_share: float, *, judged: int | None = None, design_effect: float = 1.0,
                       seed: int = 0, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """Name of each weighted number -> its interval, all from one seeded Jeffreys Monte Carlo (METHODS 1).

    PPV ~ Beta(tp + .5, fp + .5), FOR ~ Beta(fn + .5, tn + .5), Q fixed, or Beta where ``judged`` items are a sample.

    Args:
        counts: the verdict-stratified sample.
        pass_share: judge-pass share of the population, Q.
        judged: items behind Q; None where the whole run was judged.
        design_effect: divides the counts where items cluster in questions.
        seed: of the draws.
        draws: Monte Carlo size.
        level: two-sided coverage.
    """
    tp, fp, fn, tn = (count / design_effect for count in counts)
    if (tp + fp == 0 and pass_share > 0) or (fn + tn == 0 and pass_share < 1):
        return {}
    generator = np.random.default_rng(seed)
    ppv = generator.beta(tp + 0.5, fp + 0.5, draws)
    omission = generator.beta(fn + 0.5, tn + 0.5, draws)
    share: Floats = np.full(draws, pass_share)
    if judged:
        share = generator.beta(pass_share * judged + 0.5, (1 - pass_share) * judged + 0.5, draws)
    return _quantiles(share * ppv, share * (1 - ppv), (1 - share) * omission, (1 - share) * (1 - omission), level)


def sample_intervals(counts: Counts, *, seed: int = 0, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """Name of each in-sample number -> its interval: Dirichlet(1/2) Monte Carlo on the four cells (METHODS 10)."""
    if sum(counts) == 0:
        return {}
    cells = np.random.default_rng(seed).dirichlet(np.array(counts) + 0.5, draws)
    return _quantiles(cells[:, 0], cells[:, 1], cells[:, 2], cells[:, 3], level)


def _quantiles(tp: Floats, fp: Floats, fn: Floats, tn: Floats, level: float) -> dict[str, Interval]:
    first, second = tp + fp, tp + fn
    p_e = first * second + (1 - first) * (1 - second)
    agree = tp + tn
    mean = (first + second) / 2
    chance = 2 * mean * (1 - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = {
            "agreement": agree, "kappa": (agree - p_e) / (1 - p_e), "sensitivity": tp / second,
            "specificity": tn / (1 - second), "false_alarm": fn / second, "miss": fp / (1 - second),
            "ppv": tp / first, "for_rate": fn / (1 - first), "pass_rate": second, "bias": fp - fn,
            "ac1": (agree - chance) / (1 - chance), "positive_agreement": 2 * tp / (2 * tp + fp + fn),
        }
    ends = [(1 - level) / 2, (1 + level) / 2]
    return {name: Interval(*(float(end) for end in np.quantile(values, ends)))
            for name, values in drawn.items() if np.isfinite(values).all()}


def kappa_se(counts: Counts) -> float | None:
    """Large-sample standard error of kappa. Source: Fleiss, Cohen and Everitt (1969). For display only."""
    total = sum(counts)
    base = agreement(*counts)
    if base.kappa is None or base.p_e is None or base.agreement is None:
        return None
    p = np.array([[counts.tp, counts.fp], [counts.fn, counts.tn]]) / total
    row, column = p.sum(axis=1), p.sum(axis=0)
    keep = 1 - base.kappa
    diagonal = sum(p[i, i] * (1 - (row[i] + column[i]) * keep) ** 2 for i in range(2))
    off = keep**2 * sum(p[i, j] * (column[i] + row[j]) ** 2 for i in range(2) for j in range(2) if i != j)
    rest = (base.kappa - base.p_e * keep) ** 2
    return float(math.sqrt((diagonal + off - rest) / (total * (1 - base.p_e) ** 2)))


def alpha(counts: Counts) -> float | None:
    """Krippendorff's alpha of two raters without gaps, nominal; None where only one class occurs."""
    pairs = sum(counts)
    passes = 2 * counts.tp + counts.fp + counts.fn
    fails = 2 * counts.tn + counts.fp + counts.fn
    if pairs == 0 or passes == 0 or fails == 0:
        return None
    observed = (counts.fp + counts.fn) / pairs
    expected = 2 * passes * fails / (2 * pairs * (2 * pairs - 1))
    return 1 - observed / expected


def rogan_gladen(pass_share: float, sensitivity: float, specificity: float) -> tuple[float, bool] | None:
    """(true rate, clipped) of a run with judge-pass share Q from weighted sensitivity and specificity.

    p = (Q + spec - 1) / (sens + spec - 1). None where sens + spec - 1 < 0.3: such a judge cannot carry a correction.
    Source: Rogan and Gladen (1978). Sensitivity and specificity must be the weighted ones (METHODS 1).
    """
    informedness = sensitivity + specificity - 1
    if informedness < 0.3:
        return None
    rate = (pass_share + specificity - 1) / informedness
    return min(1.0, max(0.0, rate)), not 0 <= rate <= 1


def predictive_rate(pass_share: float, ppv: float, omission: float) -> float:
    """True rate of the run the sample was drawn from: Q PPV + (1 - Q) FOR."""
    return pass_share * ppv + (1 - pass_share) * omission


def two_raters(a: int, b: int, c: int, d: int, *, seed: int = 0) -> dict[str, Any]:
    """Two people's labels of the same pairs (both yes, first only, second only, both no) -> what to report of them.

    Values are None where they are not defined; ``margins`` are the numbers of yes of each person, without which kappa
    cannot be read; ``enough`` says whether there are 100 pairs, below which no verdict on agreement is given.
    """
    counts = Counts(a, b, c, d)
    total = sum(counts)
    found = agreement(*counts)
    ends = sample_intervals(counts, seed=seed)
    return {
        "n": total, "agreement": found.agreement,
        "agreement_interval": None if found.agreement is None else wilson(found.agreement, total),
        "kappa": found.kappa, "kappa_interval": None if found.kappa is None else ends.get("kappa"),
        "ac1": found.ac1, "ac1_interval": ends.get("ac1"), "alpha": alpha(counts),
        "positive_agreement": found.positive_agreement, "margins": [a + b, a + c], "enough": total >= 100,
    }
