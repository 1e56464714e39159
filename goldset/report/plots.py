"""Interval plots as inline SVG, in the colours of the page, and recall against k as a file: no date, no random ids."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from goldset.errors import MissingExtra

_LABEL = 22
_INK = "#010203"
_COLOURS = {"fail": "#010204", "warn": "#010205", "insufficient": "#010206", "pass": "#010207"}


@dataclass(frozen=True)
class Mark:
    """One line of a plot: a value with its interval (None where there is none) and the verdict that colours it."""

    label: str
    value: float
    low: float | None
    high: float | None
    verdict: str


def interval_plot(marks: Sequence[Mark], *, name: str, axis: str, threshold: float | None = None,
                  limits: tuple[float, float] | None = (0.0, 1.0)) -> str:
    """Marks -> an ``<svg>`` element, one row a mark, a dashed line at the threshold; ids start with ``name``.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with _figure(4.6, 0.75 + 0.32 * len(marks)) as (figure, axes):
        for row, mark in enumerate(marks):
            colour = _COLOURS[mark.verdict]
            if mark.low is not None and mark.high is not None:
                axes.plot([mark.low, mark.high], [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([mark.value], [row], "o", color=colour, markersize=6)
        if threshold is not None:
            axes.axvline(threshold, color=_INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks(range(len(marks)), [_fitting(mark.label) for mark in marks])
        axes.set_ylim(len(marks) - 0.4, -0.6)
        if limits is not None:
            room = 0.015 * (limits[1] - limits[0])  # a mark at the edge is drawn whole
            axes.set_xlim(limits[0] - room, limits[1] + room)
        axes.set_xlabel(axis)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return _svg(figure, name)


@contextmanager
def _figure(width: float, height: float, *, ink: str = _INK) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes in a style of our own, whatever the user's is."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plots", "all") from error
    style: Any = {"svg.hashsalt": "goldset", "svg.fonttype": "none", "font.size": 10, "text.color": ink,
                  "axes.edgecolor": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink,
                  "font.family": "sans-serif"}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def _svg(figure: Any, name: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _inline(out.getvalue(), name)


def _fitting(label: str) -> str:
    """A label that leaves room for the plot; the text beside it has the whole."""
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def bar_plot(labels: Sequence[str], values: Sequence[float], shown: Sequence[str], *, name: str, axis: str) -> str:
    """Labels, heights and their texts -> an ``<svg>`` element with one bar a label; ids start with ``name``.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with _figure(4.6, 2.1) as (figure, axes):
        places = range(len(labels))
        axes.bar(places, values, color=_COLOURS["insufficient"], width=0.72)
        top = max([*values, 1e-9])
        for place, value, text in zip(places, values, shown, strict=True):
            if value:
                axes.text(place, value + 0.02 * top, text.removeprefix("0") if axis == "recall" else text,
                          ha="center", va="bottom", fontsize=8, color=_INK)
        axes.set_xticks(places, labels, rotation=45 if len(labels) > 8 or max(map(len, labels)) > 6 else 0,
                        ha="right" if len(labels) > 8 or max(map(len, labels)) > 6 else "center", fontsize=8)
        axes.set_ylim(0, 1.18 * top)
        axes.set_yticks([])
        axes.set_ylabel(axis)
        axes.spines[["top", "right", "left"]].set_visible(False)
        return _svg(figure, name)


def _inline(svg: str, name: str) -> str:
    """A whole SVG file -> an element for a page: no prologue, own ids, colours of the page, hidden from readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = svg.replace(_INK, "currentColor")
    for verdict, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{verdict})")
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


@dataclass(frozen=True)
class Line:
    """One system's curve: k, value, and its band (None where there is none)."""

    label: str
    ks: Sequence[int]
    values: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]


# Distinct to eyes that do not tell red from green, and told apart by their dashes in print (Okabe and Ito, 2008).
_LINES: tuple[tuple[str, Any], ...] = (
    ("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", "-."), ("#cc79a7", ":"), ("#e69f00", (0, (5, 1, 1, 1, 1, 1))),
    ("#56b4e9", (0, (1, 1))))


def curve_plot(lines: Sequence[Line], *, marks: Mapping[str, int], title: str, form: str = "svg") -> bytes:
    """Recall against k with its 95 % band, one line a system; ``marks`` names the cutoffs drawn as verticals.

    Args:
        lines: the curves.
        marks: name -> k, e.g. ``{"served": 5, "evaluated": 20}``; those of the same k share a line.
        title: what was measured.
        form: ``svg`` or ``png``.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with _figure(6.4, 4.2, ink="black") as (figure, axes):
        from matplotlib.ticker import FuncFormatter, NullLocator

        for number, line in enumerate(lines):
            colour, dash = _LINES[number % len(_LINES)]
            axes.plot(line.ks, line.values, color=colour, linestyle=dash, linewidth=1.8, label=line.label)
            known = [at for at, low in enumerate(line.low) if low is not None]
            axes.fill_between([line.ks[at] for at in known], [line.low[at] or 0.0 for at in known],
                              [line.high[at] or 0.0 for at in known], color=colour, alpha=0.16, linewidth=0)
        deepest = max((line.ks[-1] for line in lines), default=1)
        names: dict[int, list[str]] = {}
        for name, k in marks.items():
            names.setdefault(k, []).append(name)
        for place, (k, told) in enumerate(names.items()):  # above the axes, one over the other: nothing lies under it
            axes.axvline(k, color="#333333", linewidth=1, linestyle=(0, (4, 3)))
            axes.annotate(f"{' and '.join(told)}: {k}", (k, 1), xycoords=("data", "axes fraction"), fontsize=9,
                          xytext=(0, 2 + 11 * place), textcoords="offset points", ha="center", color="#333333")
        axes.set_xscale("log")
        ticks = [k for k in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000) if k <= max(deepest, *marks.values(), 1)]
        axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("k: passages that are counted")
        axes.set_ylabel("recall, with its 95 % band")
        axes.set_title(title, fontsize=11, loc="left", pad=6 + 11 * len(names))
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="best", frameon=True, framealpha=0.9)
        out = io.BytesIO()
        # No date, so that the same numbers give the same file.
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type")) if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=150, facecolor="white", metadata=metadata)
    return out.getvalue()
