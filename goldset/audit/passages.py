"""The gold's passages: are they there, do they still say the same, are they fit to be gold, do they count twice?"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Any

from goldset.audit.context import Context, plural
from goldset.audit.staleness import staleness
from goldset.audit.verdicts import LIMITS, finding
from goldset.text import count_words, twin_key


def passages(context: Context) -> list[dict[str, Any]]:
    """Context with gold -> findings on its passages, first offenders with file and line where known."""
    return [*_stale(context), *staleness(context), *_empty(context), *_oversized(context), *_twice(context),
            *_ceilings(context)]


def _stale(context: Context) -> list[dict[str, Any]]:
    gold = context.labelled.gold
    missing = [pair for pair in zip(gold.column("question_id").to_pylist(), gold.column("span_id").to_pylist(),
                                    strict=True) if pair[1] in context.unresolved]
    changed = [pair for pair in context.labelled.changed if pair[1] not in context.unresolved]
    lost = len(missing) + len(changed)
    if not lost:
        return []
    first = min(missing or changed)
    share = lost / len(gold)
    effect = (f": no system can deliver what is missing, so recall cannot exceed {ceiling(context):.3f}" if missing
              else ": whether the new text answers, nobody has read")
    return [finding(
        "integrity", "all", "stale" if share > LIMITS.stale_fail else "unresolved", n=len(gold), measured=share,
        threshold=LIMITS.stale_fail,
        message=f"{lost} of {len(gold)} gold passages are not in the corpus as they were labelled (missing "
                f"{len(missing)}, changed {len(changed)}; first '{first[1]}'{context.place(*first)}){effect}.")]


def ceiling(context: Context, k: int | None = None) -> float:
    """Mean over questions with gold of what a perfect system delivers within k results: what resolves, at most k."""
    counts = Counter(context.labelled.gold.column("question_id").to_pylist())
    found = context.gold_count.to_dict()
    return sum(min(found.get(question, 0), k or count) / count for question, count in counts.items()) / len(counts)


def _ceilings(context: Context) -> list[dict[str, Any]]:
    rows = []
    for k in context.known_ks:
        value = ceiling(context, k)
        if value < 1:
            rows.append(finding("integrity", "all", f"ceiling@{k}", n=len(context.gold_count), measured=value,
                                message=f"A perfect system reaches recall@{k} {value:.3f} on this set: some questions "
                                        f"have more gold than {k}, or gold that does not resolve."))
    return rows


def _pair_of(context: Context, span: str) -> tuple[str, str]:
    """The first question a gold passage belongs to."""
    return min((question, span) for question in context.gold.loc[context.gold["span_id"] == span, "question_id"])


def _empty(context: Context) -> list[dict[str, Any]]:
    empty = sorted(span for span, text in context.span_texts.items() if not text.strip())
    if not empty:
        return []
    return [finding("integrity", "all", "empty_gold", n=len(context.span_texts), measured=len(empty),
                    message=f"{plural(len(empty), 'gold passage')} without text (first '{empty[0]}'"
                            f"{context.place(*_pair_of(context, empty[0]))}).")]


def _oversized(context: Context) -> list[dict[str, Any]]:
    words = {span: count_words(text) for span, text in context.span_texts.items()
             if len(text) > LIMITS.oversized_words}  # a word has a character at least
    large = sorted((span for span, count in words.items() if count > LIMITS.oversized_words),
                   key=lambda span: (-words[span], span))
    if not large:
        return []
    return [finding(
        "integrity", "all", "oversized_gold", n=len(context.span_texts), measured=len(large),
        threshold=LIMITS.oversized_words,
        message=f"{plural(len(large), 'gold passage')} of more than {LIMITS.oversized_words} words (longest "
                f"'{large[0]}', {words[large[0]]} words{context.place(*_pair_of(context, large[0]))}): to have found "
                "one says little about having found the answer.")]


def _twice(context: Context) -> list[dict[str, Any]]:
    """Gold that counts more than once for one question: the same text under two ids, or chunks that overlap."""
    if context.corpus is None:
        return []
    texts = context.span_texts
    twins: list[tuple[str, str]] = []
    overlaps: list[tuple[str, str, str]] = []
    for question, spans in context.gold.groupby("question_id")["span_id"].agg(sorted).items():
        if len(spans) == 1:
            continue
        kept: dict[str, str] = {}
        for span in spans:
            key = twin_key(texts.get(span, ""))
            if key in kept:
                twins.append((str(question), span))
            elif key:
                kept[key] = span
        if context.labelled.kind != "published":  # spans of a version are disjoint, whatever else they share
            overlaps += [(str(question), span, other) for span, other in _overlapping(kept)]
    rows = []
    if twins:
        rows.append(finding(
            "integrity", "all", "twins", n=len(context.gold), measured=len(twins),
            message=f"{plural(len(twins), 'passage')} gold twice for one question, under different ids with the same "
                    f"text (first: question '{twins[0][0]}', '{twins[0][1]}'{context.place(*twins[0])})."))
    if overlaps:
        question, span, other = overlaps[0]
        rows.append(finding(
            "integrity", "all", "overlap", n=len(context.gold), measured=len(overlaps),
            threshold=LIMITS.overlap,
            message=f"{plural(len(overlaps), 'gold passage')} with {LIMITS.overlap} or more characters in common with "
                    f"another gold passage of the same question (first: question '{question}', '{span}' and '{other}'"
                    f"{context.place(question, span)}): one answer counts twice."))
    return rows


def _overlapping(kept: dict[str, str]) -> list[tuple[str, str]]:
    """Text -> passage of one question -> passages whose beginning stands further on in another, or that it holds.

    A beginning that two passages have in common at the same place is a template, not an overlap.
    """
    joined = "\x00".join(kept)
    starts = [0]
    for text in kept:
        starts.append(starts[-1] + len(text) + 1)
    names = list(kept.values())
    found = []
    for place, (text, span) in enumerate(kept.items()):
        head = text[: LIMITS.overlap]
        at = joined.find(head) if len(head) == LIMITS.overlap else -1
        while at >= 0:
            other = bisect_right(starts, at) - 1
            inside = joined.startswith(text, at)
            if other != place and (at > starts[other] or inside):
                found.append((span, names[other]))
                break
            at = joined.find(head, at + 1)
    return found
