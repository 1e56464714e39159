"""Reciprocal rank fusion of other systems (Cormack, Clarke, Büttcher 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from goldset.retrievers.base import Answer, Retriever, tabulate
from goldset.retrievers.scope import KnownChunks, beyond_scope

DEEPER = 4  # the fused lists are this many times deeper than what is asked for
UNKNOWN = ("failed", "missing")


class HybridRetriever:
    """score(chunk) = sum over the parts that return it of weight / (k + rank); ties by chunk_id.

    The lists are four times as deep as the result, so that a chunk in the lower half of both is not lost. A question
    for which a part failed, or has no list in its run file, fails here too: the rest alone is another system.

    Args:
        name: system.
        family: union of the parts' families.
        parts: fused systems.
        weights: one a part.
        known: the corpus' chunks; what a part returned beyond a question's scope is not fused.
        k: rank constant.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        parts: Sequence[Retriever],
        weights: Sequence[float],
        known: KnownChunks,
        k: int = 60,
    ) -> None:
        self.name, self.family = name, family
        self._parts, self._weights, self._known, self._k = list(parts), list(weights), known, k

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; score = the fused score."""
        ids = questions.column("question_id").to_pylist()
        frames: list[pd.DataFrame] = []
        notes: dict[str, list[str]] = {}
        unknown: set[str] = set()
        for part, weight in zip(self._parts, self._weights, strict=True):
            run, status = part.search(questions, DEEPER * depth)
            run = run.filter(pa.array(~beyond_scope(run, questions, self._known)))
            frame = run.select(["question_id", "chunk_id", "rank"]).to_pandas()
            frames.append(frame.assign(score=weight / (self._k + frame.pop("rank"))))
            for row in status.to_pylist():
                if row["status"] in (*UNKNOWN, "no_tokens"):
                    notes.setdefault(row["question_id"], []).append(f"{part.name}: {row['status']}")
                if row["status"] in UNKNOWN:
                    unknown.add(row["question_id"])
        fused = self._fuse(pd.concat(frames, ignore_index=True), depth)
        answers = []
        for question in ids:
            detail = "; ".join(notes[question]) if question in notes else None
            if question in unknown:
                answers.append(Answer(status="failed", detail=detail))
            else:
                chunks, scores = fused.get(question, ([], []))
                answers.append(Answer(chunks, scores, detail=detail))
        return tabulate(self.name, self.family, ids, answers)

    @staticmethod
    def _fuse(lists: pd.DataFrame, depth: int) -> dict[str, tuple[list[str], list[float]]]:
        summed = lists.groupby(["question_id", "chunk_id"], sort=False)["score"].sum().reset_index()
        # Sums of the same ranks in another order differ in the last bits: they tie.
        summed["score"] = summed["score"].round(12)
        summed = summed.sort_values(["question_id", "score", "chunk_id"], ascending=[True, False, True])
        best = summed.groupby("question_id", sort=False).head(depth)
        return {
            str(question): (group["chunk_id"].tolist(), group["score"].tolist())
            for question, group in best.groupby("question_id", sort=False)
        }
