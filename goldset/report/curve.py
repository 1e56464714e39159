"""Recall against k with its band: a plot for a page or a file, the same in words, and the same as a table."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from goldset.report.numbers import number
from goldset.report.plots import figure_of, fitting, inline_svg, svg_text

# Distinct to eyes that do not tell red from green, and told apart by their dashes in print (Okabe and Ito, 2008).
_LINES: tuple[tuple[str, Any], ...] = (
    ("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", "-."), ("#cc79a7", ":"), ("#e69f00", (0, (5, 1, 1, 1, 1, 1))),
    ("#56b4e9", (0, (1, 1))))
_SOFT, _GRID = "#565d66", "#d9d7cf"
_PAGE = {"soft": _SOFT, "line": _GRID, **{f"curve-{place}": colour for place, (colour, _) in enumerate(_LINES, 1)}}
_TICKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


@dataclass(frozen=True)
class Line:
    """One system's curve: k, value, and its band (None where there is none), over ``n`` questions."""

    label: str
    ks: Sequence[int]
    values: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    n: int

    def at(self, k: int) -> str:
        """The number at a cutoff, with its interval; ``not measured`` beyond the end of the list."""
        if k not in self.ks:
            return number(None)
        place = list(self.ks).index(k)
        return number(self.values[place], self.low[place], self.high[place])


@dataclass(frozen=True)
class Curves:
    """The curves of several systems on one set; ``marks`` names the cutoffs drawn as verticals: served, evaluated."""

    title: str
    lines: Sequence[Line]
    marks: Mapping[str, int]

    @property
    def heading(self) -> str:
        """What was measured, on how many questions."""
        counts = " / ".join(f"{n:,}" for n in sorted({line.n for line in self.lines}))
        return f"{self.title}: {counts} questions with gold"

    @property
    def named(self) -> dict[int, str]:
        """Cutoff -> what it is; names of the same k share it."""
        names: dict[int, list[str]] = {}
        for name, k in self.marks.items():
            names.setdefault(k, []).append(name)
        return {k: " and ".join(told) for k, told in sorted(names.items())}

    @property
    def deepest(self) -> int:
        """The last k of the longest curve."""
        return max((line.ks[-1] for line in self.lines), default=1)

    def words(self) -> str:
        """The plot for those who cannot see it: every system at the marked cutoffs and at its end."""
        told = self.named
        said = [f"at {k}, {told.get(k, 'the end of the longest list')}: "
                + "; ".join(f"{line.label} {line.at(k)}" for line in self.lines)
                for k in sorted({*told, self.deepest})]
        return f"Recall against k with its 95 % band, {self.heading}. " + ". ".join(
            part[0].upper() + part[1:] for part in said) + "."

    def table(self, ks: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the same as a table: one row a k, one column a system."""
        return ["k", *(line.label for line in self.lines)], [
            [f"{k} ({self.named[k]})" if k in self.named else str(k), *(line.at(k) for line in self.lines)] for k in ks]

    def file(self, form: str = "svg") -> bytes:
        """The plot as a file, ``svg`` or ``png``, which carries the words too; the same numbers give the same bytes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        with figure_of(6.4, self._height(4.2), ink="black") as (figure, axes):
            self._draw(figure, axes)
            if form == "png":
                out = io.BytesIO()
                figure.savefig(out, format=form, dpi=150, facecolor="white",
                               metadata={"Software": None, "Title": self.heading, "Description": self.words()})
                return out.getvalue()
            told = f"<title>{escape(self.heading)}</title>\n <desc>{escape(self.words())}</desc>"
            start, tag, rest = svg_text(figure, facecolor="white").partition("<svg ")
            attributes, close, body = rest.partition(">")
            return f'{start}{tag}role="img" {attributes}{close}\n {told}{body}'.encode()

    def inline(self, name: str) -> str:
        """The plot as an ``<svg>`` element in the colours of the page; ids start with ``name``.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        with figure_of(4.8, self._height(3.4)) as (figure, axes):
            self._draw(figure, axes, title=False)
            return inline_svg(figure, name, _PAGE)

    def _height(self, plot: float) -> float:
        """Room below the plot for two systems a row."""
        return plot + 0.21 * ((len(self.lines) + 1) // 2)

    def _draw(self, figure: Any, axes: Any, *, title: bool = True) -> None:
        from matplotlib.ticker import FuncFormatter, NullLocator

        for place, line in enumerate(self.lines):
            colour, dash = _LINES[place % len(_LINES)][0], _LINES[(place + place // len(_LINES)) % len(_LINES)][1]
            known = [at for at, low in enumerate(line.low) if low is not None]
            axes.fill_between([line.ks[at] for at in known], [line.low[at] or 0.0 for at in known],
                              [line.high[at] or 0.0 for at in known], color=colour, alpha=0.16, linewidth=0)
            axes.plot(line.ks, line.values, color=colour, linestyle=dash, linewidth=1.8, label=fitting(line.label))
        for row, (k, told) in enumerate(self.named.items()):
            # Above the axes, one over the other: nothing lies under it.
            axes.axvline(k, color=_SOFT, linewidth=1, linestyle=(0, (4, 3)))
            axes.annotate(f"{told}: {k}", (k, 1), xycoords=("data", "axes fraction"), fontsize=9, color=_SOFT,
                          xytext=(0, 2 + 11 * row), textcoords="offset points", ha="center")
        axes.set_xscale("log")
        last = max([self.deepest, *self.marks.values()])
        axes.set_xlim(0.93, last * 1.08)
        axes.set_xticks([k for k in _TICKS if k <= last])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("k: passages that are counted")
        axes.set_ylabel("recall, with its 95 % band")
        if title:
            axes.set_title(self.heading, fontsize=11, loc="left", pad=6 + 11 * len(self.named))
        axes.grid(axis="y", color=_GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        # Below the axes: no corner is free of every curve.
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
