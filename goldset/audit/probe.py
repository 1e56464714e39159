"""The hole probe: random unlabelled results of unrelated systems, read by people (METHODS 8)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
REJECTED_SHARE, REJECTED_LEAST = 0.1, 30
"""Of the judge's rejections people read this share, and at least so many (or all)."""

Pair = tuple[str, str]


def percent(share: float) -> str:
    """A share for a sentence."""
    return f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Drawn:
    """One pair of a probe.

    Attributes:
        question_id: the question.
        span_id: an unlabelled span of it.
        reachable: unlabelled spans of the question that it was drawn from.
        u: its random number.
        judged: what a judge said of it; None where there was no judge, or no verdict.
        asked: whether people are asked; only of a judge's rejections a sample is.
    """

    question_id: str
    span_id: str
    reachable: int
    u: float
    judged: bool | None = None
    asked: bool = True

    @property
    def pair(self) -> Pair:
        """Question and span."""
        return self.question_id, self.span_id


@dataclass(frozen=True)
class Probe:
    """A probe and its answers: pair -> relevant, None where people could not tell; pairs without an entry are open.

    ``judge`` says in a few words who judged the pairs first; None where people read them all.
    """

    drawn: tuple[Drawn, ...]
    answers: Mapping[Pair, bool | None]
    judge: str | None = None

    @property
    def asked(self) -> int:
        """Pairs that people are asked about."""
        return sum(row.asked for row in self.drawn)

    @property
    def open(self) -> int:
        """Pairs that wait for people."""
        return sum(row.asked and row.pair not in self.answers for row in self.drawn)


def draw(context: Context, runs: Mapping[str, pa.Table], families: Mapping[str, frozenset[str]],
         per_question: int = PER_QUESTION) -> tuple[Drawn, ...]:
    """Systems of at least two unrelated families -> random unlabelled spans, ``per_question`` a question with gold.

    The same set and runs give the same probe, and a larger one holds a smaller one.

    Raises:
        UsageError: the set has no texts, or no two systems are unrelated.
    """
    return take(reachable_spans(context, runs, families), per_question)


