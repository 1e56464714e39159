"""What stands beside recall at one k: the curve, the k of a headline figure, the loss by step, what was served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from goldset.errors import DataError, UsageError, nearest
from goldset.formats.sets import LabelledSet

if TYPE_CHECKING:
    from goldset.metrics import Curve, CurveSums
    from goldset.report.curve import Curves


@dataclass(frozen=True)
class Section:
    """A part of the answer: its key in the JSON document, its value there, its lines on a terminal."""

    key: str
    value: Any
    lines: list[str]


def curve_section(found: Sequence[Curve | CurveSums], *, ks: Sequence[int] = ()) -> Section:
    """Recall against k with its 95 % band: every k in the document, a handful on the terminal."""
    from goldset.metrics import shown_ks

    rows, lines = [], ["recall against k (95 % band):"]
    for curve in found:
        mine = curve.rows()
        rows += mine
        shown = set(shown_ks(curve.deepest, ks))
        lines += [f"  {row['system']}  {row['k']:>5}  {interval(row['value'], row['low'], row['high'])}"
                  for row in mine if row["k"] in shown]
        if curve.left_out:
            lines.append(f"  {curve.name}: {curve.left_out} questions left out, their evidence is missing")
    return Section("curve", rows, lines)


def curves_of(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, served_k: int | None = None,
              evaluated_k: int | None = None, chunks: pa.Table | None = None) -> Curves | None:
    """Recall against k of every system, as it is plotted; see ``drawn``."""
    from goldset.metrics import curves

    return drawn(labelled, curves(labelled, runs, chunks=chunks), served_k=served_k, evaluated_k=evaluated_k)


def drawn(labelled: LabelledSet, found: Sequence[Curve | CurveSums], *, served_k: int | None = None,
          evaluated_k: int | None = None) -> Curves | None:
    """Curves -> the picture; None where no question has gold whose delivery is known.

    The served and the evaluated k are the version's where none is given.
    """
    from goldset.metrics import plotted_ks
    from goldset.report.curve import Curves, Line

    scoring = labelled.manifest.get("scoring", {})
    told = {"served": served_k or scoring.get("served_k"), "evaluated": evaluated_k or scoring.get("evaluated_k")}
    marks = {name: int(k) for name, k in told.items() if k}
    lines = []
    for curve in found:
        rows = [row for row in curve.rows(plotted_ks(curve.deepest, marks.values())) if row["value"] is not None]
        if rows:
            ks, values, low, high = ([row[name] for row in rows] for name in ("k", "value", "low", "high"))
            lines.append(Line(curve.name, ks, values, low, high, rows[0]["n"]))
    return Curves(labelled.label, lines, marks) if lines else None


def plot_form(path: Path) -> str:
    """``svg`` or ``png``, by the name of the file; UsageError where it ends in neither."""
    form = path.suffix.lower().removeprefix(".")
    if form not in ("svg", "png"):
        raise UsageError(f"--plot {path}: the name must end in .svg or .png")
    return form


def write_plot(labelled: LabelledSet, found: Sequence[Curve | CurveSums], path: Path, *, ks: Sequence[int] = (),
               evaluated_k: int | None = None) -> None:
    """Recall against k with its band, systems side by side, the served and the evaluated k marked -> SVG or PNG.

    The served k is the smallest that is asked for, else the version's.

    Raises:
        UsageError: the name of the file ends in neither .svg nor .png.
    """
    from goldset.store import write_bytes

    form = plot_form(path)
    picture = drawn(labelled, found, served_k=min(ks, default=None), evaluated_k=evaluated_k)
    if picture is None:
        raise DataError(f"--plot {path}: no question of {labelled.label} has gold whose delivery is known")
    write_bytes(path, picture.file(form))


def headline_section(labelled: LabelledSet, runs: Mapping[str, pa.Table], headline: float, *,
                     chunks: pa.Table | None = None) -> Section:
    """The k at which a headline figure is true of each system, with its interval (METHODS 7)."""
    from goldset.metrics import curves

    rows, lines = [], []
    for curve in curves(labelled, runs, chunks=chunks):
        found = curve.reach(headline)
        if found is None:
            rows.append({"system": curve.name, "headline": headline, "k": None, "deepest": curve.deepest,
                         "low": None, "high": None, "n": 0})
            lines.append(f"{curve.name}: no question with gold, so no k can be named for {headline:g}")
            continue
        here, low, high = found
        rows.append({"system": curve.name, "headline": headline, "k": here.k, "deepest": curve.deepest, "low": low.k,
                     "high": high.k, "n": len(curve.recalls)})
        lines.append(f"{curve.name}: a recall of {headline:g} is reached at k = {here} (95 % {low} to {high}); "
                     f"its true reading is recall@{here.k}" if here.k else
                     f"{curve.name}: a recall of {headline:g} is not reached down to k = {curve.deepest} "
                     f"(95 % {low} to {high})")
    return Section("headline", rows, lines)


def loss_section(labelled: LabelledSet, runs: Mapping[str, pa.Table], retrieved: Mapping[str, pa.Table], *,
                 served_k: int, retrieved_k: int, evaluated_k: int | None) -> Section:
    """Where recall is lost between the retrieved list and what the reader gets."""
    from goldset.metrics import loss_split

    rows: list[dict[str, Any]] = []
    for name, table in retrieved.items():
        if name not in runs:
            raise UsageError(f"--retrieved {name}=…: no --run is called '{name}'; {nearest(name, runs)}")
        rows += loss_split(labelled, name, runs[name], table, served_k=served_k, retrieved_k=retrieved_k,
                           evaluated_k=evaluated_k)
    what = {"retrieval": "retrieving {to_k} and not {from_k}", "cut": "reranking and serving {to_k} of {from_k}"}
    lines = [f"{row['system']}: {what[row['step']].format(**row)} loses "
             f"{interval(row['loss'], row['low'], row['high'])} ({number(row['before'])} to {number(row['after'])}, "
             f"{row['n']} questions)" for row in rows]
    return Section("loss", rows, lines)


def slices_section(rows: list[dict[str, Any]]) -> Section:
    """Rows of ``slice_differences``: which slices differ from the rest, and which are too small to say anything."""
    lines = []
    for row in rows:
        where = f"{row['system']} at {row['k']}, {row['slice']}"
        if row["reason"] == "too_few":
            lines.append(f"{where}: {row['n']} questions with gold; under 20 in a slice, or outside it, tell nothing")
        elif row["p_holm"] is not None:
            lines.append(f"{where}: {number(row['value'])} against {number(row['rest'])} in the rest, Holm-adjusted "
                         f"p = {row['p_holm']:.3f}{'' if row['p_holm'] < 0.05 else ': no difference shown'}")
    return Section("slices", rows, lines)


def served_section(counts: Mapping[int, int]) -> Section:
    """How many passages reached the reader."""
    total = sum(counts.values())
    shares = ", ".join(f"{size} in {count / total:.1%}" for size, count in counts.items())
    return Section("served", [{"passages": size, "answers": count} for size, count in counts.items()],
                   [f"passages that reached the reader in {total:,} answers: {shares}"])


def number(value: float | None) -> str:
    """Three decimals, or ``unknown``."""
    return "unknown" if value is None else f"{value:.3f}"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """``0.500 (0.400 to 0.600)``."""
    return number(value) + ("" if low is None or high is None else f" ({low:.3f} to {high:.3f})")


@dataclass(frozen=True)
class Beside:
    """What is asked for beside recall at one k.

    ``by`` compares slices; ``served`` counts the answers by the passages that reached the reader; ``retrieved`` are
    the lists before reranking, of which ``retrieved_k`` are handed on.
    """

    curve: bool = False
    by: Sequence[str] = ()
    headline: float | None = None
    served: Mapping[int, int] | None = None
    retrieved: Mapping[str, pa.Table] = field(default_factory=dict)
    retrieved_k: int | None = None
    evaluated_k: int | None = None

    def sections(self, labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int],
                 chunks: pa.Table | None) -> tuple[Section, ...]:
        """The sections, in the order in which they are printed.

        Raises:
            UsageError: a retrieved list without its k, or of a system without a run, or without a served k.
        """
        found = [] if self.served is None else [served_section(self.served)]
        from goldset.metrics import curves, slice_differences

        if self.by and ks:
            found.append(slices_section(slice_differences(labelled, runs, ks=ks, by=self.by, chunks=chunks)))
        if self.curve:
            found.append(curve_section(curves(labelled, runs, chunks=chunks), ks=ks))
        if self.headline is not None:
            found.append(headline_section(labelled, runs, self.headline, chunks=chunks))
        if bool(self.retrieved) != (self.retrieved_k is not None):
            raise UsageError("--retrieved and --retrieve-k go together: the list before reranking, and how much of it "
                             "is handed on")
        if self.retrieved and self.retrieved_k is not None:
            if not ks or chunks is not None:
                raise UsageError("--retrieved: the loss is split at --k, in the chunking of the set; leave out "
                                 "--budget and --chunks")
            found.append(loss_section(labelled, runs, self.retrieved, served_k=min(ks), retrieved_k=self.retrieved_k,
                                      evaluated_k=self.evaluated_k))
        return tuple(found)
