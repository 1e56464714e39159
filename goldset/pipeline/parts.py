"""Recall and comparison of files that are too large to hold: the questions come in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from goldset.formats.parts import PART_BYTES, OddError, Source, split_files
from goldset.pipeline.curves import Section, curve_section, served_section, slices_section, write_plot
from goldset.pipeline.scores import Compared, Measured


def recall_in_parts(source: Source, runs: Mapping[str, Path], *, ks: Sequence[int], relevant_from: int | None = None,
                    by: Sequence[str] = (), curve: bool = False, served: Mapping[int, int] | None = None,
                    plot: Path | None = None, evaluated_k: int | None = None,
                    part_bytes: int = PART_BYTES) -> Measured | None:
    """A set and runs in files -> what ``recall_any`` says of them, in memory that does not grow with the rows.

    None where a file is out of the ordinary or ids do not join: then they have to be read whole, which says why.
    """
    from goldset.metrics.parts import score_parts

    cutoffs = tuple(sorted(set(ks)))
    try:
        with split_files(source, runs, relevant_from=relevant_from, part_bytes=part_bytes) as split:
            found = score_parts(split.parts, ks=cutoffs, label=split.labelled.label, by=by,
                                curve=curve or plot is not None)
    except OddError:
        return None
    sections: list[Section] = [] if served is None else [served_section(served)]
    if by:
        sections.append(slices_section(found.slices))
    if curve:
        sections.append(curve_section(found.curves, ks=cutoffs))
    if plot is not None:
        write_plot(split.labelled, found.curves, plot, ks=cutoffs, evaluated_k=evaluated_k)
    return Measured(split.labelled, found.measurements, [], tuple(sections), cutoffs)


def compare_in_parts(source: Source, runs: Mapping[str, Path], *, k: int, relevant_from: int | None = None,
                     part_bytes: int = PART_BYTES) -> Compared | None:
    """A set and two runs in files -> what ``compare_any`` says of them; None as above."""
    from goldset.metrics.parts import compare_parts

    a, b = runs
    try:
        with split_files(source, runs, relevant_from=relevant_from, part_bytes=part_bytes) as split:
            return Compared(compare_parts(split.parts, k, names=(a, b), label=split.labelled.label))
    except OddError:
        return None
