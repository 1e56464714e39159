"""Runs -> candidates: the union of what the systems returned, folded onto canonical spans."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from goldset.schemas import RANK, conform, schema_of
from goldset.spans import main_span
from goldset.text import count_words

HALF = 0.5  # a span is a candidate if one chunk covers this much of it
PAIR = ["question_id", "span_id"]
NO_RANK = 0  # of a chunk that no system ranked; ranks count from 1


class PoolTables(NamedTuple):
    """Table candidates and what the pool report says."""

    candidates: pa.Table
    report: dict[str, Any]


def pool_candidates(
    *,
    run: pa.Table,
    spans: pa.Table,
    links: pa.Table,
    depth: int,
    audit_only: frozenset[str] = frozenset(),
    chunks: pa.Table | None = None,
    unranked: pa.Table | None = None,
) -> PoolTables:
    """Tables run, spans, span_links -> table candidates, keyed by question and the representative of a twin group.

    A pooled chunk makes candidates of the span that holds most of its text and of every other span of which it covers
    at least half: never none. Systems in ``audit_only`` feed nothing; the report grades the pool by them. ``unranked``
    chunks (of old labelled sets) enter at any depth and stand among the systems, without a rank. Rows in the order of
    question_id and span_id, whatever the order of the input.

    The report (counts, or means over the questions for which a system returned something; null where there are none):

    * ``chunks_per_question``, ``chunk_words_per_question`` (null without ``chunks``): before folding, overlaps counted
      as often as they would be read;
    * ``spans_per_question``, ``words_per_question``: after folding; ``twins_folded``: pairs saved by twin groups;
    * ``unique_by_system``, ``unique_by_family``: candidates, and those that nobody else supplied;
    * ``overlap``: candidates that two systems share (the diagonal: all of one system's);
    * ``unlinked_chunks``: returned ids without a span, so that they could not be pooled;
    * ``words_in_no_candidate_per_question``: pooled text that lies in no candidate (at most: overlaps are added up);
    * ``audit_only``: candidates each such system would have given, and how many of them the pool holds.

    Args:
        run: table run of all systems.
        spans: table spans.
        links: table span_links.
        depth: ranks that enter.
        audit_only: systems that never feed the pool.
        chunks: table chunks, for the words before folding.
        unranked: columns system, family, question_id, chunk_id.
    """
    top = run.filter(pc.less_equal(run.column("rank"), depth)).drop_columns(["score"]).to_pandas()
    if unranked is not None:
        top = pd.concat([top, unranked.to_pandas().assign(rank=NO_RANK)], ignore_index=True)
    feeds = ~top["system"].isin(list(audit_only))
    # Of a large corpus most chunks were returned for no question.
    linked = _links(spans, links.filter(pc.is_in(links.column("chunk_id"), _ids(top["chunk_id"]))))
    chosen = linked[linked["chosen"]]
    best = _best_ranks(top[feeds], chosen)
    candidates = _candidates(best)
    asked = int(top.loc[feeds, "question_id"].nunique())
    report = {
        "depth": depth,
        "questions": asked,
        "candidates": len(candidates),
        "systems": sorted(top.loc[feeds, "system"].unique()),
        **_sizes(top[feeds], linked, best, spans, chunks, asked),
        **_contributions(best),
        "audit_only": _graded(top[~feeds], chosen, best),
    }
    return PoolTables(candidates, report)


def _ids(names: pd.Series[str]) -> pa.Array:
    return pa.array(names.unique(), pa.string())


def _links(spans: pa.Table, links: pa.Table) -> pd.DataFrame:
    """Links with the twin representative, the words of the span, and whether the chunk makes it a candidate."""
    frame = links.select(["chunk_id", "span_id", "span_share"]).to_pandas()
    most = frame["chunk_id"].map(main_span(links))
    frame["chosen"] = (frame["span_id"] == most) | (frame["span_share"] >= HALF)
    held = pc.is_in(spans.column("span_id"), _ids(frame["span_id"]))
    about = spans.select(["span_id", "twin_group", "words"]).filter(held).to_pandas()
    merged: pd.DataFrame = frame.merge(about, on="span_id", how="inner", validate="many_to_one")
    return merged


def _best_ranks(top: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """One row a question, representative span and system: its best rank; span_id is the representative from here."""
    pooled = top.merge(chosen, on="chunk_id")
    pooled["span_id"] = pooled["twin_group"]
    keys = ["question_id", "span_id", "system"]
    return pooled.groupby(keys, sort=True).agg(rank=("rank", "min"), family=("family", "first")).reset_index()


def _candidates(best: pd.DataFrame) -> pa.Table:
    """Best ranks, sorted by pair and system -> table candidates."""
    families = best[[*PAIR]].assign(family=best["family"].str.split("+", regex=False))
    families = families.explode("family").drop_duplicates().sort_values([*PAIR, "family"])
    starts, ends = _runs(best), _runs(families)
    pairs = best.drop_duplicates(PAIR)
    has_rank = best["rank"].to_numpy() != NO_RANK
    ranked = best[has_rank]
    ranks = pa.StructArray.from_arrays(
        [pa.array(ranked["system"], pa.string()), pa.array(ranked["rank"], pa.int32())], fields=list(RANK)
    )
    before = np.append(0, np.cumsum(has_rank))[np.asarray(starts)]
    columns = {
        "question_id": pa.array(pairs["question_id"], pa.string()),
        "span_id": pa.array(pairs["span_id"], pa.string()),
        "best_ranks": pa.ListArray.from_arrays(pa.array(before, pa.int32()), ranks),
        "systems": pa.ListArray.from_arrays(starts, pa.array(best["system"], pa.string())),
        "families": pa.ListArray.from_arrays(ends, pa.array(families["family"], pa.string())),
    }
    return conform(pa.table(columns, schema=schema_of("candidates")), "candidates")


def _runs(frame: pd.DataFrame) -> pa.Array:
    """Offsets of the pairs in a frame sorted by pair."""
    new = ~frame.duplicated(PAIR).to_numpy(dtype=bool)
    return pa.array(np.append(np.flatnonzero(new), len(frame)), pa.int32())


def _sizes(
    top: pd.DataFrame, linked: pd.DataFrame, best: pd.DataFrame, spans: pa.Table, chunks: pa.Table | None, asked: int
) -> dict[str, Any]:
    pooled = top[["question_id", "chunk_id"]].drop_duplicates()
    pairs = best[PAIR].drop_duplicates()
    about = spans.select(["span_id", "words"]).filter(pc.is_in(spans.column("span_id"), _ids(pairs["span_id"])))
    words = about.to_pandas().set_index("span_id")["words"]
    covered = pooled.merge(linked, on="chunk_id")
    before_twins = covered[covered["chosen"]][PAIR].drop_duplicates()
    chunk_words = None
    if chunks is not None:
        wanted = chunks.filter(pc.is_in(chunks.column("chunk_id"), _ids(pooled["chunk_id"])))
        ids, texts = wanted.column("chunk_id").to_pylist(), wanted.column("text").to_pylist()
        chunk_words = pooled["chunk_id"].map(dict(zip(ids, map(count_words, texts), strict=True))).sum()
    outside = _outside(covered, pairs)

    def mean(total: float | None) -> float | None:
        return None if total is None or not asked else float(total) / asked

    return {
        "chunks_per_question": mean(len(pooled)),
        "chunk_words_per_question": mean(chunk_words),
        "spans_per_question": mean(len(pairs)),
        "words_per_question": mean(words.reindex(pairs["span_id"]).sum()),
        "twins_folded": len(before_twins) - len(pairs),
        "unlinked_chunks": int((~pooled["chunk_id"].drop_duplicates().isin(linked["chunk_id"])).sum()),
        "words_in_no_candidate_per_question": mean(outside),
    }


def _outside(covered: pd.DataFrame, pairs: pd.DataFrame) -> float:
    """Words of pooled chunks in spans that are no candidate of the question."""
    inside = pd.MultiIndex.from_frame(pairs)
    mine = pd.MultiIndex.from_arrays([covered["question_id"], covered["twin_group"]])
    rest = covered[~mine.isin(inside)]
    share = rest.groupby(PAIR).agg(share=("span_share", "sum"), words=("words", "first"))
    # Rounded, so that the order of the input does not show in the last bits.
    return round(float((share["share"].clip(upper=1.0) * share["words"]).sum()), 6)


def _contributions(best: pd.DataFrame) -> dict[str, Any]:
    """Who supplied what: by system, by elementary family, and shared between systems."""
    families = best.assign(family=best["family"].str.split("+", regex=False)).explode("family")
    families = families[[*PAIR, "family"]].drop_duplicates()
    held = pd.crosstab([best["question_id"], best["span_id"]], best["system"]).clip(upper=1) if len(best) else None
    shared = {} if held is None else (held.T @ held).to_dict("index")
    return {
        "unique_by_system": _unique(best.rename(columns={"system": "by"})),
        "unique_by_family": _unique(families.rename(columns={"family": "by"})),
        "overlap": {str(one): {str(other): int(count) for other, count in row.items()} for one, row in shared.items()},
    }


def _unique(supplied: pd.DataFrame) -> dict[str, dict[str, int]]:
    alone = supplied.assign(alone=~supplied.duplicated(PAIR, keep=False)).groupby("by")["alone"]
    return {str(by): {"candidates": len(flags), "unique": int(flags.sum())} for by, flags in alone}


def _graded(top: pd.DataFrame, chosen: pd.DataFrame, best: pd.DataFrame) -> dict[str, dict[str, int]]:
    """What the pool holds of systems that did not feed it."""
    theirs = _best_ranks(top, chosen)
    inside = pd.MultiIndex.from_frame(best[PAIR].drop_duplicates())
    held = theirs.assign(held=pd.MultiIndex.from_frame(theirs[PAIR]).isin(inside)).groupby("system")["held"]
    return {str(system): {"candidates": len(flags), "in_pool": int(flags.sum())} for system, flags in held}
