"""Findings and measurements as plain text: the same on a terminal and in a pipe."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from goldset.audit import by_check, decides, limits, word
from goldset.report.numbers import render_narrow, wrap
from goldset.report.summary import headline, in_words, title_of
from goldset.report.words import explained


def render_terminal(findings: pa.Table, measurements: pa.Table | None = None, *, title: str = "",
                    width: int = 80) -> str:
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
    said = "\n".join(lines)
    if measurements is not None and len(measurements):
        lines += ["", render_narrow(measurements, width=width)]
    if words := explained(said):
        lines += ["", "Words:", *(line for name, meaning in words
                                  for line in wrap(f"{name}: {meaning}", width, "    ", "  "))]
    bars = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value, _ in limits())
    said = f"Thresholds (the README and --html say what each is): {bars}."
    return "\n".join([*lines, "", *wrap(said, width, "  ", "")])


def render_brief(findings: pa.Table, *, width: int = 100) -> str:
    """Table findings -> the answer, and for each property its verdict with the gravest finding."""
    first = headline(findings)
    lines = [*_entry("Can this number be believed?", first.answer, width), ""]
    for check, verdict in by_check(findings).items():
        row = next(row for row in findings.to_pylist() if row["check"] == check and row["verdict"] == verdict
                   and decides(check, row["reason"]))
        lines += wrap(f"{title_of(check)}: {verdict}. {row['message']}", width, "    ", "  ")
    return "\n".join(lines)


def _finding(row: dict[str, Any], width: int) -> list[str]:
    subject = "" if row["subject"] == "all" else f"{row['subject']}: "
    message = row["message"].removeprefix(subject)
    if not decides(row["check"], row["reason"]):
        named = row["subject"].removeprefix("family ") in message
        return wrap(message if named else f"{subject}{message}", width, "      ", "    - ")
    said = f"[{row['verdict']}] {subject}{in_words(row['reason'])}. {message}"
    lines = wrap(said, width, "    ", "  ")
    if row["verdict"] in ("warn", "fail") and row["check"] != "integrity":  # whose sentences say it themselves
        lines += wrap(f"means: {word(row['check'], row['reason']).meaning}", width, "    ", "    ")
    if row["remedy"] and row["verdict"] != "pass":
        lines += wrap(f"next: {row['remedy']}", width, "    ", "    ")
    return lines


def _entry(label: str, text: str, width: int) -> list[str]:
    return wrap(f"{label} {text}", width, "  ", "")
