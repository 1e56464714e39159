"""Completeness: does the gold stop at the first passage somebody found? (METHODS 8, 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldset.audit.context import Context, percent
from goldset.audit.probe import probe_findings
from goldset.audit.verdicts import LIMITS, finding
from goldset.stats.intervals import wilson
from goldset.stats.missed import missed_interval, split_prior, stratified_total

PROBE_DEPTH = 10


class Completeness:
    """The one-gold screen, what the rejection sample says, and what an independent system found unlabelled."""

    name = "completeness"

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> one word for the set, the estimate of missed gold where the set was sampled, the holes."""
        holes = _holes(context)
        missed = _missed(context, bool(context.independent))
        probed = probe_findings(context, context.probe) if context.probe else []
        screen = [_screen(context, holes, missed, probed)]
        # What people found comes before the screen that it decides: the first finding is the reason of a report.
        return [*(probed + screen + missed if _decided(probed) else screen + missed + probed), *holes]


def _decided(probed: list[dict[str, Any]]) -> bool:
    return bool(probed) and probed[0]["reason"] != "probe_open"


def _screen(context: Context, holes: list[dict[str, Any]], missed: list[dict[str, Any]],
            probed: list[dict[str, Any]]) -> dict[str, Any]:
    """The word for the set: it passes only where people read what an independent system would add."""
    counts = context.gold_count
    if len(counts) < LIMITS.completeness_n:
        return finding("completeness", "all", "too_few", n=len(counts), threshold=LIMITS.completeness_n,
                       message=f"{len(counts)} questions with gold are fewer than {LIMITS.completeness_n}.")
    single = int((counts == 1).sum())
    share = single / len(counts)
    low, high = wilson(share, len(counts)) or (0.0, 1.0)
    said = (f"{single} of {len(counts)} questions have exactly one gold passage ({percent(share)}, 95 % "
            f"{100 * low:.1f} to {percent(high)})")
    shared: dict[str, Any] = {"n": len(counts), "measured": share, "interval": (low, high),
                              "threshold": LIMITS.one_gold}
    own = context.labelled.kind == "published" and not context.independent
    if _decided(probed):
        # People have read what unrelated systems would add: their word stands, whatever the screen suspects. A probe
        # of the systems that fed the pool cannot acquit it.
        reason = "pool_only" if own and probed[0]["reason"] == "complete" else probed[0]["reason"]
        return finding("completeness", "all", reason, **shared,
                       remedy=None if reason == "pool_only" else probed[0]["remedy"],
                       message=f"{said}; the probe of unlabelled results decides"
                               + ("." if reason != "pool_only" else ", as far as this set's own systems reach: no "
                                  "independent system (audit_only) has graded its pool."))
    if low >= LIMITS.one_gold:
        return finding("completeness", "all", "one_gold", **shared,
                       message=f"{said}: recall equals hit rate here, and a second answer that a system finds counts "
                               "for nothing.")
    if own:
        return finding("completeness", "all", "unprobed", **shared,
                       message=f"{said}; this set was built from its own systems' results, and no independent system "
                               "(audit_only) has graded its pool.",
                       remedy="add a system with audit_only = true and give its run")
    if holes and all(row["measured"] == 0 for row in holes) and any(row["reason"] == "complete" for row in missed):
        return finding("completeness", "all", "complete", **shared,
                       message=f"{said}; people have read everything in the top {PROBE_DEPTH} of "
                               f"{' and '.join(row['subject'] for row in holes)}, and the sampled rejections hold next "
                               "to no gold.")
    if probed:
        return finding("completeness", "all", "probe_open", **shared,
                       message=f"{said}; whether unlabelled passages answer too, the probe asks people.")
    seen = f"; {holes[0]['message'][:-1]}" if holes else ""
    return finding("completeness", "all", "unprobed", **shared,
                   message=f"{said}{seen}; whether unlabelled passages answer too, nobody has looked.")


def _holes(context: Context) -> list[dict[str, Any]]:
    """Questions' top results of systems that never fed the pool: how many nobody judged."""
    rows = []
    for system in sorted(context.independent):
        estimate = context.unjudged(system, PROBE_DEPTH)
        if estimate is None:
            continue
        holes, results, found = estimate
        rows.append(finding("completeness", system, "holes", n=found.units, measured=holes / results,
                            interval=found.interval or (None, None),
                            message=f"{holes} of {results} results in the top {PROBE_DEPTH} of {system}, which did not "
                                    "feed the pool, were never judged.",
                            remedy="have people judge them: they are the probe" if holes else None))
    return rows


def _missed(context: Context, graded: bool) -> list[dict[str, Any]]:
    """Gold among the judge's rejections, from the sample that people read (manifest key sampling)."""
    sampling = context.labelled.manifest.get("sampling") or {}
    strata = sampling.get("strata") or []
    total, drawn, found = (sum(int(row[key]) for row in strata) for key in ("size", "read", "found"))
    if not total:
        return []
    needed = min(total, LIMITS.rejections_n)
    if drawn < needed:
        return [finding("completeness", "pool", "too_few", n=drawn, threshold=needed,
                        message=f"People read {drawn} of {total} passages that the judge rejected; missed gold is not "
                                "estimated from so few.", remedy="read more of the judge's rejections")]
    estimate, (low, high) = _total_missed(strata)
    below = context.labelled.from_deep_probe
    held = len(context.labelled.gold) - (0 if below is None else below.true_count)
    confirmed = held - found  # G of METHODS 2; what the sample found is in the set as well
    if not confirmed + low:
        return []
    complete, lower, upper = (min(1.0, held / (confirmed + missed)) for missed in (estimate, high, low))
    word = ("incomplete" if upper < LIMITS.complete else "inconclusive" if lower < LIMITS.complete else
            "complete" if graded else "pool_only")
    return [finding("completeness", "pool", word, n=drawn, measured=complete, interval=(lower, upper),
                    threshold=LIMITS.complete,
                    message=f"{found} of {drawn} rejections that people read answer after all, so about {estimate:.0f} "
                            f"(95 % {low:.0f} to {high:.0f}) of {total} do; the set holds {percent(complete)} of the "
                            f"gold in its pool (95 % {100 * lower:.1f} to {percent(upper)}).")]


def _total_missed(strata: list[dict[str, Any]]) -> tuple[float, tuple[float, float]]:
    """(estimate, interval) of the relevant rejections: hypergeometric for one stratum, split prior for several."""
    sizes, read, found = (np.array([row[key] for row in strata], np.float64) for key in ("size", "read", "found"))
    estimate = stratified_total(sizes, read, found)
    interval = split_prior(sizes, read, found)
    if len(strata) == 1 or estimate is None or interval is None:
        # A stratum that nobody read says nothing by itself: the rejections are then taken as one sample.
        total, drawn, hits = (int(column.sum()) for column in (sizes, read, found))
        return hits * total / drawn, missed_interval(hits, drawn, total)
    return estimate, interval
