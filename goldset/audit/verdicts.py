"""The one table from the checks' words to pass, warn, fail, insufficient, and every threshold the audit uses.

A word is what a check found (``truncated``, ``leak``, ``one_gold`` …); it becomes the ``reason`` of a finding, and the
verdict follows from the table alone. ``shown`` words carry a number for people and decide nothing: they pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa


def _limit(value: float, doc: str) -> Any:
    return field(default=value, metadata={"doc": doc})


@dataclass(frozen=True)
class Limits:
    """Thresholds and minimum sample sizes; conventions where their text says so (METHODS 5 to 8)."""

    stale_fail: float = _limit(0.05, "share of gold that does not resolve above which the set fails")
    oversized_words: int = _limit(1000, "words above which a gold passage is oversized (a convention)")
    overlap: int = _limit(100, "characters that two gold passages of a question share when one answer counts twice")
    copied_labels: float = _limit(0.05, "upper bound of the disagreement below which second labels are copies")
    chance_agreement: float = _limit(0.9, "agreement by chance above which never to differ proves no copying")
    kappa: float = _limit(0.4, "assessors: reliable from this lower bound of kappa, unreliable below it (a convention)")
    depth: int = _limit(50, "circularity: gold outside this rank of a system was not chosen by it alone")
    outside: float = _limit(0.05, "circularity: healthy from this lower bound of the share outside, low below it")
    circularity_n: int = _limit(10, "circularity: questions with gold needed for any word")
    alpha: float = _limit(0.05, "level of the cliff (after Bonferroni) and of the control asymmetry")
    cliff_convicts: float = _limit(0.25, "cliff: ratio of neighbouring octaves that no honest rank law undercuts")
    cliff_suspects: float = _limit(0.5, "cliff: ratio that a few honest rank laws undercut")
    probe_rate: float = _limit(0.005, "circularity: lower bound of the share of relevant among probed results outside "
                                      "the cut, above what readers miss")
    near_twin: float = _limit(0.8, "circularity: similarity of passages that may count as the same")
    nearer_twin: float = _limit(0.95, "circularity: similarity of passages that nearly are the same")
    twin_shift: float = _limit(0.02, "circularity: share of the gold by which merging near twins moves what is "
                                     "outside, above which it is told")
    leak: float = _limit(0.60, "leakage: lower bound of the AUC from which it is a leak (a convention)")
    leak_strong: float = _limit(0.71, "leakage: lower bound of the AUC from which it is strong (a convention)")
    leak_proof: float = _limit(0.50, "leakage: lower bound of the AUC against the best passages of the logs")
    leak_n: int = _limit(50, "leakage: questions needed on each side")
    idfcov: float = _limit(0.8, "leakage without logs: median idf coverage above which it is suspected")
    copied_run: int = _limit(5, "leakage: words in a row that count as copied")
    copied: float = _limit(0.15, "leakage without logs: lower bound of the share of questions with a copied run from "
                                 "which it is suspected (a convention: people's questions stay below it)")
    one_gold: float = _limit(0.90, "completeness: lower bound of the share of questions with one gold")
    complete: float = _limit(0.90, "completeness: complete above, incomplete below")
    completeness_n: int = _limit(20, "completeness: questions with gold needed for the one-gold screen")
    rejections_n: int = _limit(300, "completeness: rejections read (or all of them) for an estimate of missed gold")
    k_n: int = _limit(10, "k mismatch: questions with gold needed for a recall")


LIMITS = Limits()


@dataclass(frozen=True)
class Word:
    """One row of the table: a check's word, its verdict, what it means, and the step that follows."""

    check: str
    reason: str
    verdict: str
    meaning: str
    remedy: str | None = None


_MORE_RUNS = "audit with the top 100 of a second, unrelated system (--run NAME=FILE)"
_OTHERS = ("pool unrelated systems, or add gold that people found by searching themselves; then label what the pool "
           "adds (goldset rebuild)")

