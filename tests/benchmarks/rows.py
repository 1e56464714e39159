"""Rows of the table of speeds: our figure beside the alternative's, from the same input in one run.

A benchmark is a script that makes rows and ends with ``finish(rows, options)``: it prints them, and writes them as
JSON where ``--json`` says. ``bench.py`` runs all of them, each in a process of its own, and collects the JSON.

    options = arguments(__doc__, least=100_000, unit="chunks").parse_args()
    times = in_turn({"goldset": ours, "faiss": theirs}, clock=time.process_time)
    rows = [Row.of_times("dense search, 180 questions, 100,000 vectors", "seconds", times, wanted=AtMost(1.2))]
    return finish(rows, options)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 5


@dataclass(frozen=True)
class AtLeast:
    """Ours must be so many times better than the alternative."""

    value: float


@dataclass(frozen=True)
class AtMost:
    """Ours may cost so many times what the alternative does; without an alternative: the figure itself."""

    value: float


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        work: what was done, N included.
        measure: what the figures are, with their unit: ``seconds``, ``seconds of CPU``, ``MB``, ``passages a second``.
        ours: our figure: the median, where it was measured several times.
        wanted: the bound on the ratio, or on ``ours`` where there is no alternative.
        against: name of the alternative, with its version.
        other: its figure; null where there is no alternative.
        better: whether small or large figures are good.
        beside: figures of further tools, for the reader.
        measured: every single measurement, by tool.
        note: what a reader must know to believe the row.
    """

    work: str
    measure: str
    ours: float
    wanted: AtLeast | AtMost | None = None
    against: str | None = None
    other: float | None = None
    better: Literal["small", "large"] = "small"
    beside: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, Sequence[float]] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def of_times(cls, work: str, measure: str, times: Mapping[str, Sequence[float]], **more: Any) -> Row:
        """A row of medians: the first tool is ours, the second the alternative, others stand beside."""
        medians = {tool: statistics.median(values) for tool, values in times.items()}
        tools = list(medians)
        against = tools[1] if len(tools) > 1 else None
        return cls(work, measure, medians[tools[0]], against=against, other=medians[against] if against else None,
                   beside={tool: medians[tool] for tool in tools[2:]}, measured=dict(times), **more)

    @property
    def ratio(self) -> float | None:
        """How many times better we are (AtLeast), or what share of the alternative's cost ours is (else)."""
        if self.other is None:
            return None
        cost = self.ours / self.other if self.better == "small" else self.other / self.ours
        return 1 / cost if isinstance(self.wanted, AtLeast) else cost

    @property
    def met(self) -> bool | None:
        """Whether the bound holds; null where there is none."""
        if self.wanted is None:
            return None
        figure = self.ours if self.ratio is None else self.ratio
        return figure >= self.wanted.value if isinstance(self.wanted, AtLeast) else figure <= self.wanted.value

    def document(self) -> dict[str, Any]:
        """The row as JSON."""
        bound = None if self.wanted is None else {
            "at_least" if isinstance(self.wanted, AtLeast) else "at_most": self.wanted.value}
        return {**asdict(self), "wanted": bound, "ratio": self.ratio, "met": self.met}


def in_turn(tools: Mapping[str, Callable[[], object]], *, repeats: int = REPEATS,
            clock: Callable[[], float] = time.perf_counter) -> dict[str, list[float]]:
    """Call each tool ``repeats`` times, one after the other in turn, so that a busy machine hits all alike."""
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    for _ in range(repeats):
        for tool, call in tools.items():
            began = clock()
            call()
            times[tool].append(clock() - began)
    return times


def cpu() -> str:
    """Model of the processor, and how many of them may be used."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{named[0] if named else platform.processor() or 'unknown CPU'}, {os.cpu_count()} CPUs"


def arguments(about: str | None, *, least: int, unit: str) -> argparse.ArgumentParser:
    """Options of a benchmark: ``--n`` (refused below ``least``), ``--json FILE``, ``--check``."""

    def enough(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} {unit}: {least:,} or more; smaller sizes say nothing")
        return int(text)

    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=enough, default=least, metavar="N", help=f"{unit}, at least {least:,}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bound is missed")
    return parser


def finish(rows: Sequence[Row], options: argparse.Namespace) -> int:
    """Print the rows, write the JSON; exit code 1 under ``--check`` where a bound is missed."""
    print(f"{cpu()}; Python {platform.python_version()}\n{table([row.document() for row in rows])}")
    if options.json:
        write(options.json, [row.document() for row in rows])
    return int(options.check and any(row.met is False for row in rows))


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows, processor and Python as one JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"schema": "goldset.bench/1", "cpu": cpu(), "python": platform.python_version()}
    path.write_text(json.dumps({**head, "rows": list(rows)}, indent=1, ensure_ascii=False) + "\n")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table: what a terminal and the README show alike."""
    head = ("work", "measure", "runs", "ours", "alternative", "ratio", "wanted", "")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
             for line in cells]
    notes = list(dict.fromkeys(f"{row['work']}: {row['note']}" for row in rows if row["note"]))
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:],
                      *([""] if notes else []), *(f"* {note}" for note in notes)])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    others = [] if row["other"] is None else [f"{row['against']} {_figure(row['other'])}"]
    others += [f"{tool} {_figure(value)}" for tool, value in row["beside"].items()]
    wanted = "–" if row["wanted"] is None else "".join(
        ("≥ " if kind == "at_least" else "≤ ") + f"{value:g}" + ("" if row["ratio"] is None else "×")
        for kind, value in row["wanted"].items())
    ratio = "–" if row["ratio"] is None else f"{_figure(row['ratio'])}×"
    runs = max((len(values) for values in row["measured"].values()), default=1)
    return (row["work"], row["measure"], str(runs), _figure(row["ours"]), ", ".join(others) or "–", ratio, wanted,
            {True: "met", False: "missed", None: ""}[row["met"]])


def _figure(value: float) -> str:
    """Three significant figures, no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
