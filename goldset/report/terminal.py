"""Findings and measurements as plain text: the same on a terminal and in a pipe."""

from __future__ import annotations

import textwrap
from typing import Any

import pyarrow as pa

from goldset.audit import by_check, decides
from goldset.report.summary import headline, measure_name, title_of


def render_terminal(findings: pa.Table, measurements: pa.Table | None = None, *, title: str = "",
                    width: int = 100) -> str:
    """Table findings (and measurements) -> text of at most ``width`` columns, without a final line end."""
    first = headline(findings)
    lines = [title, "=" * len(title), ""] if title else []
    lines += _entry("Can this number be believed?", first.answer, width)
    lines += _entry("Reason:", f"{first.reason}. {first.evidence}".strip(), width)
    if first.step:
        lines += _entry("Next:", first.step, width)
    for check, verdict in by_check(findings).items():
        lines += ["", f"{title_of(check)}: {verdict}"]
        for row in findings.to_pylist():
            if row["check"] == check:
                lines += _finding(row, width)
    if measurements is not None and len(measurements):
        lines += ["", render_measurements(measurements, width=width)]
    return "\n".join(lines)


def render_brief(findings: pa.Table, *, width: int = 100) -> str:
    """Table findings -> the answer, and for each property its verdict with the gravest finding."""
    first = headline(findings)
    lines = [*_entry("Can this number be believed?", first.answer, width), ""]
    for check, verdict in by_check(findings).items():
        row = next(row for row in findings.to_pylist() if row["check"] == check and row["verdict"] == verdict
                   and decides(check, row["reason"]))
        lines += _wrap(f"{title_of(check)}: {verdict}. {row['message']}", width, "    ", "  ")
    return "\n".join(lines)


def _finding(row: dict[str, Any], width: int) -> list[str]:
    subject = "" if row["subject"] == "all" else f"{row['subject']}: "
    message = row["message"].removeprefix(subject)
    if not decides(row["check"], row["reason"]):
        named = row["subject"].removeprefix("family ") in message
        return _wrap(message if named else f"{subject}{message}", width, "      ", "    - ")
    said = f"[{row['verdict']}] {subject}{row['reason'].replace('_', ' ')}. {message}"
    lines = _wrap(said, width, "    ", "  ")
    if row["remedy"] and row["verdict"] != "pass":
        lines += _wrap(f"next: {row['remedy']}", width, "    ", "    ")
    return lines


def render_measurements(measurements: pa.Table, *, width: int = 100) -> str:
    """Table measurements -> a table of text: system, measure, slice, value with interval, n, exclusions."""
    head = ["system", "measure", "slice", "value", "95 % interval", "n", "left out"]
    rows = [[row["system"], measure_name(row), row["slice"],
             f"{row['value']:.3f}" if row["value"] is not None else f"none ({row['reason']})",
             f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None and row["high"] is not None else "none",
             str(row["n"]), ", ".join(f"{item['count']} {item['reason']}" for item in row["excluded"]) or "-"]
            for row in measurements.to_pylist()]
    sizes = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip()
             for line in [head, *rows]]
    return "\n".join([*lines, *_wrap("Recall is relative to the judged pool: passages that nobody judged count as not "
                                     "found to be relevant.", width, "", "")])


def _entry(label: str, text: str, width: int) -> list[str]:
    return _wrap(f"{label} {text}", width, "  ", "")


def _wrap(text: str, width: int, rest: str, first: str) -> list[str]:
    # A number keeps its per cent sign on the same line.
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width, initial_indent=first, subsequent_indent=rest,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]
