"""k mismatch: is recall quoted at the k that reaches the reader? (METHODS 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldset.audit.context import Context
from goldset.audit.verdicts import LIMITS, finding
from goldset.stats.curves import k_star, k_star_ends
from goldset.text import content_hash


def k_word(eval_k: int | None, serving_k: int | None) -> str:
    """The quoted and the served k -> mismatch (the flattering direction), mismatch_below, equal, not_measured."""
    if eval_k is None or serving_k is None:
        return "not_measured"
    return "mismatch" if eval_k > serving_k else "mismatch_below" if eval_k < serving_k else "equal"


class KMismatch:
    """The quoted k against the served one, recall at each, and the k at which the headline is true."""

    name = "k_mismatch"

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> a word, and recall at each known k where the served list is known."""
        scoring = context.labelled.manifest.get("scoring", {})
        eval_k, retrieve_k, serving_k = context.quoted_k, context.retrieved_k, context.serving()
        systems: list[str | None] = [*_served(context, scoring.get("system"), retrieve_k, serving_k)]
        word = k_word(eval_k, serving_k)
        ks = sorted({k for k in (serving_k, retrieve_k, eval_k, *_few(context)) if k})
        rows = _observed(context)
        if word == "not_measured":
            lacks = [flag for flag, k in (("the quoted k (--eval-k N)", eval_k),
                                          ("the served k (--serving-k N, or --served-log FILE)", serving_k))
                     if not k]
            rows.append(finding(self.name, "all", word, n=0, message=f"Not known: {' and '.join(lacks)}.",
                                remedy=f"give {' and '.join(lacks)}"))
        for system in systems or [None]:
            subject = system or context.served_system or "all"
            if eval_k and serving_k:
                rows.append(_verdict(context, system, subject, word, eval_k, serving_k, retrieve_k))
            rows += [row for k in ks for row in _recall_at(context, system, subject, k, serving_k)]
            rows += _losses(context, system, eval_k, retrieve_k, serving_k)
        return rows


def _few(context: Context) -> list[int]:
    """The fewest passages that an answer in the log of what was served had."""
    return sorted(size for size in context.observed or {} if size)[:1]


def _observed(context: Context) -> list[dict[str, Any]]:
    """What reached readers against what is said to."""
    seen, said, most = context.observed, context.configured_k, context.observed_k
    if not seen or most is None:
        return []
    answers, usual, (few,) = sum(seen.values()), seen[most], _few(context)
    told = (f"{most} {'passage' if most == 1 else 'passages'} reached the reader in {usual} of {answers} logged answers"
            + (f", as few as {few} in {seen[few]}" if few < most else "")
            + (f", none in {seen[0]}" if seen.get(0) else ""))
    if said is None:
        return [finding("k_mismatch", "log", "observed", n=answers, measured=most, message=f"{told}.")]
    word = "served_less" if most < said else "served_more" if most > said else "served_as_said"
    return [finding("k_mismatch", "log", word, n=answers, measured=most, threshold=said,
                    message=f"{said} are said to be served; {told}.")]


def _served(context: Context, recorded: str | None, retrieve_k: int | None, serving_k: int | None) -> list[str]:
    """The systems whose run is the list that reaches the reader; none where that is not known.

    Where none is named, every given run is taken as such a list, unless something is cut away between retrieval and
    the reader: a list before reranking must not be passed off as the served one.
    """
    named = context.served_system or recorded
    if named is not None:
        return [named] if named in context.runs else []
    return [] if retrieve_k and serving_k and retrieve_k > serving_k else list(context.given)


