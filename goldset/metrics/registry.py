"""Every measure: its name, what it is, and where that comes from. Outputs, README and tests read this table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One measure. ``formula`` is over questions; @k cuts the served list first, duplicates keep their slot."""

    name: str
    formula: str
    source: str
    cutoff: bool = True


_ALL = (
    Measure("recall", "mean over questions with gold of delivered / gold",
            "mean of each question's recall, as trec_eval has it where there is gold"),
    Measure("recall_low", "recall under the strict reading where evidence is missing: half of the span is served",
            "hit rule, strict end"),
    Measure("recall_high", "recall under the lenient reading where evidence is missing: half of the shorter of span "
            "and chunk is shared", "hit rule, lenient end"),
    Measure("recall_ties_low", "recall if equal scores that straddle the cut fell against the gold",
            "tie exposure; trec_eval breaks such ties by id"),
    Measure("recall_ties_high", "recall if equal scores that straddle the cut fell for the gold", "tie exposure"),
    Measure("recall_ceiling", "mean over questions with gold of gold that is in the corpus / gold, 0 for a question "
            "that the run lacks: no order of the results can exceed it", "dangling ids, partial runs", cutoff=False),
    Measure("recall_micro", "(delivered + weighted finds delivered) / (gold + weighted finds), over all questions",
            "Horvitz and Thompson (1952), as a ratio; weight = 1 / chance of being read"),
    Measure("recall_micro_naive", "sum of delivered / sum of gold", "all gold in one pot"),
    Measure("recall_macro_ht", "mean recall corrected for the sampled rejections, linearised",
            "Horvitz and Thompson (1952), linearised; exact where a question misses at most one passage"),
    Measure("recall_deep", "recall_micro with the weighted finds of the deep probe among the gold: what stands below "
            "the pool's depth and in the first results of a system outside it, and nothing beyond",
            "Horvitz and Thompson (1952), as a ratio"),
    Measure("recall_traffic", "sum of f x delivered / gold over sum of f, f = how often a question was asked; only "
            "where distinct questions were drawn", "Hájek (1971), a ratio"),
    Measure("recall_floor", "mean over labelled questions of delivered / gold, questions without gold count 0",
            "lower bound where 'not found' may mean 'not there'"),
    Measure("recall_capped", "mean over questions with gold of delivered / min(gold, k)", "attainable share at k"),
    Measure("facet_recall", "mean over questions with gold of facets delivered / facets",
            "a facet is one part of a need"),
    Measure("hit", "share of questions with gold of which any gold is delivered", "success at k"),
    Measure("unjudged", "mean over questions with results of the share of served chunks that nobody judged",
            "judged at k, reversed"),
    Measure("mrr", "mean over questions with gold of 1 / rank of the first delivered gold, 0 below the cut",
            "Voorhees (1999)"),
    Measure("ndcg", "mean over questions with gold of DCG / ideal DCG, gain / log2(1 + rank); gain = grade, or 1 at "
            "each rank that completes a gold", "Järvelin and Kekäläinen (2002)"),
    Measure("answerable", "share of labelled questions with gold, weighted finds included",
            "Horvitz and Thompson (1952)", cutoff=False),
)
MEASURES: dict[str, Measure] = {measure.name: measure for measure in _ALL}

REASONS: dict[str, str] = {
    "no_gold": "no question of the slice has known gold",
    "no_labelled_question": "no question of the slice has been labelled",
    "no_results": "the system returned nothing for any question of the slice",
    "evidence_missing": "gold without evidence is read two ways, and they differ: see recall_low and recall_high",
    "macro_unreliable": "less than 80 % of the estimated gold is confirmed; the macro estimate over-corrects there",
    "no_rejection_sample": "nobody sampled what the judge rejected, so there is nothing to correct by",
    "no_deep_probe": "nobody looked below the pool: 'goldset deepen' draws a deep probe for people to read",
    "deep_probe_unread": "people have not read the deep probe, or not all of its strata",
    "traffic_on_few_questions": "weighted by how often they were asked, the questions count as fewer than 30 (Kish)",
    "texts_missing": "which chunks were judged needs the set's chunks and spans",
}
"""Why a value is null."""

COUNTED = "counted_"
"""Prefix of entries in ``excluded`` that count questions which *are* in the value, as the rest of the name says."""

EXCLUDED: dict[str, str] = {
    "no_gold": "labelled, and nobody found an answer",
    "only_sampled_gold": "gold only from the sample of rejections: enters the weighted measures",
    "not_labelled": "not labelled yet",
    "no_results": "the system returned nothing",
    "not_in_set": "questions of the run that the set does not have",
    "counted_missing": "not in the run: counted as nothing delivered",
    "counted_empty": "answered with an empty list: counted as nothing delivered",
    "counted_more_gold_than_k": "have more gold than k: cannot reach 1",
    "counted_tied": "have equal scores on both sides of the cut, gold among them",
    "counted_gold_outside": "have gold that is not among the passages of the set",
    "counted_unknown_chunk": "were served a chunk that the set does not know",
}
"""What entries in ``excluded`` mean."""
