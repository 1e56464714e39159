"""The questions that a check rests on most, each beside its gold: what a person should look at first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from goldset.audit.context import Context, percent
from goldset.audit.leakage import copied_run, overlaps_of
from goldset.audit.verdicts import LIMITS
from goldset.text import tokenize

SHOWN = 5


@dataclass(frozen=True)
class Worst:
    """One question with one of its gold passages and what is wrong with the pair, in a sentence.

    ``mark`` is the part of the passage to look at, where there is one, half-open.
    """

    question_id: str
    question: str | None
    span_id: str
    passage: str | None
    said: str
    mark: tuple[int, int] | None = None


def worst_questions(context: Context) -> dict[str, list[Worst]]:
    """Context -> check -> at most five questions, the worst first; checks without any are left out."""
    if not len(context.gold):
        return {}
    found = {name: find(context) for name, find in _FINDERS.items()}
    return {name: rows for name, rows in found.items() if rows}


def _row(context: Context, question: str, span: str, said: str) -> Worst:
    return Worst(question, context.queries.get(question), span, context.span_texts.get(span), said)


def _integrity(context: Context) -> list[Worst]:
    gold = context.labelled.gold
    pairs = zip(gold.column("question_id").to_pylist(), gold.column("span_id").to_pylist(), strict=True)
    lost = sorted(pair for pair in pairs if pair[1] in context.unresolved)
    rows = [_row(context, *pair, f"not in the corpus{context.place(*pair)}") for pair in lost[:SHOWN]]
    return rows + [_row(context, *pair, f"its text is no longer the one that was labelled{context.place(*pair)}")
                   for pair in sorted(context.labelled.changed)[: SHOWN - len(rows)]]


def _circularity(context: Context) -> list[Worst]:
    """Gold that the first system has near its top and a system of another family far down, or not at all."""
    systems = list(context.runs)
    if not systems:
        return []
    mine = context.served_system if context.served_system in context.runs else systems[0]
    other = next((name for name in systems if not context.family(name) & context.family(mine)), None)
    frame = context.delivered(mine)[["question_id", "span_id", "lenient"]]
    if other is None:
        deep = frame[np.isfinite(frame["lenient"])].sort_values(["lenient", "question_id"], ascending=[False, True])
        return [_row(context, str(row.question_id), str(row.span_id), f"at rank {row.lenient:.0f} of {mine}")
                for row in deep.drop_duplicates("question_id").head(SHOWN).itertuples()]
    pairs = frame.assign(control=context.delivered(other)["lenient"].to_numpy())
    beyond = pairs["control"].clip(upper=context.depth(other) + 1)
    pairs = pairs.assign(gap=np.log(beyond) - np.log(pairs["lenient"]))
    pairs = pairs[np.isfinite(pairs["lenient"]) & (pairs["gap"] > 0)]
    pairs = pairs.sort_values(["gap", "question_id"], ascending=[False, True]).drop_duplicates("question_id")
    return [_row(context, str(row.question_id), str(row.span_id),
                 f"at rank {row.lenient:.0f} of {mine}, "
                 + (f"at rank {row.control:.0f}" if np.isfinite(row.control) else f"not within {context.depth(other)}")
                 + f" of {other}") for row in pairs.head(SHOWN).itertuples()]


def _leakage(context: Context) -> list[Worst]:
    if context.index is None or not context.queries:
        return []
    overlaps = overlaps_of(context)
    worst = sorted(overlaps, key=lambda question: (-overlaps[question].copied, -(overlaps[question].idfcov or 0),
                                                   question))
    gold = context.gold.groupby("question_id")["span_id"].agg(sorted)
    rows = []
    for question in worst[:SHOWN]:
        found = overlaps[question]
        if found.copied < LIMITS.copied_run and (found.idfcov or 0) <= LIMITS.idfcov:
            break
        said = f"{found.copied} words in a row stand in the gold"
        if found.idfcov is not None:
            said += f", which holds {percent(found.idfcov)} of the question's rare wording"
        asked, texts = tokenize(context.queries[question]), context.span_texts
        span = max(gold[question], key=lambda name: copied_run(asked, tokenize(texts.get(name, ""))))
        rows.append(replace(_row(context, question, str(span), said), mark=_copied_at(asked, texts.get(span, ""))))
    return rows


def _copied_at(question: Sequence[str], passage: str) -> tuple[int, int] | None:
    """Where the longest run of a question's words stands in a passage; None where it is shorter than what is told."""
    length = copied_run(question, tokenize(passage))
    if length < LIMITS.copied_run:
        return None
    for start in range(len(question) - length + 1):
        words = r"\W+".join(re.escape(word) for word in question[start : start + length])
        if found := re.search(rf"(?<!\w){words}(?!\w)", passage, re.IGNORECASE):
            return found.span()
    return None


