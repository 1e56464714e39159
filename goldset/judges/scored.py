"""Judges that score a pair and say yes from a threshold on; the threshold comes from people's labels."""

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

_BATCH = 512  # pairs scored and stored together


class Scorer(Protocol):
    """What gives the scores."""

    @property
    def unit(self) -> str:
        """What a score is, e.g. cosine."""

    @property
    def rule(self) -> str:
        """How a pair is scored, in words and with a version: part of the judge's identity."""

    @property
    def identity(self) -> Any:
        """Model, weights, dtype and libraries: everything that can change a score. JSON-able."""

    def score(self, questions: Sequence[str], passages: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Questions and passages, pairwise -> score (greatest over windows of the passage) and number of windows.

        The score of a pair does not depend on what else is scored with it.
        """

    def cut(self, questions: Sequence[str]) -> list[bool]:
        """Whether ``score`` sees less than the whole question."""


class ThresholdJudge:
    """Relevant when the score reaches the calibrated threshold.

    Raises:
        DataError: too few labels for a threshold, or none that does better than chance.
    """

    def __init__(self, scorer: Scorer, *, kind: str, weak: bool, model: str, family: str, rubric: Rubric,
                 calibration: Path) -> None:
        self.kind = kind
        self.declared_weak = weak
        self.family = family
        self.rubric = rubric
        self._scorer = scorer
        self._model = model
        labelled = read_calibration(calibration)
        relevant = [pair.relevant for pair in labelled]
        check_enough(relevant, str(calibration))  # before the model is put to work
        scores, _ = scorer.score([pair.question for pair in labelled], [pair.passage for pair in labelled])
        self.threshold = choose_threshold(scores, relevant, str(calibration))
        self._labels_hash = content_hash([[pair.question, pair.passage, pair.relevant] for pair in labelled])
        self._identity = content_hash(kind, scorer.identity, scorer.rule, self.threshold.value, rubric.hash)
        self.judge_id = f"{kind}:{model}:{self._identity[:12]}"

    def card_info(self) -> dict[str, Any]:
        """Model, threshold, and how it did on the labels it was chosen on."""
        chosen = self.threshold
        return {"kind": self.kind, "judge_id": self.judge_id, "family": self.family,
                "declared_weak": self.declared_weak, "model": self._model, "encoder": self._scorer.identity,
                "rule": self._scorer.rule, "threshold": chosen.value,
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
        scores, windows = self._scorer.score(asked, [pair.passage for pair in pairs])
        made = []
        for pair, score, count, cut in zip(pairs, scores, windows, self._scorer.cut(asked), strict=True):
            relevant = bool(score >= self.threshold.value)
            unseen = cut and not relevant  # a question that was not seen whole is no ground for a rejection
            made.append(Verdict(
                question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=1, attempt=1,
                status="truncated" if unseen else "ok", relevant=None if unseen else relevant, score=float(score),
                raw=canonical_json({self._scorer.unit: float(score), "windows": int(count)}),
                cache_key=self.fingerprint(pair), prompt_hash=self.rubric.hash, model_asked=self._model))
        return made


def _asked(pair: Pair) -> str:
    return pair.need or pair.question


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Texts -> each once, in order, and the place of each text among them."""
    index: dict[str, int] = {}
    places = [index.setdefault(text, len(index)) for text in texts]
    return list(index), places