TABLE: tuple[Word, ...] = (
    Word("integrity", "clean", "pass", "ids resolve, nothing stands twice"),
    Word("integrity", "no_gold", "fail", "no question has a relevant passage", "check the labels and --relevant-from"),
    Word("integrity", "unresolved", "warn", "some gold is not in the corpus as it was labelled",
         "give the corpus the labels were made on"),
    Word("integrity", "stale", "fail", "so much gold is not in the corpus that recall cannot be believed",
         "give the corpus the labels were made on"),
    Word("integrity", "current", "pass", "the gold stands in today's documents as it was labelled"),
    Word("integrity", "moved", "warn", "the gold's text is in today's documents, some of it at another place",
         "score against the documents that the labels were made on, or re-anchor the set (goldset reanchor)"),
    Word("integrity", "aged", "warn", "some gold is changed in today's documents, or gone",
         "have people read the named passages again (goldset reanchor lists them for a version)"),
    Word("integrity", "outdated", "fail", "so much gold is changed or gone that recall on today's documents means "
         "little",
         "label again on today's documents (goldset rebuild), or score against those the labels were made on"),
    Word("integrity", "unknown_ids", "warn", "a run returns ids that the corpus does not hold",
         "check that run and corpus come from the same index"),
    Word("integrity", "foreign_run", "fail", "no id of a run resolves",
         "the run belongs to another chunking or collection: give the matching corpus or run"),
    Word("integrity", "missing_questions", "warn", "questions with gold that a run does not answer",
         "run the system on all questions of the set; a missing question counts as nothing found"),
    Word("integrity", "extra_questions", "pass", "questions of a run that the set does not label; ignored"),
    Word("integrity", "twins", "warn", "the same text is gold twice for one question",
         "label one passage of each twin group"),
    Word("integrity", "overlap", "warn", "gold passages of one question overlap: one answer counts twice",
         "label disjoint passages, or publish with spans (goldset rebuild)"),
    Word("integrity", "oversized_gold", "warn", "gold so long that finding it says little",
         "label the sentences that answer, or chunks of the size that production serves"),
    Word("integrity", "copied_labels", "warn", "an assessor's second labels are copies of the first",
         "have second labels given blind, and leave these out of any agreement"),
    Word("integrity", "unreliable", "warn", "the assessors do not agree, so the labels depend on who gave them",
         "sharpen the rubric, adjudicate the pairs that differ, and label them again"),
    Word("integrity", "reliable", "pass", "the assessors agree"),
    Word("integrity", "agreement", "pass", "shown: agreement of the assessors, where it allows no verdict"),
    Word("integrity", "ceiling", "pass", "shown: recall of a perfect system on this set"),
    Word("integrity", "duplicate_questions", "warn", "the same question stands under several ids",
         "merge them; each copy counts as an independent question otherwise"),
    Word("integrity", "empty_gold", "warn", "gold without text", "drop these labels or restore the text"),
    Word("integrity", "unjudged", "pass", "pairs marked as pooled but not judged; they are no labels"),
    Word("integrity", "note", "warn", "the reader met something that needs a look",
         "open the named line and mend the file"),
    Word("integrity", "read", "pass", "the reader ignored something harmless"),
    Word("circularity", "healthy", "pass", "enough gold lies outside what this system returns"),
    Word("circularity", "truncated", "fail",
         "gold ends at a rank of this system: its results chose the gold, so its recall comes out too high", _OTHERS),
    Word("circularity", "circular", "fail",
         "its results chose the gold: next to none outside, and a drop at the k in use with a control that disagrees, "
         "or a probe that found unlabelled answers there rather than inside", _OTHERS),
    Word("circularity", "suspected", "warn", "signs of a set made from this system's results, short of proof",
         "have people read unlabelled results of an unrelated system (--probe DIR), or audit with the build-time run"),
    Word("circularity", "low", "warn", "next to no gold outside: a strong system, or a set made from its results",
         "have people read unlabelled results of an unrelated system (--probe DIR): if relevant ones turn up, it is "
         "circular"),
    Word("circularity", "inconclusive", "insufficient", "the interval does not tell low from healthy",
         "label more questions; even with none outside it takes 59 to tell"),
    Word("circularity", "too_few", "insufficient", "too few questions with gold", "label more questions"),
    Word("circularity", "too_shallow", "insufficient", "the run does not reach the ranks that matter",
         "give the run's top 100"),
    Word("circularity", "no_run", "insufficient", "nothing to compare the gold with",
         "give a run (--run NAME=FILE), or the corpus (--corpus FILE) so that BM25 can be run"),
    Word("circularity", "asymmetry", "pass", "shown: a control system against this one"),
    Word("circularity", "near_twins", "pass", "shown: gold outside that has a near twin inside"),
    Word("circularity", "probed", "pass", "shown: what a probe found that this system does not return"),
    Word("circularity", "family_out", "pass", "shown: recall without the gold that only one family found"),
    Word("circularity", "unjudged", "pass", "shown: share of the top results that nobody judged"),
    Word("leakage", "none", "pass", "questions share no more words with their gold than the logs' do"),
    Word("leakage", "from_log", "pass", "every question was drawn from the log, none written from a passage"),
    Word("leakage", "leak", "fail",
         "questions copy the wording of their gold, so they are easier to answer than real ones",
         "draw questions from the logs instead of writing them from passages (goldset rebuild)"),
    Word("leakage", "strong", "fail",
         "questions copy the wording of their gold throughout, so they are far easier to answer than real ones",
         "draw questions from the logs instead of writing them from passages (goldset rebuild)"),
    Word("leakage", "suspected", "warn", "much shared wording, nothing to compare it with",
         "give real questions (--logs FILE, or --reference SET with gold) to tell copying from the users' vocabulary"),
    Word("leakage", "inconclusive", "insufficient", "the interval does not tell leak from none",
         "add questions to the set or to the logs"),
    Word("leakage", "too_few", "insufficient", "too few questions on one side",
         "50 questions with gold and 50 log questions are needed"),
    Word("leakage", "no_reference", "insufficient", "no real questions to compare with",
         "give a log of real questions (--logs FILE), or a set of them with gold (--reference SET)"),
    Word("leakage", "no_text", "insufficient", "the set has no texts",
         "give the texts: --questions FILE and --corpus FILE"),
    Word("leakage", "idfcov", "pass", "shown: share of a question's rare wording that its gold holds"),
    Word("leakage", "norm", "pass", "shown: BM25 of the gold against the highest attainable"),
    Word("leakage", "rank", "pass", "shown: where BM25 puts the gold"),
    Word("leakage", "copied", "pass", "shown: questions with a copied run of words"),
    Word("leakage", "bm25_ratio", "pass", "shown: the plain BM25 ratio, and why it proves nothing"),
    Word("leakage", "unknown_terms", "pass", "shown: question words that stand in no passage"),
    Word("leakage", "origin", "pass", "shown: coverage by where the questions come from"),
    Word("k_mismatch", "mismatch", "fail", "recall is quoted at a larger k than production serves",
         "quote recall at the served k"),
    Word("k_mismatch", "mismatch_below", "warn", "recall is quoted at a smaller k than production serves",
         "quote recall at the served k"),
    Word("k_mismatch", "equal", "pass", "recall is quoted at the k that production serves"),
    Word("k_mismatch", "not_measured", "insufficient", "which k is quoted and which is served is not known",
         "give --eval-k, and --serving-k or --served-log"),
    Word("k_mismatch", "served_less", "fail", "fewer passages reach readers than production is said to serve",
         "quote recall at the k of the log, or find out what cuts the list"),
    Word("k_mismatch", "served_more", "warn", "more passages reach readers than production is said to serve",
         "quote recall at the k of the log"),
    Word("k_mismatch", "served_as_said", "pass", "as many passages reach readers as production is said to serve"),
    Word("k_mismatch", "observed", "pass", "shown: how many passages reach readers"),
    Word("k_mismatch", "recall", "pass", "shown: recall at one k"),
    Word("k_mismatch", "retrieval_loss", "pass", "shown: recall lost by retrieving fewer passages than are quoted"),
    Word("k_mismatch", "rerank_loss", "pass", "shown: recall lost by reranking and the cut to the served k"),
    Word("k_mismatch", "recall_not_measured", "insufficient", "recall at this k cannot be measured from this run",
         "give the list that reaches the reader, deep enough, as the served system's run"),
    Word("completeness", "complete", "pass", "next to nothing relevant is unlabelled"),
    Word("completeness", "incomplete", "fail", "relevant passages are unlabelled, and who finds them gets no credit",
         "read more of the rejections, and label unlabelled top results of unrelated systems"),
    Word("completeness", "one_gold", "warn",
         "nearly every question has one gold passage: recall equals hit rate, and further answers count for nothing",
         "label further answers: have people judge unlabelled top results of two unrelated systems"),
    Word("completeness", "inconclusive", "insufficient", "the interval does not tell complete from incomplete",
         "read more of the judge's rejections"),
    Word("completeness", "pool_only", "insufficient", "complete within its pool; nobody looked outside it",
         "grade the pool with a system that does not feed it (audit_only = true)"),
    Word("completeness", "unprobed", "insufficient", "nobody has looked at what is unlabelled",
         "have people judge two unlabelled top-10 passages a question from unrelated systems (--probe DIR)"),
    Word("completeness", "probe_open", "insufficient", "the probe waits for people",
         "answer it on the page: the same command with --answer"),
    Word("completeness", "probe_recall", "pass", "shown: recall with the gold that the probe stands for"),
    Word("completeness", "too_few", "insufficient", "too few questions with gold", "label more questions"),
    Word("completeness", "holes", "pass", "shown: top results of an independent system that nobody judged"),
)

