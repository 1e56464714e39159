"""The judge kind ``replay``: recorded verdicts, for tests, demonstrations and verdicts made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goldset.errors import DataError
from goldset.formats.lines import json_lines, opaque_id
from goldset.judges.base import Desk, Pair
from goldset.judges.rubric import Rubric
from goldset.judges.verdict import Verdict
from goldset.text import content_hash

_KEYS = ("question_id", "span_id", "relevant", "score", "quote")


class ReplayJudge:
    """Verdicts from a JSONL file of question_id, span_id, relevant (null = none), and optionally score and quote.

    A pair that the file does not hold has status ``empty``: nothing was recorded, so nothing is said.
    """

    kind = "replay"
    declared_weak = False

    def __init__(self, path: Path, family: str, rubric: Rubric) -> None:
        self.family = family
        self.rubric = rubric
        self._path = path
        self._recorded = _read(path)
        self._identity = content_hash("replay", sorted((*key, row) for key, row in self._recorded.items()))
        self.judge_id = f"replay:{self._identity[:12]}"

    def card_info(self) -> dict[str, Any]:
        """How many verdicts were recorded."""
        return {"kind": self.kind, "judge_id": self.judge_id, "family": self.family,
                "declared_weak": self.declared_weak, "recorded": len(self._recorded),
                "rubric_version": self.rubric.version, "rubric_hash": self.rubric.hash}

    def fingerprint(self, pair: Pair) -> str:
        """Recorded verdicts go by ids."""
        return content_hash(self._identity, pair.question_id, pair.span_id)

    def judge(self, pairs: Sequence[Pair], desk: Desk) -> list[Verdict]:
        """Pairs -> recorded verdicts. They lie in a file already: the store gets no copy, no call is counted."""
        verdicts = []
        for pair in pairs:
            row = self._recorded.get((pair.question_id, pair.span_id), {})
            relevant = row.get("relevant")
            verdicts.append(Verdict(
                question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=1, attempt=1,
                status="empty" if relevant is None else "ok", relevant=relevant, score=row.get("score"),
                quote=row.get("quote"), cache_key=self.fingerprint(pair), prompt_hash=self.rubric.hash, cached=True))
        desk.done(len(pairs))
        return verdicts


def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    recorded: dict[tuple[str, str], dict[str, Any]] = {}
    for number, row in json_lines(path):
        where = f"{path}, line {number}"
        unknown = sorted(set(row) - set(_KEYS))
        if unknown:
            raise DataError(f"{where}: unknown key '{unknown[0]}'; allowed: {', '.join(_KEYS)}")
        ids = opaque_id(row.get("question_id")), opaque_id(row.get("span_id"))
        if ids[0] is None or ids[1] is None:
            raise DataError(f"{where}: question_id and span_id must be strings")
        relevant, score, quote = row.get("relevant"), row.get("score"), row.get("quote")
        if "relevant" not in row or not isinstance(relevant, bool | None):
            raise DataError(f"{where}: relevant is {relevant!r}; write true, false, or null for no verdict")
        if isinstance(score, bool) or not isinstance(score, int | float | None) or not isinstance(quote, str | None):
            raise DataError(f"{where}: score must be a number and quote a string, or left out")
        key = (ids[0], ids[1])
        found = {"relevant": relevant, "score": None if score is None else float(score), "quote": quote}
        if recorded.setdefault(key, found) != found:
            raise DataError(f"{where}: a second, different verdict for question '{ids[0]}' and span '{ids[1]}'; "
                            "keep one")
    return recorded
