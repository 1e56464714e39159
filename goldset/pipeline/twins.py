"""Near twins of a project's corpus: what is alike, what became of it, and what people decide."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from goldset.config import Config
from goldset.errors import DataError, UsageError, nearest
from goldset.pipeline.runner import rebuild
from goldset.spans import (
    TWINS,
    TwinDecision,
    append_decision,
    decided_pairs,
    exact_groups,
    in_force,
    merge_twins,
    near_twins,
    read_decisions,
)
from goldset.spans.neartwins import LISTED, similarity


@dataclass(frozen=True)
class Twins:
    """The spans of a configuration as they are now, and the decisions about them."""

    config: Config
    spans: pa.Table

    @classmethod
    def load(cls, config: Config) -> Twins:
        """Cut and fold the corpus, or take what a rebuild has made of it already."""
        return cls(config, rebuild(config, until="spans", quiet=True).table("spans"))

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        return {row["span_id"]: row for row in self._exact.select(
            ["span_id", "text", "text_hash", "twin_group", "doc_id"]).to_pylist()}

    @cached_property
    def _exact(self) -> pa.Table:
        return exact_groups(self.spans)

    @cached_property
    def _alike(self) -> list[dict[str, Any]]:
        """Pairs from the similarity on that is listed, or merged by the configuration where that is less."""
        return near_twins(self._exact, threshold=min(LISTED, self.config.corpus.merge_near_twins or LISTED))

    @property
    def decisions(self) -> list[TwinDecision]:
        """Decisions in force."""
        return list(in_force(read_decisions(self.config.workspace / TWINS)).values())

    def listed(self) -> list[dict[str, Any]]:
        """Pairs that are alike or were decided, most alike first.

        Each has left, right, similarity, left_text, right_text, and state: open, merged (with by and time, or by the
        configuration where by is null) or kept (by, time).
        """
        pairs = {(pair["left"], pair["right"]): pair for pair in self._alike}
        said: dict[tuple[str, str], TwinDecision] = {}
        for decision in self.decisions:
            merge, apart, _ = decided_pairs(self._exact, [decision])
            for one, other in [*((pair["left"], pair["right"]) for pair in merge), *apart]:
                said[min(one, other), max(one, other)] = decision
        group = dict(zip(*(self._now().column(name).to_pylist() for name in ("span_id", "twin_group")), strict=True))
        found = []
        for left, right in sorted({*pairs, *said}):
            texts = self._rows[left]["text"], self._rows[right]["text"]
            decided = said.get((left, right))
            joined = group[left] == group[right]
            found.append({
                "left": left, "right": right,
                "similarity": pairs[left, right]["similarity"] if (left, right) in pairs else similarity(*texts),
                "state": "kept" if decided and decided.action == "keep" else "merged" if joined else "open",
                "by": decided.by if decided else None, "time": decided.time.isoformat() if decided else None,
                "left_text": texts[0], "right_text": texts[1]})
        return sorted(found, key=lambda pair: (-float(pair["similarity"]), pair["left"], pair["right"]))

    def _now(self) -> pa.Table:
        """Groups under the decisions in force and the configuration's threshold."""
        merge, apart, _ = decided_pairs(self._exact, self.decisions)
        least = self.config.corpus.merge_near_twins
        merge += [pair for pair in self._alike if least is not None and pair["similarity"] >= least]
        return merge_twins(self._exact, merge, apart)

    def decide(self, action: str, left: str, right: str, *, by: str, time: datetime) -> float:
        """Store what somebody decides about two spans -> their similarity.

        Raises:
            DataError: no such span.
            UsageError: the two are one text, there is nothing to undo, or the decision contradicts another one.
        """
        one, other = self._row(left), self._row(right)
        if one["twin_group"] == other["twin_group"]:
            raise UsageError(f"'{left}' and '{right}' are the same text and are judged once anyway; name two spans "
                             "that differ")
        decision = TwinDecision.of(action, (one["text_hash"], left), (other["text_hash"], right), by=by, time=time)
        standing = in_force(read_decisions(self.config.workspace / TWINS))
        before = standing.pop(decision.texts, None)
        if action == "undo" and before is None:
            raise UsageError(f"nobody has decided anything about '{left}' and '{right}'; 'goldset twins list' shows "
                             "what was decided")
        if action != "undo":
            self._refuse_contradiction(decision, list(standing.values()))
        append_decision(self.config.workspace / TWINS, decision)
        return similarity(one["text"], other["text"])

    def _refuse_contradiction(self, decision: TwinDecision, others: list[TwinDecision]) -> None:
        """A text that is merged with both of two that are kept apart."""
        merge, apart, _ = decided_pairs(self._exact, [*others, decision])
        merged = merge_twins(self._exact, merge)
        group = dict(zip(*(merged.column(name).to_pylist() for name in ("span_id", "twin_group")), strict=True))
        for one, other in apart:
            if group[one] == group[other]:
                raise UsageError(f"'{one}' and '{other}' cannot be kept apart and be merged, directly or through other "
                                 "spans; undo one of the decisions that 'goldset twins list' shows first")

    def _row(self, span_id: str) -> dict[str, Any]:
        if span_id not in self._rows:
            raise DataError(f"no span '{span_id}' in the corpus; {nearest(span_id, self._rows)}; 'goldset twins list' "
                            "shows the ids")
        return self._rows[span_id]