_WORDS = {(word.check, word.reason): word for word in TABLE}
_SEVERITY = ("fail", "warn", "insufficient", "pass")


def learn(words: Iterable[Word]) -> None:
    """Add the words of a further check to the table; a word that is there with another verdict is our own bug."""
    for row in words:
        known = _WORDS.setdefault((row.check, row.reason), row)
        assert known == row, f"the word '{row.reason}' of the check '{row.check}' is there already, as {known}"


def word(check: str, reason: str) -> Word:
    """The table's row for a reason; ``recall@10`` is looked up as ``recall``, ``note:x`` as ``note``."""
    stem = reason.split("@")[0].split(":")[0]
    assert (check, stem) in _WORDS, f"no word '{stem}' for the check '{check}' in audit/verdicts.py"
    return _WORDS[check, stem]


def decides(check: str, reason: str) -> bool:
    """Whether a reason is a word with a verdict; False where it only shows a number."""
    return not word(check, reason).meaning.startswith("shown: ")


def finding(check: str, subject: str, reason: str, *, n: int, message: str, measured: float | None = None,
            interval: tuple[float | None, float | None] = (None, None), threshold: float | None = None,
            remedy: str | None = None) -> dict[str, Any]:
    """One row of the table findings; verdict and default remedy come from the table of words."""
    row = word(check, reason)
    number = [None if value is None else float(value) for value in (measured, *interval, threshold)]
    return {"check": check, "subject": subject, "verdict": row.verdict, "reason": reason, "measured": number[0],
            "low": number[1], "high": number[2], "threshold": number[3], "n": int(n), "message": message,
            "remedy": remedy or row.remedy}


