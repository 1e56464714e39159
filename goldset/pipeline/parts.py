"""Recall of files that are too large to hold: the questions come in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from goldset.formats.parts import PART_BYTES, OddError, split_files
from goldset.pipeline.scores import Measured


def recall_in_parts(qrels: Path, runs: Mapping[str, Path], *, ks: Sequence[int], relevant_from: int | None = None,
                    part_bytes: int = PART_BYTES) -> Measured | None:
    """Qrels and TREC runs -> what ``recall_any`` says of them, in memory that does not grow with the questions.

    None where a file is out of the ordinary or ids do not join: then they have to be read whole, which says why.
    """
    from goldset.metrics.parts import score_parts

    try:
        with split_files(qrels, runs, relevant_from=relevant_from, part_bytes=part_bytes) as split:
            measurements = score_parts(split.parts, ks=ks, label=split.labelled.label)
            return Measured(split.labelled, measurements, [], cutoffs=tuple(sorted(set(ks))))
    except OddError:
        return None