def _k_mismatch(context: Context) -> list[Worst]:
    """Gold that the quoted k counts and the served k cuts away."""
    served, quoted = context.serving(), context.quoted_k
    name = context.served_system or context.labelled.manifest.get("scoring", {}).get("system")
    name = name if name in context.runs else next(iter(context.given), None)
    if not served or not quoted or quoted <= served or name is None:
        return []
    frame = context.delivered(name)
    cut = frame[(frame["strict"] > served) & (frame["strict"] <= quoted)]
    cut = cut.sort_values(["strict", "question_id"], ascending=[False, True]).drop_duplicates("question_id")
    return [_row(context, str(row.question_id), str(row.span_id),
                 f"at rank {row.strict:.0f} of {name}: counted at {quoted}, never served at {served}")
            for row in cut.head(SHOWN).itertuples()]


def _completeness(context: Context) -> list[Worst]:
    """Where a probe found more answers, else one gold and a first result that is neither that gold nor judged."""
    if found := _found(context):
        return found
    if not context.runs:
        return []
    name = next(iter(sorted(context.independent)), None) or next(iter(context.runs))
    single = context.gold_count[context.gold_count == 1].index
    gold = context.gold.set_index("question_id")["span_id"]
    first = context.runs[name].select(["question_id", "chunk_id", "rank"]).to_pandas()
    first = first[(first["rank"] == 1) & first["question_id"].isin(single)].sort_values("question_id")
    judged = context.labelled.judgments.select(["question_id", "span_id"]).to_pandas()
    known = set(zip(judged["question_id"], judged["span_id"], strict=True))
    spans = context.spans_of(first["chunk_id"].tolist())
    rows = []
    for row in first.itertuples():
        if not any((row.question_id, span) in known for span in spans.get(str(row.chunk_id), [str(row.chunk_id)])):
            rows.append(_row(context, str(row.question_id), str(gold[row.question_id]),
                             f"its only gold; the first result of {name}, '{row.chunk_id}', was never judged"))
        if len(rows) == SHOWN:
            break
    return rows


def _found(context: Context) -> list[Worst]:
    """Questions for which people found unlabelled answers among what a probe drew, most of them first."""
    probe = context.probe
    if probe is None or probe.open:
        return []
    finds: dict[str, list[str]] = {}
    for row in probe.drawn:
        if probe.answers.get(row.pair):
            finds.setdefault(row.question_id, []).append(row.span_id)
    gold = context.gold.groupby("question_id")["span_id"].min()
    return [_row(context, question, str(gold[question]),
                 f"labelled as gold; people found that {' and '.join(repr(span) for span in spans)} "
                 f"{'answers' if len(spans) == 1 else 'answer'} too")
            for question, spans in sorted(finds.items(), key=lambda item: (-len(item[1]), item[0]))[:SHOWN]]


_FINDERS: dict[str, Callable[[Context], list[Worst]]] = {
    "integrity": _integrity, "circularity": _circularity, "leakage": _leakage, "k_mismatch": _k_mismatch,
    "completeness": _completeness}