def worst(verdicts: Iterable[str]) -> str:
    """The gravest of some verdicts: fail, then warn, then insufficient, then pass; insufficient if there is none."""
    given = set(verdicts)
    return next((verdict for verdict in _SEVERITY if verdict in given), "insufficient")


def overall(findings: pa.Table) -> str:
    """Table findings -> one verdict for the set.

    ``fail`` if anything failed, else ``warn`` if anything warned, else ``insufficient`` if any check could not
    decide, else ``pass``: a set passes only when every check could look and found nothing.
    """
    return worst(findings.column("verdict").to_pylist())


def by_check(findings: pa.Table) -> dict[str, str]:
    """Table findings -> check -> its gravest verdict, in the order of the rows."""
    verdicts: dict[str, list[str]] = {}
    for check, verdict in zip(findings.column("check").to_pylist(), findings.column("verdict").to_pylist(),
                              strict=True):
        verdicts.setdefault(check, []).append(verdict)
    return {check: worst(given) for check, given in verdicts.items()}


def limits() -> list[tuple[str, float, str]]:
    """Every threshold as (name, value, what it is), for reports."""
    return [(item.name, getattr(LIMITS, item.name), item.metadata["doc"]) for item in fields(LIMITS)]


def describe() -> str:
    """The table of words and verdicts and the limits, as Markdown for the README."""
    rows = [f"| {row.check} | {row.reason.replace('_', ' ')} | {row.verdict} | {row.meaning} |" for row in TABLE
            if not row.meaning.startswith("shown:")]
    bars = [f"| {name.replace('_', ' ')} | {value:g} | {doc} |" for name, value, doc in limits()]
    return "\n".join(["| check | word | verdict | means |", "|---|---|---|---|", *rows, "",
                      "| limit | value | what it is |", "|---|---|---|", *bars])
