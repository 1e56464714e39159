"""Does the share of gold outside a system's results hang on near twins that the set keeps apart? (METHODS 5)."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from goldset.audit.context import Context, percent
from goldset.audit.verdicts import LIMITS, finding
from goldset.spans.neartwins import similarity

MOST = 300
"""Gold passages that are compared with the results, the first by id; each is compared with fifty."""


def near_twins_outside(context: Context, system: str, outside: pd.DataFrame, gold: int, depth: int) -> \
        list[dict[str, Any]]:
    """Gold (question_id, span_id) outside a system's first ``depth`` results -> how much of it has a near twin inside.

    Only sets with texts. Where merging the twins moves the share by more than the limit, the number says so.
    """
    if context.corpus is None or outside.empty:
        return []
    looked = outside.sort_values(["question_id", "span_id"]).head(MOST)
    results: dict[str, list[str]] = {}
    run = context.runs[system]
    head = run.filter(pc.and_(pc.less_equal(run.column("rank"), depth),
                              pc.is_in(run.column("question_id"), pa.array(looked["question_id"].unique()))))
    for question, chunk in zip(head.column("question_id").to_pylist(), head.column("chunk_id").to_pylist(),
                               strict=True):
        results.setdefault(question, []).append(chunk)
    chunks = context.corpus.chunks
    rows = chunks.filter(pc.is_in(chunks.column("chunk_id"), pc.unique(head.column("chunk_id"))))
    texts = dict(zip(rows.column("chunk_id").to_pylist(), rows.column("text").to_pylist(), strict=True))
    best = [_closest(context.span_texts[span], [texts[chunk] for chunk in results.get(question, ()) if chunk in texts])
            for question, span in zip(looked["question_id"], looked["span_id"], strict=True)]
    left = [len(looked) - sum(value >= bar for value in best) for bar in (LIMITS.near_twin, LIMITS.nearer_twin)]
    if left[0] == len(looked):
        return []
    moved = (len(looked) - left[0]) / len(looked) * len(outside) / gold
    flag = (f", more than {100 * LIMITS.twin_shift:g} points: it hangs on near twins that the set keeps apart"
            if moved > LIMITS.twin_shift else "")
    return [finding("circularity", system, "near_twins", n=len(looked), measured=moved, threshold=LIMITS.twin_shift,
                    message=f"Of {len(looked)} gold spans outside {system} top {depth}, "
                            f"{len(looked) - left[0]} have a near twin inside (similarity {LIMITS.near_twin:g}; "
                            f"{len(looked) - left[1]} at {LIMITS.nearer_twin:g}): with near twins merged the share "
                            f"outside is {percent(moved)} of the gold less{flag}.")]


def _closest(text: str, others: list[str]) -> float:
    words = len(text.split())
    # Two texts of unlike length cannot be so much alike: there are fewer common runs than the shorter one has.
    near = [other for other in others if LIMITS.near_twin * words <= len(other.split()) + 1
            and LIMITS.near_twin * len(other.split()) <= words + 1]
    return max((similarity(text, other) for other in near), default=0.0)
