"""served(): the one rule by which a list of chunks delivers a gold span."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import among, arrow
from goldset.errors import DataError
from goldset.schemas import conform
from goldset.spans.targets import Target, targets

if TYPE_CHECKING:  # joins of spans and chunks need pandas; delivery by id alone starts without it
    import pandas as pd

_EXACT = 1 - 1e-9
_NEVER = np.iinfo(np.int32).max


def served(
    *,
    gold: pa.Table,
    run: pa.Table,
    spans: pa.Table | None,
    links: pa.Table | None,
    chunks: pa.Table | None,
    threshold: float = 0.9,
) -> pa.Table:
    """gold, the run of one system -> deliveries: one row a gold row, in its order.

    A gold is delivered at the smallest rank down to which the returned chunks together hold at least ``threshold`` of
    the non-space code points of every evidence range (a table row: all of them). Chunks of twins of the gold span
    count, at the same place in the text. Ranks are those of the list as it was served: a duplicate keeps its slot.

    Where evidence is missing, ids decide if the span is exactly one chunk of this chunking (always so in BEIR and TREC
    sets, and where ``spans`` or ``chunks`` are not given). Else two readings are given: strict (``rank_low``), half of
    the span is held by the returned chunks together; lenient (``rank_high``), that, or one chunk shares half of the
    shorter of the two; ``rank`` only where they agree.

    Args:
        gold: table ``gold``; questions that the run does not have get no rank.
        run: table ``run`` of one system.
        spans: table ``spans`` of the set.
        links: table ``span_links``, of the chunking that the spans were made of.
        chunks: what the run's chunk ids mean; may be another chunking of the same documents.
        threshold: share of each evidence range that must be held.

    Raises:
        DataError: none of the run's chunk ids is known.
    """
    if chunks is not None:
        _check_resolves(run, chunks)
    if links is None and (spans is None or chunks is None):
        low = _own_ids(gold, run)
        return _deliveries(gold, low, low, pa.repeat(pa.scalar("id"), len(gold)))
    import pandas as pd

    rows = pd.DataFrame(
        {
            "gold": np.arange(len(gold)),
            "question_id": gold.column("question_id").to_pandas(),
            "span_id": gold.column("span_id").to_pandas(),
        }
    )
    evidence = pc.greater(pc.list_value_length(gold.column("evidence")), 0).to_numpy(zero_copy_only=False)
    by_id, measured = _ways(rows, evidence, spans, links, chunks)
    low = np.full(len(gold), _NEVER, np.int64)
    first = _ranks(run, by_id).groupby("gold")["rank"].min()
    low[first.index] = first
    high = low.copy()
    basis = np.where(measured, np.where(evidence, "evidence", "span_rule"), "id")
    if measured.any():
        assert spans is not None
        assert chunks is not None
        found, pairs = targets(
            rows=rows[measured],
            evidence=gold.column("evidence"),
            spans=spans,
            chunks=chunks,
            threshold=threshold,
        )
        _measure(found, _ranks(run, pairs), low, high)
        asked = pc.is_in(gold.column("question_id"), value_set=pc.unique(run.column("question_id")))
        lost = [number for number in rows["gold"][measured] if number not in found and low[number] == _NEVER]
        high[[number for number in lost if asked[number].as_py()]] = 1  # nobody can tell, so it may be the first
    return _deliveries(gold, low, high, pa.array(basis, pa.string()))


def _deliveries(gold: pa.Table, low: Any, high: Any, basis: pa.Array) -> pa.Table:
    table = pa.table(
        {
            "question_id": gold.column("question_id"),
            "span_id": gold.column("span_id"),
            **{
                name: arrow(values.astype(np.int32), null=values == _NEVER)
                for name, values in (
                    ("rank", np.where(low == high, low, _NEVER)),
                    ("rank_low", low),
                    ("rank_high", high),
                )
            },
            "basis": basis,
        }
    )
    return conform(table, "deliveries")


def _own_ids(gold: pa.Table, run: pa.Table) -> Any:
    """Smallest rank at which the chunk with the gold span's own id was returned for its question."""
    questions, spans = pc.unique(gold.column("question_id")), pc.unique(gold.column("span_id"))

    def pairs(question: pa.ChunkedArray, span: pa.ChunkedArray) -> Any:
        asked = pc.fill_null(pc.index_in(question, value_set=questions), -1).to_numpy().astype(np.int64)
        place = pc.fill_null(pc.index_in(span, value_set=spans), -1).to_numpy()
        return np.where((asked >= 0) & (place >= 0), asked * max(len(spans), 1) + place, -1)

    wanted, back = np.unique(pairs(gold.column("question_id"), gold.column("span_id")), return_inverse=True)
    low = np.full(len(wanted), _NEVER, np.int64)
    returned = pairs(run.column("question_id"), run.column("chunk_id"))
    rows = np.flatnonzero(returned >= 0)
    rows = rows[among(returned[rows], wanted)]
    np.minimum.at(low, np.searchsorted(wanted, returned[rows]), run.column("rank").to_numpy()[rows])
    return low[back]


