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

from goldset.judges.rubric import Rubric
from goldset.judges.scored import ThresholdJudge, distinct


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


class CosineScorer:
    """Cosine of the question and the passage's windows; the greatest counts."""

    unit = "cosine"
    rule = "cosine, greatest over windows, of the need or else the question/1"

    def __init__(self, encoder: PassageEncoder) -> None:
        self._encoder = encoder
        self.identity = encoder.identity if isinstance(encoder.identity, str | dict) else str(encoder.identity)

    def score(self, questions: Sequence[str], passages: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """See ``Scorer.score``."""
        asked, ask = distinct(questions)
        read, seen = distinct(passages)
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

    def cut(self, questions: Sequence[str]) -> list[bool]:
        """See ``Scorer.cut``."""
        return self._encoder.cut(questions)


class CosineJudge(ThresholdJudge):
    """Relevant when the greatest cosine over the passage's windows reaches the calibrated threshold."""

    def __init__(self, encoder: PassageEncoder, *, model: str, family: str, rubric: Rubric, calibration: Path) -> None:
        super().__init__(CosineScorer(encoder), kind="similarity", weak=True, model=model, family=family,
                         rubric=rubric, calibration=calibration)
