"""Lexical leakage: was the question written from its gold passage? (METHODS 6)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from goldset.audit.context import BM25_NAME, Context, percent, plural
from goldset.audit.verdicts import LIMITS, finding
from goldset.lexical import BM25Index
from goldset.stats.auc import Auc, auc, stratified_auc
from goldset.stats.intervals import wilson
from goldset.text import tokenize

K1, B = 1.2, 0.75


@dataclass(frozen=True)
class Overlap:
    """What a question shares with its gold; None where no question term stands in any passage."""

    terms: int  # distinct terms of the question
    unknown: float  # share of them that stand in no passage
    idfcov: float | None
    norm: float | None
    copied: int
    top: float | None  # norm of the best passage of the corpus
    plain: float | None  # BM25 of the gold as it stands, which grows with the number of terms
    attainable: float  # highest BM25 that a passage could have


def coverage(idf: Mapping[str, float], passage: set[str]) -> float | None:
    """Share of a question's idf that its gold holds; ``idf`` maps its known distinct terms (METHODS 6, idfcov)."""
    total = sum(idf.values())
    return sum(value for term, value in idf.items() if term in passage) / total if total else None


def norm(idf: Mapping[str, float], passage: Sequence[str], average_length: float) -> float | None:
    """BM25 of a passage over the attainable maximum (k1 + 1) sum idf, k1 = 1.2, b = .75 (METHODS 6)."""
    total = sum(idf.values())
    if not total:
        return None
    penalty = K1 * (1 - B + B * len(passage) / average_length)
    score = 0.0
    for term, value in idf.items():
        tf = passage.count(term)
        score += value * tf * (K1 + 1) / (tf + penalty)
    return score / ((K1 + 1) * total)


def copied_run(question: Sequence[str], passage: Sequence[str]) -> int:
    """Longest run of question tokens that stands in the passage word for word."""
    text = f" {' '.join(passage)} "
    longest = 0
    for start in range(len(question)):
        while (start + longest < len(question)
               and f" {' '.join(question[start : start + longest + 1])} " in text):
            longest += 1
    return longest


def measure(index: BM25Index, query: str, passages: Sequence[str], *, top: bool) -> Overlap:
    """A question and its gold texts -> Overlap; several gold texts give the question's maximum."""
    tokens = tokenize(query)
    distinct = sorted(set(tokens))
    idf = {term: value for term in distinct if (value := index.robertson_idf(term)) > 0}
    cov, norms, runs = [], [], [0]
    for passage in passages:
        words = tokenize(passage)
        cov.append(coverage(idf, set(words)))
        norms.append(norm(idf, words, index.average_length))
        runs.append(copied_run(tokens, words))
    best = None
    if top and idf:
        best = float(index.robertson_scores(idf, k1=K1, b=B).max()) / ((K1 + 1) * sum(idf.values()))
    most, highest = _most(norms), (K1 + 1) * sum(idf.values())
    return Overlap(len(distinct), 1 - len(idf) / len(distinct) if distinct else 0.0, _most(cov), most, max(runs), best,
                   None if most is None else most * highest, highest)


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def leakage_word(low: float, high: float) -> str:
    """95 % interval of the AUC of the set against real questions -> none, leak, strong, inconclusive."""
    if low >= LIMITS.leak_strong:
        return "strong"
    if low >= LIMITS.leak:
        return "leak"
    return "none" if high < LIMITS.leak else "inconclusive"


