"""Interval and bar plots as inline SVG, in the colours of the page: no date, no random ids."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from goldset.errors import MissingExtra

_LABEL = 22
INK = "#010203"
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
    labels = [fitting(mark.label) for mark in marks]
    with figure_of(4.6, 0.75 + sum(0.14 + 0.18 * len(label.splitlines()) for label in labels)) as (figure, axes):
        for row, mark in enumerate(marks):
            colour = _COLOURS[mark.verdict]
            if mark.low is not None and mark.high is not None:
                axes.plot([mark.low, mark.high], [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([mark.value], [row], "o", color=colour, markersize=6)
        if threshold is not None:
            axes.axvline(threshold, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks(range(len(marks)), labels)
        axes.set_ylim(len(marks) - 0.4, -0.6)
        if limits is not None:
            room = 0.015 * (limits[1] - limits[0])  # a mark at the edge is drawn whole
            axes.set_xlim(limits[0] - room, limits[1] + room)
        axes.set_xlabel(axis)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return inline_svg(figure, name, _COLOURS)


@contextmanager
def figure_of(width: float, height: float, *, ink: str = INK) -> Iterator[tuple[Any, Any]]:
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


def fitting(label: str) -> str:
    """A label that leaves room for the plot: a long one in several lines, cut at signs where there are some."""
    lines, line = [], ""
    for part in re.findall(r"[^\s/_.:-]*[\s/_.:-]?", label):
        for piece in (part[at : at + _LABEL] for at in range(0, len(part), _LABEL)):
            if len(line) + len(piece.rstrip()) > _LABEL:
                lines.append(line.rstrip())
                line = ""
            line += piece
    return "\n".join([*lines, line.rstrip()])


def bar_plot(labels: Sequence[str], values: Sequence[float], shown: Sequence[str], *, name: str, axis: str) -> str:
    """Labels, heights and their texts -> an ``<svg>`` element with one bar a label; ids start with ``name``.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with figure_of(4.6, 2.1) as (figure, axes):
        places = range(len(labels))
        axes.bar(places, values, color=_COLOURS["insufficient"], width=0.72)
        top = max([*values, 1e-9])
        for place, value, text in zip(places, values, shown, strict=True):
            if value:
                axes.text(place, value + 0.02 * top, text.removeprefix("0") if axis == "recall" else text,
                          ha="center", va="bottom", fontsize=9, color=INK)
        tilted = len(labels) > 8 or max(map(len, labels)) > 9
        axes.set_xticks(places, labels, rotation=45 if tilted else 0, ha="right" if tilted else "center", fontsize=9)
        axes.set_ylim(0, 1.18 * top)
        axes.set_yticks([])
        axes.set_ylabel(axis)
        axes.spines[["top", "right", "left"]].set_visible(False)
        return inline_svg(figure, name, _COLOURS)


def svg_text(figure: Any, **options: Any) -> str:
    """A figure as the text of an SVG file, without a date."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), **options)
    return out.getvalue()


def inline_svg(figure: Any, name: str, colours: Mapping[str, str]) -> str:
    """A figure -> an element for a page: no prologue, own ids, colours of the page, hidden from readers.

    ``colours`` says which colour of the figure stands for which variable of the page's style.
    """
    svg = svg_text(figure, transparent=True)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = svg.replace(INK, "currentColor")
    for variable, colour in colours.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
