"""The hole probe: random unlabelled results of unrelated systems, read by people (STATISTICS 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from goldset.audit.verdicts import LIMITS, finding
from goldset.errors import UsageError
from goldset.spans import main_span
from goldset.stats.intervals import Interval
from goldset.stats.missed import fay_feuer
from goldset.text import unit_hash

if TYPE_CHECKING:
    import pyarrow as pa

    from goldset.audit.context import Context

DEPTH, PER_QUESTION, FEW = 10, 2, 5


def percent(share: float) -> str:
    """A share for a sentence."""
    return f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Drawn:
    """One pair for people: ``reachable`` unlabelled spans of the question it was drawn from, and its random number."""

    question_id: str
    span_id: str
    reachable: int
    u: float


@dataclass(frozen=True)
class Probe:
    """A probe and its answers: pair -> relevant, None where people could not tell; pairs without an entry are open."""

    drawn: tuple[Drawn, ...]
    answers: Mapping[tuple[str, str], bool | None]

    @property
    def open(self) -> int:
        """Pairs that wait for people."""
        return sum((row.question_id, row.span_id) not in self.answers for row in self.drawn)


def draw(context: Context, runs: Mapping[str, pa.Table], families: Mapping[str, frozenset[str]]) -> tuple[Drawn, ...]:
    """Systems of at least two unrelated families -> two random unlabelled spans a question with gold.

    Drawn from the union of the systems' first ten results, by permanent random number, so the same set and runs give
    the same probe. A span counts as labelled if it or a twin of it was judged.

    Raises:
        UsageError: the set has no texts, or no two systems are unrelated.
    """
    if context.corpus is None or not context.queries:
        raise UsageError("--probe shows people questions and passages: give --questions FILE and --corpus FILE")
    if not any(families[a].isdisjoint(families[b]) for a in runs for b in runs):
        raise UsageError(f"--probe needs two unrelated systems and has {', '.join(runs) or 'none'}: give another "
                         "--run NAME=FILE, or --with dense")
    spans = context.corpus.spans
    group = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    main = main_span(context.corpus.links)
    judgments = context.labelled.judgments.filter(context.labelled.judgments.column("relevant").is_valid())
    known = {(question, group.get(span, span)) for question, span in
             zip(judgments.column("question_id").to_pylist(), judgments.column("span_id").to_pylist(), strict=True)}
    found: dict[str, set[str]] = {question: set() for question in context.gold_count.index
                                  if question in context.queries}
    for run in runs.values():
        head = run.filter(pc.less_equal(run.column("rank"), DEPTH))
        for question, chunk in zip(head.column("question_id").to_pylist(), head.column("chunk_id").to_pylist(),
                                   strict=True):
            if question in found and chunk in main:
                span = group[main[chunk]]
                if (question, span) not in known:
                    found[question].add(span)
    drawn = []
    for question, reachable in sorted(found.items()):
        numbered = sorted((unit_hash("probe", question, span), span) for span in reachable)
        drawn += [Drawn(question, span, len(reachable), u) for u, span in numbered[:PER_QUESTION]]
    return tuple(drawn)


def probe_findings(context: Context, probe: Probe) -> list[dict[str, Any]]:
    """Answers -> how much of the reachable gold the set holds, and what the rest does to recall."""
    if not probe.drawn:
        return [finding("completeness", "probe", "complete", n=len(context.gold_count),
                        message=f"Every result in the top {DEPTH} of the probing systems is judged: there is nothing "
                                "left to read.")]
    if probe.open:
        return [finding("completeness", "probe", "probe_open", n=len(probe.drawn) - probe.open,
                        message=f"{len(probe.drawn) - probe.open} of {len(probe.drawn)} probed passages are answered; "
                                "completeness is estimated when all are.")]
    table = _weighted(probe)
    decided = table[table["relevant"].notna()]
    finds = decided[decided["relevant"].astype(bool)]
    missing = finds.groupby("question_id")["weight"].sum()
    gold = context.gold_count
    extra = missing.reindex(gold.index).fillna(0.0)
    total = float(gold.sum())
    share = total / (total + float(extra.sum()))
    low, high = _interval(context, gold, extra, finds, decided)
    word = "incomplete" if high < LIMITS.complete else "complete" if low >= LIMITS.complete else "inconclusive"
    unclear = len(table) - len(decided)
    left = f" ({unclear} could not be told and are left out)" if unclear else ""
    return [finding("completeness", "probe", word, n=len(decided), measured=share, interval=(low, high),
                    threshold=LIMITS.complete,
                    message=f"{len(finds)} of {len(decided)} unlabelled results that people read answer after all"
                            f"{left}; {int(total)} gold passages stand for {percent(share)} (95 % {100 * low:.1f} to "
                            f"{percent(high)}) of the gold within reach of these systems' top {DEPTH}.",
                    remedy="label these answers and read more of the unlabelled results"),
            *_recall(context, finds)]


def _weighted(probe: Probe) -> pd.DataFrame:
    """question_id, span_id, relevant, weight of each drawn pair: reachable spans over those that people decided."""
    rows = pd.DataFrame([{"question_id": row.question_id, "span_id": row.span_id, "reachable": row.reachable,
                          "relevant": probe.answers[row.question_id, row.span_id]} for row in probe.drawn])
    rows["relevant"] = rows["relevant"].astype(object)
    read = rows["relevant"].notna().groupby(rows["question_id"]).transform("sum")
    return rows.assign(weight=rows["reachable"] / read.clip(lower=1))


def _interval(context: Context, gold: pd.Series[Any], extra: pd.Series[Any], finds: pd.DataFrame,
              decided: pd.DataFrame) -> tuple[float, float]:
    """Clustered Fay-Feuer on the missing gold below five finds, else linearised with Wilson's n_eff (STATISTICS 8)."""
    if len(finds) >= FEW:
        found = context.ratio(gold.astype(float), gold + extra).interval
        if found is not None:
            return found.low, found.high
    codes = pd.factorize(finds["question_id"])[0].astype(np.float64)
    missing: Interval = fay_feuer(finds["weight"].to_numpy(dtype=np.float64),
                                  largest=float(decided["weight"].max()) if len(decided) else 1.0, clusters=codes)
    total = float(gold.sum())
    return total / (total + missing.high), total / (total + missing.low)