def compare(mine: Sequence[Overlap], theirs: Sequence[Overlap], mine_by: str, theirs_by: str) -> Auc | None:
    """AUC of one statistic against another, in bands of two distinct terms; None where it has no interval."""
    sides = []
    for rows, name in ((mine, mine_by), (theirs, theirs_by)):
        kept = [(getattr(row, name), (row.terms - 1) // 2) for row in rows if getattr(row, name) is not None]
        sides.append((np.array([value for value, _ in kept], np.float64),
                      np.array([band for _, band in kept], np.int64)))
    (first, first_band), (second, second_band) = sides
    found = stratified_auc(first, second, first_band=first_band, second_band=second_band)
    if found is None or found.interval is None:  # no common band, or apart in every band: the exact bound of auc()
        found = auc(first, second)
    return found if found is not None and found.interval is not None else None


class Leakage:
    """The set's questions against real ones, on the rare words they share with their gold."""

    name = "leakage"

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> one word for the set and the numbers behind it."""
        if context.index is None or not context.queries:
            if context.queries and context.span_texts:
                return [_without_corpus(context)]
            lacks = [what for what, there in (("question texts (--questions FILE)", context.queries),
                                              ("passages (--corpus FILE)", context.index)) if not there]
            return [finding(self.name, "all", "no_text", n=0,
                            message=f"The set comes without {' and without '.join(lacks)}: shared wording cannot be "
                                    "measured.", remedy=f"give the {' and the '.join(lacks)}")]
        overlaps = overlaps_of(context)
        if not overlaps:
            return [finding(self.name, "all", "too_few", n=0, threshold=LIMITS.leak_n,
                            message="No question with gold has a text, so shared wording cannot be measured.")]
        logs = [] if context.log_questions is None else [
            measure(context.index, query, [], top=True) for query in _texts(context)]
        known = _of_reference(context)
        values = list(overlaps.values())
        said = (_from_log(context, len(values)) if not logs and not known and _all_from_log(context)
                else _against_reference(context, values, logs, known) if known else _verdict(values, logs))
        return [said, *_shown(context, overlaps, logs, known)]


def _without_corpus(context: Context) -> dict[str, Any]:
    """The word where only the gold has texts: copied runs show, how rare the shared words are does not."""
    texts, gold = context.span_texts, context.gold.groupby("question_id")["span_id"].agg(list)
    runs = [max((copied_run(tokenize(context.queries[question]), tokenize(texts[span])) for span in spans
                 if span in texts), default=0)
            for question, spans in gold.items() if question in context.queries]
    copied = sum(run >= LIMITS.copied_run for run in runs)
    if len(runs) >= LIMITS.leak_n and (said := _copied_too_often(copied, len(runs))):
        return said
    return finding("leakage", "all", "no_text", n=len(runs), measured=copied / len(runs) if runs else None,
                   message=f"{copied} of {len(runs)} questions repeat {LIMITS.copied_run} or more words of their gold "
                           "in a row; how rare the words are that they share cannot be told without the other "
                           "passages (--corpus FILE).", remedy="give the passages (--corpus FILE)")


def _copied_too_often(copied: int, n: int) -> dict[str, Any] | None:
    """The suspicion that needs no comparison: more copied runs than people's own questions have."""
    low, high = wilson(copied / n, n) or (0.0, 1.0)
    if low < LIMITS.copied:
        return None
    return finding("leakage", "all", "suspected", n=n, measured=copied / n, interval=(low, high),
                   threshold=LIMITS.copied,
                   message=f"{copied} of {n} questions repeat {LIMITS.copied_run} or more words of their gold in a row "
                           f"({percent(copied / n)}, 95 % {100 * low:.1f} to {percent(high)}): they look written from "
                           "it.")


def _all_from_log(context: Context) -> bool:
    table = context.labelled.questions
    return table is not None and set(table.column("origin").to_pylist()) == {"log"}


def _from_log(context: Context, n: int) -> dict[str, Any]:
    """Nobody wrote these questions from a passage: there is no wording to have been copied."""
    return finding("leakage", "all", "from_log", n=n,
                   message=f"All {n} questions with gold were drawn from the log by this project: real people asked "
                           "them before any passage was picked.")


def overlaps_of(context: Context) -> dict[str, Overlap]:
    """The context's questions against their gold, measured once."""
    return context.once("overlaps", "", lambda: _of_set(context))


def _of_set(context: Context) -> dict[str, Overlap]:
    """question_id -> Overlap, for the questions with gold and text."""
    assert context.index is not None, "checked by the caller"
    texts, gold = context.span_texts, context.gold.groupby("question_id")["span_id"].agg(list)
    top = context.log_questions is not None
    return {question: measure(context.index, context.queries[question], [texts[span] for span in spans], top=top)
            for question, spans in gold.items() if question in context.queries}


def _of_reference(context: Context) -> list[Overlap]:
    """The reference set's questions against their own gold, in the audited index's idf; empty without one."""
    if context.reference is None or context.index is None:
        return []
    other = Context(context.reference)
    texts, gold = other.span_texts, other.gold.groupby("question_id")["span_id"].agg(list)
    return [measure(context.index, other.queries[question], [texts[span] for span in spans], top=False)
            for question, spans in gold.items() if question in other.queries and texts]


def _texts(context: Context) -> list[str]:
    assert context.log_questions is not None, "checked by the caller"
    table = context.log_questions
    text = table.column("text")
    sent = pc.coalesce(table.column("query"), text) if "query" in table.column_names else text
    return list(dict.fromkeys(sent.to_pylist()))


def _against_reference(context: Context, values: list[Overlap], logs: list[Overlap],
                       known: list[Overlap]) -> dict[str, Any]:
    """The one word against real questions whose gold people found, the best reference (METHODS 6)."""
    assert context.reference is not None, "known comes from it"
    name = context.reference.label
    covered, theirs = (sum(row.idfcov is not None for row in side) for side in (values, known))
    found = compare(values, known, "idfcov", "idfcov")
    if min(covered, theirs) < LIMITS.leak_n or found is None or found.interval is None:
        if logs:
            return _verdict(values, logs)
        return finding("leakage", "all", "too_few", n=min(covered, theirs), threshold=LIMITS.leak_n,
                       message=f"{covered} questions with gold and {theirs} of {name} with theirs: {LIMITS.leak_n} of "
                               "each are needed to compare their wording.")
    word = leakage_word(*found.interval)
    if logs and word not in ("leak", "strong") and (proved := _proof(values, logs, covered)):
        return proved
    said = {"none": "no more of their rare words with their gold than", "leak": "more of their rare words with their "
            "gold than", "strong": "far more of their rare words with their gold than",
            "inconclusive": "perhaps more of their rare words with their gold than"}[word]
    families = {str(facts.get("family")) for facts in context.reference.manifest.get("systems", {}).values()}
    leans = ("" if families and families != {"lexical"} else
             f"; if the gold of {name} was pooled by word search alone, that leans towards acquittal")
    return finding("leakage", "all", word, n=found.n_first, measured=found.value, interval=found.interval,
                   threshold=LIMITS.leak_strong if word == "strong" else LIMITS.leak,
                   message=f"The set's questions share {said} real questions of the same length do, those of {name} "
                           f"whose gold people found ({_said(found)}; {found.n_first} of {covered} against "
                           f"{found.n_second} of {theirs} questions have a length in common{leans}).")


def _proof(values: list[Overlap], logs: list[Overlap], n: int) -> dict[str, Any] | None:
    """Set questions against their gold beat log questions against the best passage there is: no gold can do that."""
    proof = compare(values, logs, "norm", "top")
    if proof is None or proof.interval is None or proof.interval.low <= LIMITS.leak_proof:
        return None
    return finding("leakage", "all", "leak", n=n, measured=proof.value, interval=proof.interval,
                   threshold=LIMITS.leak_proof,
                   message="The set's questions match their gold better than log questions match the best passage "
                           f"of the whole corpus ({_said(proof)}, above {LIMITS.leak_proof:.2f}): no real "
                           "question's gold could do that.")


def _verdict(values: list[Overlap], logs: list[Overlap]) -> dict[str, Any]:
    """The one word: against the logs where they are given, else from absolute signs, which only raise suspicion."""
    covered = [value.idfcov for value in values if value.idfcov is not None]
    if not logs:
        return _without_logs(values, covered)
    if min(len(covered), len(logs)) < LIMITS.leak_n:
        return finding("leakage", "all", "too_few", n=min(len(covered), len(logs)), threshold=LIMITS.leak_n,
                       message=f"{len(covered)} questions with gold and {len(logs)} log questions: {LIMITS.leak_n} of "
                               "each are needed to compare their wording.")
    best = compare(values, logs, "top", "top")
    if best is None or best.interval is None:
        return finding("leakage", "all", "too_few", n=0, threshold=LIMITS.leak_n,
                       message="No log question has a word that stands in the corpus; give logs of this application.")
    word = leakage_word(*best.interval)
    if word != "strong" and (proved := _proof(values, logs, len(covered))):
        return proved
    said = {"none": "no more than", "leak": "more than", "strong": "far more than",
            "inconclusive": "perhaps more than"}[word]
    told = (f"{_said(best)}; {best.n_first} of {len(covered)} against {best.n_second} of {len(logs)} questions have a "
            "length in common; log questions without an answer in the corpus raise it")
    if word == "inconclusive" and (alone := _without_logs(values, covered))["reason"] == "suspected":
        # The logs cannot decide, the questions' own wording still speaks.
        return {**alone, "message": f"{alone['message']} The logs do not settle it ({told})."}
    return finding("leakage", "all", word, n=best.n_first, measured=best.value, interval=best.interval,
                   threshold=LIMITS.leak_strong if word == "strong" else LIMITS.leak,
                   message=f"The set's questions match passages of the corpus {said} log questions of the same length "
                           f"do ({told}).")


def _said(found: Auc) -> str:
    assert found.interval is not None, "compare() gives none without"
    return f"AUC {found.value:.2f}, 95 % {found.interval.low:.2f} to {found.interval.high:.2f}"


def _without_logs(values: list[Overlap], covered: list[float]) -> dict[str, Any]:
    if len(covered) < LIMITS.leak_n:
        return finding("leakage", "all", "too_few", n=len(covered), threshold=LIMITS.leak_n,
                       message=f"{len(covered)} questions with gold are fewer than {LIMITS.leak_n}, and there is no "
                               "log to compare them with.")
    copied = sum(value.copied >= LIMITS.copied_run for value in values)
    median = statistics.median(covered)
    if said := _copied_too_often(copied, len(values)):
        return said
    if median > LIMITS.idfcov:
        return finding("leakage", "all", "suspected", n=len(covered), measured=median, threshold=LIMITS.idfcov,
                       message=f"The median question has {percent(median)} of its rare wording in its gold; short "
                               "questions do so by themselves, so compare with real ones.")
    return finding("leakage", "all", "no_reference", n=len(covered), measured=median, threshold=LIMITS.idfcov,
                   message=f"Nothing stands out (median idf coverage {percent(median)}), but without real questions to "
                           "compare with that is no acquittal.")


def _shown(context: Context, overlaps: dict[str, Overlap], logs: list[Overlap],
           known: list[Overlap]) -> list[dict[str, Any]]:
    values = list(overlaps.values())
    rows = []
    for name, said in (("idfcov", "Half of the questions have {:.2f} or more of their rare wording in their gold "
                                  "(median idf coverage)."),
                       ("norm", "For half of the questions the gold reaches {:.2f} or more of the highest BM25 that a "
                                "passage could have.")):
        numbers = [getattr(value, name) for value in values if getattr(value, name) is not None]
        if numbers:
            rows.append(finding("leakage", "all", name, n=len(numbers), measured=statistics.median(numbers),
                                message=said.format(statistics.median(numbers))))
    copied = sum(value.copied >= LIMITS.copied_run for value in values)
    rows.append(finding("leakage", "all", "copied", n=len(values), measured=copied / len(values),
                        interval=wilson(copied / len(values), len(values)) or (None, None),
                        message=f"{copied} of {len(values)} questions repeat {LIMITS.copied_run} or more words of "
                                "their gold in a row."))
    rows += _plain_ratio(values, logs, known)
    here = statistics.fmean(value.unknown for value in values)
    there = f", in the logs {percent(statistics.fmean(log.unknown for log in logs))}" if logs else ""
    there += f", in the reference set {percent(statistics.fmean(row.unknown for row in known))}" if known else ""
    rows.append(finding("leakage", "all", "unknown_terms", n=len(values), measured=here,
                        message=f"{percent(here)} of the set's question terms stand in no passage{there}; they are "
                                "left out of the comparison (typos and names would make a clean set look copied)."))
    return rows + _rank(context) + _origins(context, overlaps, logs, known)


def _plain_ratio(values: list[Overlap], logs: list[Overlap], known: list[Overlap]) -> list[dict[str, Any]]:
    """Mean BM25 of the set's gold over that of real questions, and how much of it length alone explains."""
    mine = [row for row in values if row.plain is not None]
    theirs = [(row.plain, row) for row in known if row.plain is not None] or [
        (row.top * row.attainable, row) for row in logs if row.top is not None]
    below = statistics.fmean(score for score, _ in theirs) if theirs else 0.0
    if not mine or not below:
        return []
    ratio = statistics.fmean(row.plain or 0.0 for row in mine) / below
    reach = [statistics.fmean(row.attainable for row in rows) for rows in (mine, [row for _, row in theirs])]
    words = [statistics.fmean(row.terms for row in rows) for rows in (mine, [row for _, row in theirs])]
    against = "the gold of the reference set" if known else "the log questions' best passages"
    return [finding("leakage", "all", "bm25_ratio", n=len(mine), measured=ratio,
                    message=f"Plain BM25 of the gold is {ratio:.2f} times that of {against}, which proves nothing: "
                            "BM25 is a sum over the question's terms, and here a perfect match alone would give "
                            f"{reach[0] / reach[1]:.2f} times as much ({words[0]:.1f} terms a question against "
                            f"{words[1]:.1f}). The comparisons above are within a length.")]


def _rank(context: Context) -> list[dict[str, Any]]:
    """Share of questions whose best gold is BM25's first result."""
    system = BM25_NAME if context.given.keys() <= {BM25_NAME} and BM25_NAME in context.runs else next(
        (name for name in context.runs if context.family(name) == frozenset({"lexical"})), None)
    if system is None:
        return []
    best = context.delivered(system).groupby("question_id")["lenient"].min()
    first = int((best <= 1).sum())
    return [finding("leakage", system, "rank", n=len(best), measured=first / len(best),
                    interval=wilson(first / len(best), len(best)) or (None, None),
                    message=f"{system} puts gold first for {first} of {len(best)} questions "
                            f"({percent(first / len(best))}).")]


def _origins(context: Context, overlaps: dict[str, Overlap], logs: list[Overlap],
             known: list[Overlap]) -> list[dict[str, Any]]:
    """Coverage, copied runs and, where there is a reference, the AUC by where the questions come from."""
    table = context.labelled.questions
    assert table is not None, "questions have texts"
    origin = dict(zip(table.column("question_id").to_pylist(), table.column("origin").to_pylist(), strict=True))
    groups: dict[str, list[Overlap]] = {}
    for question, value in overlaps.items():
        if value.idfcov is not None:
            groups.setdefault(origin[question], []).append(value)
    if len(groups) < 2:
        return []
    rows = []
    for name, mine in sorted(groups.items()):
        median = statistics.median(row.idfcov or 0.0 for row in mine)
        copied = sum(row.copied >= LIMITS.copied_run for row in mine)
        found = (compare(mine, known, "idfcov", "idfcov") if known else
                 compare(mine, logs, "top", "top") if logs else None)
        enough = min(len(mine), len(known or logs)) >= LIMITS.leak_n
        told = f"; against real questions {_said(found)}" if found and enough else ""
        rows.append(finding("leakage", f"origin {name}", "origin", n=len(mine), measured=median,
                            message=f"{plural(len(mine), 'question')} of origin '{name}': median idf coverage "
                                    f"{median:.2f}, {copied} with {LIMITS.copied_run} or more copied words{told}."))
    return rows