def _recall_at(context: Context, system: str | None, subject: str, k: int,
               serving_k: int | None) -> list[dict[str, Any]]:
    reason = f"recall@{k}"
    if system is None or context.depth(system) < k:
        what = ("which run is the list that reaches the reader is not known" if system is None else
                f"the list of {system} ends at {context.depth(system)}")
        # An unknown recall at the served k leaves the check undecided; elsewhere it is only not shown.
        if k != serving_k:
            return []
        return [finding("k_mismatch", subject, f"recall_not_measured@{k}", n=0,
                        message=f"Recall@{k} was not measured: {what}.")]
    recalls = context.recalls(system, k)
    known = recalls[recalls["known"]]
    if len(known) < LIMITS.k_n:
        return [finding("k_mismatch", subject, f"recall_not_measured@{k}", n=len(known), threshold=LIMITS.k_n,
                        message=f"Recall@{k} was not measured: {len(known)} questions have gold whose delivery is "
                                f"known, {LIMITS.k_n} are needed.", remedy="label more questions")]
    estimate = context.mean(known["delivered"] / known["count"])
    left = f", {len(recalls) - len(known)} left out because evidence is missing" if len(known) < len(recalls) else ""
    return [finding("k_mismatch", subject, reason, n=len(known), measured=estimate.value,
                    interval=estimate.interval or (None, None),
                    message=f"recall@{k} of {system} is {estimate.value:.3f} ({len(known)} questions with gold{left}), "
                            "relative to the judged pool.")]


def _verdict(context: Context, system: str | None, subject: str, word: str, eval_k: int, serving_k: int,
             retrieve_k: int | None) -> dict[str, Any]:
    said = f"recall is quoted at k = {eval_k}, production serves {serving_k}"
    if word == "equal":
        return finding("k_mismatch", subject, word, n=len(context.gold_count),
                       message=f"Recall is quoted at the k that production serves ({serving_k}).")
    headline = context.retrieved_system or system  # the quoted figure is of the list before reranking, where given
    if system is None or headline is None or context.depth(headline) < eval_k or context.depth(system) < serving_k:
        return _unmeasured(context, subject, word, said, eval_k, serving_k, retrieve_k)
    quoted_recall, served_recall = context.recalls(headline, eval_k), context.recalls(system, serving_k)
    known = quoted_recall.index[quoted_recall["known"] & served_recall["known"]]
    if len(known) < LIMITS.k_n:
        return _unmeasured(context, subject, word, said, eval_k, serving_k, retrieve_k)
    count = quoted_recall.loc[known, "count"]
    sign = 1 if word == "mismatch" else -1
    estimate = context.mean(sign * (quoted_recall.loc[known, "delivered"] - served_recall.loc[known, "delivered"])
                            / count)
    low, high = estimate.interval or (0.0, 1.0)
    quoted, served = (context.mean(table.loc[known, "delivered"] / count).value or 0.0
                      for table in (quoted_recall, served_recall))
    value = estimate.value or 0.0
    return finding(
        "k_mismatch", subject, word, n=len(known), measured=sign * value, threshold=0,
        interval=(low, high) if sign > 0 else (-high, -low),
        message=f"{said[0].upper()}{said[1:]}: recall@{eval_k} is {quoted:.3f}, recall@{serving_k} is {served:.3f}, "
                f"{100 * value:.1f} points {'less' if sign > 0 else 'more'} (95 % {100 * low:.1f} to "
                f"{100 * high:.1f}); {quoted:.3f} is true at k = {_star(context, system, quoted)}.",
        remedy=f"quote recall@{serving_k} ({served:.3f})")


