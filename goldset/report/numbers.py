"""Numbers as text: one value with its interval, and the table of measurements. Needs nothing of the audit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def number(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A number with its interval for people: 0.175 (0.120 to 0.246)."""
    if value is None:
        return "not measured"
    shown = f"{value:.0f}" if value == int(value) and abs(value) > 1 else f"{value:.3f}"
    return shown if low is None or high is None else f"{shown} ({low:.3f} to {high:.3f})"


def measure_name(row: dict[str, Any]) -> str:
    """``recall@10`` from a row of measurements."""
    return str(row["measure"]) if row["k"] is None else f"{row['measure']}@{row['k']}"


_LAST = 24  # columns that exclusions have at least
RELATIVE = ("Recall is relative to the judged pool: passages that nobody judged count as not found to be relevant.",)


def render_measurements(measurements: pa.Table, *, width: int = 100, notes: Sequence[str] = RELATIVE) -> str:
    """Table measurements -> a table of text: system, measure, slice, value with interval, n, exclusions; then notes."""
    head = ["system", "measure", "slice", "value", "95 % interval", "n", "left out"]
    rows = [[row["system"], measure_name(row), row["slice"], *_shown(row),
             ", ".join(f"{item['count']} {item['reason']}" for item in row["excluded"]) or "-"]
            for row in measurements.to_pylist()]
    sizes = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip()
             for line in [head, *rows]]
    return "\n".join([*lines, *(line for note in notes for line in wrap(note, width, "  ", ""))])


def render_narrow(measurements: pa.Table, *, width: int = 80) -> str:
    """Table measurements -> the same for a narrow page: by system, slices only where there are some, in words."""
    rows = measurements.to_pylist()
    sliced = any(row["slice"] != "all" for row in rows)
    cells = [[measure_name(row), *([row["slice"]] if sliced else []), *_shown({**row, "reason": None})] for row in rows]
    head = ["measure", *(["slice"] if sliced else []), "value", "95 % interval", "n"]
    sizes = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    before = sum(sizes) + 2 * len(sizes) + 2

    def line(values: Sequence[str], last: str) -> list[str]:
        said = wrap(last, max(_LAST, width - before), "", "") or [""]
        first = "  ".join(["", *(cell.ljust(size) for cell, size in zip(values, sizes, strict=True)), said[0]])
        return [first.rstrip(), *(" " * before + more for more in said[1:])]

    lines = line(head, "left out, or to be known")
    for place, row in enumerate(rows):
        if not place or row["system"] != rows[place - 1]["system"]:
            lines.append(row["system"])
        why = "" if row["value"] is not None or not row["reason"] else row["reason"].replace("_", " ")
        lines += line(cells[place], ", ".join(filter(None, (why, left_out(row["excluded"])))))
    return "\n".join([*lines, *(text for note in RELATIVE for text in wrap(note, width, "  ", ""))])


def left_out(excluded: Sequence[dict[str, Any]]) -> str:
    """What a value leaves out or counts: 11 more gold than k, 2 no gold."""
    said = ", ".join(f"{item['count']} {item['reason'].removeprefix('counted_')}" for item in excluded)
    return said.replace("_", " ")


def _shown(row: dict[str, Any]) -> list[str]:
    """Value, interval and n of a row."""
    why = f" ({row['reason']})" if row["reason"] else ""
    return [f"{row['value']:.3f}" if row["value"] is not None else f"none{why}",
            f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None and row["high"] is not None else "none",
            str(row["n"])]


def wrap(text: str, width: int, rest: str, first: str) -> list[str]:
    """Lines of at most ``width`` columns; ``first`` starts the first, ``rest`` the others."""
    # A number keeps its per cent sign on the same line.
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width, initial_indent=first, subsequent_indent=rest,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]