def _check_resolves(run: pa.Table, chunks: pa.Table) -> None:
    ids = pc.unique(run.column("chunk_id"))
    if len(ids) and not pc.any(pc.is_in(ids, value_set=chunks.column("chunk_id"))).as_py():
        known = f"the corpus has ids like '{chunks.column('chunk_id')[0]}'" if len(chunks) else "the corpus has none"
        raise DataError(
            f"0 of {len(ids)} chunk ids in the run resolve to spans (the first is '{ids[0]}', {known}); "
            "give the chunks that this run was made from"
        )


def _ways(
    rows: pd.DataFrame, evidence: Any, spans: pa.Table | None, links: pa.Table | None, chunks: pa.Table | None
) -> tuple[pd.DataFrame, Any]:
    """Gold rows -> (gold, question_id, chunk_id) that deliver by id, and a mask of those to measure by offsets."""
    import pandas as pd

    own = rows.rename(columns={"span_id": "chunk_id"})
    if spans is None or chunks is None:
        exact = _exact(links, rows["span_id"], None)
        linked = rows.merge(exact, on="span_id")[["gold", "question_id", "chunk_id"]]
        return pd.concat([own, linked]).drop_duplicates(), np.zeros(len(rows), bool)
    groups = pa.table(
        {
            "span_id": spans.column("span_id"),
            "twin_group": spans.column("twin_group"),
            "placed": pc.is_valid(spans.column("start")),
        }
    )
    mine = groups.filter(_is_in(groups.column("span_id"), rows["span_id"])).to_pandas()
    twins = groups.filter(_is_in(groups.column("twin_group"), mine["twin_group"])).to_pandas()
    members = mine[["span_id", "twin_group"]].merge(twins.rename(columns={"span_id": "member"}), on="twin_group")[
        ["span_id", "member", "placed"]
    ]
    exact = _exact(links, members["member"], chunks).rename(columns={"span_id": "member"})
    members = members.merge(exact, on="member", how="left")
    ways = rows.assign(evidence=evidence).merge(members, on="span_id", how="left")
    unknown = ways["member"].isna()
    single = ways["chunk_id"].notna()
    by_offsets = ~unknown & (ways["evidence"] | ~single)
    measured = by_offsets.groupby(ways["gold"]).any().to_numpy() if len(ways) else np.zeros(len(rows), bool)
    ways.loc[unknown, "chunk_id"] = ways.loc[unknown, "span_id"]
    # With evidence, an exact chunk counts by id only where it has no offsets to be measured by.
    usable = ways["chunk_id"].notna() & (unknown | ~ways["evidence"] | (ways["placed"] == False))  # noqa: E712
    return ways.loc[usable, ["gold", "question_id", "chunk_id"]], measured


def _is_in(column: pa.ChunkedArray, values: pd.Series[Any]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(values.unique(), pa.string()))


def _exact(links: pa.Table | None, span_ids: pd.Series[Any], chunks: pa.Table | None) -> pd.DataFrame:
    """Spans that are exactly one chunk, and no other chunk touches -> (span_id, chunk_id)."""
    import pandas as pd

    if links is None:
        return pd.DataFrame({"span_id": pd.Series(dtype="str"), "chunk_id": pd.Series(dtype="str")})
    frame: pd.DataFrame = links.filter(_is_in(links.column("span_id"), span_ids)).to_pandas()
    frame = frame[~frame["span_id"].duplicated(keep=False)]
    frame = frame.loc[(frame["chunk_share"] >= _EXACT) & (frame["span_share"] >= _EXACT), ["span_id", "chunk_id"]]
    if chunks is not None:
        ids = pa.array(frame["chunk_id"], pa.string())
        frame = frame[pc.is_in(ids, value_set=chunks.column("chunk_id")).to_numpy(zero_copy_only=False)]
    return frame


def _ranks(run: pa.Table, pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of question and chunk that matter -> those that the run has, with their rank."""
    small = run.select(["question_id", "chunk_id", "rank"]).filter(_is_in(run.column("chunk_id"), pairs["chunk_id"]))
    return pairs.merge(small.to_pandas(), on=["question_id", "chunk_id"])


def _measure(found: dict[int, Target], ranks: pd.DataFrame, low: Any, high: Any) -> None:
    """Write the ranks of the golds that are measured by offsets."""
    ranks = ranks.sort_values(["gold", "rank"])
    owners = ranks["gold"].to_numpy()
    starts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
    columns = [ranks[name].tolist() for name in ("rank", "first", "last", "size")]
    for begin, end in itertools.pairwise([*starts, len(owners)]):
        number = int(owners[begin])
        strict, lenient = found[number].decide(list(zip(*(column[begin:end] for column in columns), strict=True)))
        low[number] = min(low[number], strict or _NEVER)
        high[number] = min(high[number], lenient or _NEVER)
