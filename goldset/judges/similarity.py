"""The judge kind ``similarity``: an encoder's cosine, declared weak.

It ranks what people should read first; a cosine knows topics, not answers. Its threshold comes from people's labels,
and long passages are scored window by window, so that no part of a passage goes unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from goldset.judges.base import Desk, Pair
from goldset.judges.rubric import Rubric
from goldset.judges.threshold import check_enough, choose_threshold, read_calibration
from goldset.judges.verdict import Verdict
from goldset.text import canonical_json, content_hash

_BATCH = 512  # pairs encoded and stored together
_RULE = "cosine, greatest over windows, of the need or else the question/1"


class PassageEncoder(Protocol):
    """The part of goldset.encoder.Encoder that the judge uses."""

    @property
    def identity(self) -> Any:
        """Model, weights, dtype and libraries: everything that can change a vector."""

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> NDArray[np.float32]:
        """Texts -> unit vectors, one a row."""

    def encode_passages(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False
                        ) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
        """Passages -> unit vectors of their windows, the passage each belongs to, passages with several windows."""

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text."""


class CosineJudge:
    """Relevant when the greatest cosine over the passage's windows reaches the calibrated threshold."""

    kind = "similarity"
    declared_weak = True

    def __init__(self, encoder: PassageEncoder, *, model: str, family: str, rubric: Rubric, calibration: Path) -> None:
        self.family = family
        self.rubric = rubric
        self._encoder = encoder
        self._model = model
        labelled = read_calibration(calibration)
        relevant = [pair.relevant for pair in labelled]
        check_enough(relevant, str(calibration))  # before the encoder is put to work
        scores, _ = self._scores([pair.question for pair in labelled], [pair.passage for pair in labelled])
        self.threshold = choose_threshold(scores, relevant, str(calibration))
        self._labels_hash = content_hash([[pair.question, pair.passage, pair.relevant] for pair in labelled])
        self._identity = content_hash(self.kind, _plain(encoder.identity), _RULE, self.threshold.value, rubric.hash)
        self.judge_id = f"{self.kind}:{model}:{self._identity[:12]}"

    def card_info(self) -> dict[str, Any]:
        """Encoder, threshold, and how it did on the labels it was chosen on."""
        chosen = self.threshold
        return {"kind": self.kind, "judge_id": self.judge_id, "family": self.family,
                "declared_weak": self.declared_weak, "model": self._model,
                "encoder": _plain(self._encoder.identity), "rule": _RULE, "threshold": chosen.value,
                "calibration": {"hash": self._labels_hash, "tp": chosen.tp, "fn": chosen.fn, "fp": chosen.fp,
                                "tn": chosen.tn, "sensitivity_in_sample": chosen.sensitivity,
                                "specificity_in_sample": chosen.specificity},
                "rubric_version": self.rubric.version, "rubric_hash": self.rubric.hash}

    def fingerprint(self, pair: Pair) -> str:
        """Hash of everything that can change the score."""
        return content_hash(self._identity, _asked(pair), pair.passage)

    def judge(self, pairs: Sequence[Pair], desk: Desk) -> list[Verdict]:
        """Pairs -> verdicts; see ``Judge.judge``. A call is one pair that the store does not hold."""
        verdicts, new = [], []
        for pair in pairs:
            known = desk.known(self.fingerprint(pair), pair)
            if known is None:
                new.append(pair)
            else:
                verdicts.append(known)
        desk.done(len(verdicts))
        covered = desk.meter.covered(len(new))
        for first in range(0, covered, _BATCH):
            batch = new[first : min(first + _BATCH, covered)]
            desk.meter.count(len(batch))
            made = self._verdicts(batch)
            desk.file(made)
            verdicts.extend(made)
            desk.done(len(batch))
        if covered < len(new):
            raise desk.meter.stop("calls")
        return verdicts

    def _verdicts(self, pairs: Sequence[Pair]) -> list[Verdict]:
        asked = [_asked(pair) for pair in pairs]
        scores, windows = self._scores(asked, [pair.passage for pair in pairs])
        made = []
        for pair, score, count, cut in zip(pairs, scores, windows, self._encoder.cut(asked), strict=True):
            relevant = bool(score >= self.threshold.value)
            unseen = cut and not relevant  # a question that was not seen whole is no ground for a rejection
            made.append(Verdict(
                question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=1, attempt=1,
                status="truncated" if unseen else "ok", relevant=None if unseen else relevant, score=float(score),
                raw=canonical_json({"cosine": float(score), "windows": int(count)}),
                cache_key=self.fingerprint(pair), prompt_hash=self.rubric.hash, model_asked=self._model))
        return made

    def _scores(self, questions: Sequence[str], passages: Sequence[str]
                ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Questions and passages, pairwise -> cosine (greatest over windows) and number of windows."""
        asked, ask = _distinct(questions)
        read, seen = _distinct(passages)
        queries = self._encoder.encode(asked, quiet=True).astype(np.float64)
        windows, owner, _ = self._encoder.encode_passages(read, quiet=True)
        order = np.argsort(owner, kind="stable")
        vectors, owner = windows.astype(np.float64)[order], owner[order]
        first = np.searchsorted(owner, np.arange(len(read) + 1))
        scores = np.array([
            # A row-wise sum: the score of a pair does not depend on what else is in the batch.
            float((vectors[first[p] : first[p + 1]] * queries[q]).sum(axis=1).max())
            for q, p in zip(ask, seen, strict=True)
        ], dtype=np.float64)
        return scores, np.diff(first)[seen] if len(seen) else np.array([], dtype=np.int64)


def _asked(pair: Pair) -> str:
    return pair.need or pair.question


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    index: dict[str, int] = {}
    places = [index.setdefault(text, len(index)) for text in texts]
    return list(index), places


def _plain(identity: Any) -> Any:
    return identity if isinstance(identity, str | dict) else str(identity)