def _recall(context: Context, finds: pd.DataFrame) -> list[dict[str, Any]]:
    """Recall of the served (else first) system with the missing gold in it, gold over gold (STATISTICS 3.1)."""
    name = context.served_system if context.served_system in context.runs else next(iter(context.runs), None)
    if name is None or context.corpus is None:
        return []
    k = min(context.serving() or DEPTH, context.depth(name))
    recalls = context.recalls(name, k)
    main, run = main_span(context.corpus.links), context.runs[name]
    head = run.filter(pc.less_equal(run.column("rank"), k))
    spans = context.corpus.spans
    group = dict(zip(spans.column("span_id").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    served = {(question, group[main[chunk]]) for question, chunk in
              zip(head.column("question_id").to_pylist(), head.column("chunk_id").to_pylist(), strict=True)
              if chunk in main}
    columns = (finds[column] for column in ("question_id", "span_id", "weight"))
    hit = [weight for question, span, weight in zip(*columns, strict=True) if (question, span) in served]
    delivered, count = float(recalls["delivered"].sum()), float(recalls["count"].sum())
    before, after = delivered / count, (delivered + sum(hit)) / (count + float(finds["weight"].sum()))
    return [finding("completeness", name, f"probe_recall@{k}", n=len(recalls), measured=after,
                    message=f"Gold over gold, recall@{k} of {name} is {before:.3f} on the labels and {after:.3f} with "
                            "what the probe stands for.")]
