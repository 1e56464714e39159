"""A threshold for scores, computed from people's labels; there is no default one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldset.errors import DataError
from goldset.formats.lines import json_lines

LEAST_OF_EACH = 10


@dataclass(frozen=True)
class LabelledPair:
    """A question and a passage with people's answer."""

    question: str
    passage: str
    relevant: bool


@dataclass(frozen=True)
class Threshold:
    """Where scores become verdicts: relevant from ``value`` on.

    Attributes:
        value: in the unit of the scores.
        tp: relevant pairs at or above it.
        fn: relevant pairs below it.
        fp: other pairs at or above it.
        tn: other pairs below it.
    """

    value: float
    tp: int
    fn: int
    fp: int
    tn: int

    @property
    def sensitivity(self) -> float:
        """Share of the relevant pairs that it finds, on the pairs it was chosen on (so rather too good)."""
        return self.tp / (self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """Share of the other pairs that it rejects, on the pairs it was chosen on (so rather too good)."""
        return self.tn / (self.tn + self.fp)


def read_calibration(path: Path) -> list[LabelledPair]:
    """Read JSONL of question, passage, relevant (true or false; null = cannot be told, left out).

    Raises:
        DataError: names the line that cannot be used.
    """
    pairs = []
    for number, row in json_lines(path):
        question, passage, relevant = row.get("question"), row.get("passage"), row.get("relevant")
        for key, value in (("question", question), ("passage", passage)):
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"{path}, line {number}: {key} is {value!r} where a text was expected")
        if "relevant" not in row or not isinstance(relevant, bool | None):
            raise DataError(f"{path}, line {number}: relevant is {relevant!r}; write true, false, or null "
                            "where people could not tell")
        if relevant is not None:
            pairs.append(LabelledPair(str(question), str(passage), relevant))
    return pairs


def check_enough(labels: Sequence[bool], where: str) -> None:
    """Refuse to compute a threshold from too few labels; DataError says how many more are needed."""
    yes = sum(labels)
    no = len(labels) - yes
    wanted = [f"{LEAST_OF_EACH - have} more {what}" for have, what in ((yes, "relevant"), (no, "not relevant"))
              if have < LEAST_OF_EACH]
    if wanted:
        raise DataError(f"{where}: {yes} relevant and {no} not relevant pairs, at least {LEAST_OF_EACH} of each are "
                        f"needed for a threshold; label {' and '.join(wanted)}")


def choose_threshold(scores: NDArray[np.float64], relevant: Sequence[bool], where: str) -> Threshold:
    """The threshold with the greatest Youden J = sensitivity + specificity - 1 (Youden 1950, Cancer 3:32).

    It lies midway between two neighbouring scores. Of equal J the lowest is taken: a missed answer costs more
    than one more passage to read.

    Args:
        scores: one a pair.
        relevant: people's answers, in the same order.
        where: what an error names, e.g. the calibration file.

    Raises:
        DataError: too few of a class, or no threshold does better than chance.
    """
    check_enough(relevant, where)
    truth = np.asarray(relevant, dtype=bool)
    yes, no = int(truth.sum()), int((~truth).sum())
    levels = np.unique(scores)
    best: tuple[int, int] | None = None
    for index, level in enumerate(levels):  # ascending, so the first of equal J is the lowest threshold
        tp, fp = int((truth & (scores >= level)).sum()), int((~truth & (scores >= level)).sum())
        gain = tp * no - fp * yes  # J times yes times no: whole numbers, so that equal is equal
        if best is None or gain > best[0]:
            best = gain, index
    assert best is not None
    if best[0] <= 0:
        raise DataError(f"{where}: no threshold separates relevant from not relevant pairs better than chance; this "
                        "judge cannot be used here, or the labels are mixed up")
    level = float(levels[best[1]])
    below = float(levels[best[1] - 1]) if best[1] else level
    middle = below + (level - below) / 2
    value = middle if middle > below else level
    tp, fp = int((truth & (scores >= value)).sum()), int((~truth & (scores >= value)).sum())
    return Threshold(value, tp, yes - tp, fp, no - fp)