def reachable_spans(context: Context, runs: Mapping[str, pa.Table],
                    families: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """Question with gold -> the unlabelled spans among the systems' first ten results, by permanent random number.

    A span counts as labelled if it or a twin of it was judged.
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
    return {question: sorted(spans, key=lambda span: (_number(question, span), span))
            for question, spans in sorted(found.items())}


def _number(question: str, span: str) -> float:
    return unit_hash("probe", question, span)


def take(reachable: Mapping[str, Sequence[str]], per_question: int) -> tuple[Drawn, ...]:
    """Question -> spans within reach in the order of their random numbers -> the first ``per_question`` of each."""
    return tuple(Drawn(question, span, len(spans), _number(question, span))
                 for question, spans in sorted(reachable.items()) for span in spans[:per_question])


def sift(drawn: Sequence[Drawn], verdicts: Mapping[Pair, bool | None],
         asked: Collection[Pair] = ()) -> tuple[Drawn, ...]:
    """Drawn pairs with a judge's verdicts -> the same, saying which of them people are asked.

    All that the judge passed or left without a verdict, and of its rejections a tenth, at least 30 or all
    (METHODS 8), by a random number of their own. Who was ``asked`` before stays asked, and the sample then reaches
    as far, so that it is a random one still.
    """
    judged = [replace(row, judged=verdicts.get(row.pair)) for row in drawn]
    rejected = sorted((row for row in judged if row.judged is False),
                      key=lambda row: (unit_hash("probe rejected", *row.pair), row.pair))
    most = min(len(rejected), max(REJECTED_LEAST, math.ceil(round(REJECTED_SHARE * len(rejected), 9))))
    for place, row in enumerate(rejected, 1):
        if row.pair in asked:
            most = max(most, place)
    left = {row.pair for row in rejected[most:]}
    return tuple(replace(row, asked=row.pair not in left) for row in judged)


def probe_findings(context: Context, probe: Probe) -> list[dict[str, Any]]:
    """Answers -> how much of the reachable gold the set holds, and what the rest does to recall."""
    if not probe.drawn:
        return [finding("completeness", "probe", "complete", n=len(context.gold_count),
                        message=f"Every result in the top {DEPTH} of the probing systems is judged: there is nothing "
                                "left to read.")]
    if probe.open:
        return [finding("completeness", "probe", "probe_open", n=probe.asked - probe.open,
                        message=f"{probe.asked - probe.open} of {probe.asked} probed passages are answered; "
                                "completeness is estimated when all are.")]
    table = weighted(probe)
    decided = table[table["relevant"].notna()]
    finds = decided[decided["relevant"].astype(bool)]
    missing = finds.groupby("question_id")["weight"].sum()
    gold = context.gold_count
    extra = missing.reindex(gold.index).fillna(0.0)
    total = float(gold.sum())
    share = total / (total + float(extra.sum()))
    bound = _bounds(finds, total, decided)
    word = _word(*bound)
    low, high = _interval(context, gold, extra, finds) or bound
    unclear = len(table) - len(decided)
    left = f" ({unclear} could not be told and are left out)" if unclear else ""
    return [finding("completeness", "probe", word, n=len(decided), measured=share, interval=(low, high),
                    threshold=LIMITS.complete,
                    message=f"{len(finds)} of {len(decided)} unlabelled results that people read answer after all"
                            f"{left}; {int(total)} gold passages stand for {percent(share)} (95 % {100 * low:.1f} to "
                            f"{percent(high)}) of the gold within reach of these systems' top {DEPTH}."
                            + _by_judge(probe),
                    remedy=_remedy(probe, finds, total, decided, word)),
            *_recall(context, finds)]


def weighted(probe: Probe) -> pd.DataFrame:
    """question_id, span_id, relevant, weight = 1 / inclusion probability of each pair that people were asked about.

    Two draws: reachable spans over drawn ones in the question, then pairs over those that people decided, among the
    judge's rejections in all, else in the question.
    """
    rows = pd.DataFrame([{"question_id": row.question_id, "span_id": row.span_id, "asked": row.asked,
                          "reachable": row.reachable, "among": "rejected" if row.judged is False
                          else f"question {row.question_id}",
                          "relevant": probe.answers.get(row.pair)} for row in probe.drawn])
    rows["relevant"] = rows["relevant"].astype(object)
    first = rows["reachable"] / rows.groupby("question_id")["span_id"].transform("size")
    second = rows.groupby("among")["span_id"].transform("size") / \
        rows["relevant"].notna().groupby(rows["among"]).transform("sum").clip(lower=1)
    return rows.assign(weight=first * second)[rows["asked"]]


def _bounds(finds: pd.DataFrame, total: float, decided: pd.DataFrame) -> tuple[float, float]:
    """Completeness from the clustered Fay-Feuer interval of the missing gold, which verdicts rest on (METHODS 8)."""
    codes = pd.factorize(finds["question_id"])[0].astype(np.float64)
    missing: Interval = fay_feuer(finds["weight"].to_numpy(dtype=np.float64),
                                  largest=float(decided["weight"].max()) if len(decided) else 1.0, clusters=codes)
    return total / (total + missing.high), total / (total + missing.low)


def _word(low: float, high: float) -> str:
    return "incomplete" if high < LIMITS.complete else "complete" if low >= LIMITS.complete else "inconclusive"


def _interval(context: Context, gold: pd.Series[Any], extra: pd.Series[Any],
              finds: pd.DataFrame) -> tuple[float, float] | None:
    """The shorter interval that is shown: linearised with Wilson's n_eff; None below five finds (METHODS 8)."""
    found = context.ratio(gold.astype(float), gold + extra).interval if len(finds) >= FEW else None
    return None if found is None else (found.low, found.high)


def _by_judge(probe: Probe) -> str:
    if probe.judge is None:
        return ""
    rejected = [row for row in probe.drawn if row.judged is False]
    return (f" {probe.judge} judged {len(probe.drawn)} of them first: people read all that it did not reject and "
            f"{sum(row.asked for row in rejected)} of its {len(rejected)} rejections, each of which stands for more.")


def _remedy(probe: Probe, finds: pd.DataFrame, total: float, decided: pd.DataFrame, word: str) -> str:
    if word != "inconclusive":
        return "label these answers and read more of the unlabelled results"
    drawn = max(pd.Series([row.question_id for row in probe.drawn]).value_counts())
    most = max(row.reachable for row in probe.drawn)
    for size in range(drawn + 1, most):
        # The same finds a passage, more passages: weights fall, and each find becomes size / drawn of them.
        times = size / drawn
        grown = pd.concat([finds.assign(question_id=finds["question_id"] + f" {i}") for i in range(math.ceil(times))])
        grown = grown.assign(weight=grown["weight"] * len(finds) / max(1, len(grown)))
        if _word(*_bounds(grown, total, decided.assign(weight=decided["weight"] / times))) != "inconclusive":
            return (f"have people read {size} passages a question instead of {drawn} (--probe-size {size}): with as "
                    "many finds a passage that decides")
    return (f"have people read everything within reach, up to {most} passages a question (--probe-size {most}); less "
            "does not decide")


def _recall(context: Context, finds: pd.DataFrame) -> list[dict[str, Any]]:
    """Recall of the served (else first) system with the missing gold in it, gold over gold (METHODS 3.1)."""
    name = context.served_system if context.served_system in context.runs else next(iter(context.runs), None)
    if name is None or context.corpus is None:
        return []
    k = min(context.serving() or DEPTH, context.depth(name))
    recalls, served = context.recalls(name, k), context.head(name, k)
    columns = (finds[column] for column in ("question_id", "span_id", "weight"))
    hit = [weight for question, span, weight in zip(*columns, strict=True) if (question, span) in served]
    delivered, count = float(recalls["delivered"].sum()), float(recalls["count"].sum())
    before, after = delivered / count, (delivered + sum(hit)) / (count + float(finds["weight"].sum()))
    return [finding("completeness", name, f"probe_recall@{k}", n=len(recalls), measured=after,
                    message=f"Gold over gold, recall@{k} of {name} is {before:.3f} on the labels and {after:.3f} with "
                            "what the probe stands for.")]