def _losses(context: Context, system: str | None, eval_k: int | None, retrieve_k: int | None,
            serving_k: int | None) -> list[dict[str, Any]]:
    """The gap in two parts, where the list before reranking is given too (METHODS 7).

    What is lost by retrieving k_r instead of the quoted k_e, and what reranking and the cut to the served k lose of
    what was retrieved.
    """
    before = context.retrieved_system
    if before is None or system is None or before == system or not retrieve_k:
        return []
    parts = []
    if eval_k and eval_k > retrieve_k and context.depth(before) >= eval_k:
        parts.append(("retrieval_loss", (before, eval_k), (before, retrieve_k),
                      f"Retrieving {retrieve_k} where {eval_k} are quoted"))
    if serving_k and context.depth(before) >= retrieve_k and context.depth(system) >= serving_k:
        parts.append(("rerank_loss", (before, retrieve_k), (system, serving_k),
                      f"Reranking {retrieve_k} retrieved passages down to {serving_k}"))
    rows = []
    for reason, wide, narrow, said in parts:
        more, less = context.recalls(*wide), context.recalls(*narrow)
        known = more.index[more["known"] & less["known"]]
        if len(known) < LIMITS.k_n:
            continue
        lost = more.loc[known, "delivered"] - less.loc[known, "delivered"]
        estimate = context.mean(lost / more.loc[known, "count"])
        value = estimate.value or 0.0
        low, high = (estimate.interval or (None, None)) if value >= 0 else (None, None)
        between = f" (95 % {100 * low:.1f} to {100 * high:.1f})" if low is not None and high is not None else ""
        rows.append(finding("k_mismatch", system, reason, n=len(known), measured=value, interval=(low, high),
                            message=f"{said} loses {100 * value:.1f} points of recall{between}: "
                                    f"recall@{wide[1]} of {wide[0]} against recall@{narrow[1]} of {narrow[0]}."))
    return rows


def _unmeasured(context: Context, subject: str, word: str, said: str, eval_k: int, serving_k: int,
                retrieve_k: int | None) -> dict[str, Any]:
    """The ks alone decide the word; where only the retrieved list is known it bounds the gap from below."""
    bound, measured, n = "", None, len(context.gold_count)
    if word == "mismatch" and retrieve_k and retrieve_k < eval_k and len(context.given) == 1:
        (only,) = context.given
        if context.depth(only) >= eval_k:
            wide, narrow = (context.recalls(only, k) for k in (eval_k, retrieve_k))
            measured = context.mean((wide["delivered"] - narrow["delivered"]) / wide["count"]).value or 0.0
            bound = f" The gap is at least recall@{eval_k} - recall@{retrieve_k} = {100 * measured:.1f} points."
    return finding("k_mismatch", subject, word, n=n, measured=measured, threshold=0,
                   message=f"{said[0].upper()}{said[1:]}; the list that reaches the reader is not there or too short, "
                           f"so recall at the served k was not measured.{bound}",
                   remedy=f"quote recall@{serving_k}; give the list that reaches the reader, {max(eval_k, serving_k)} "
                          "deep, and it is measured (--run NAME=FILE)")


def _star(context: Context, system: str, headline: float) -> str:
    """k* with its ends, as recall takes it: confirmed gold, questions by their draws, clusters resampled (seeded)."""
    frame, depth = context.delivered(system), context.depth(system)
    frame = frame[context.gold_table.column("weight").to_numpy() == 1.0]
    codes, questions = frame["question_id"].factorize()
    inside = frame["strict"].to_numpy() <= depth
    owner, rank = codes[inside], frame["strict"].to_numpy()[inside].astype(np.int64)
    curve = np.zeros((len(questions), depth))
    np.add.at(curve, (owner, rank - 1), 1 / np.bincount(codes)[owner])
    draws = np.array([context.draws.get(question, 1) for question in questions], np.float64)
    unit = np.unique([context.clusters.get(question, question) for question in questions], return_inverse=True)[1]
    num = np.zeros((int(unit.max()) + 1, depth))
    np.add.at(num, unit, curve.cumsum(axis=1) * draws[:, None])
    den = np.bincount(unit, draws).astype(np.float64)
    here = k_star(dict(enumerate((num.sum(axis=0) / den.sum()).tolist(), 1)), headline)
    seed = int(content_hash("k_star", sorted(questions), headline)[:8], 16)
    low, high = k_star_ends(num, den, headline, seed=seed)
    return f"{here} (95 % {low} to {high})"
