"""Findings -> the answer that stands first in every report: believed or not, the one reason, the one next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.audit import decides, overall, word

ANSWERS = {
    "fail": "No: the number cannot be believed as it stands.",
    "warn": "With care: something speaks against the number, nothing disproves it.",
    "insufficient": "Not known: nothing speaks against the number, but not every check could decide.",
    "pass": "Yes, as far as these checks can see.",
}
TITLES = {
    "integrity": ("Integrity", "Do ids resolve, and does anything stand twice?"),
    "circularity": ("Circularity", "Did a system choose the gold that it is scored on?"),
    "leakage": ("Lexical leakage", "Were the questions written from the passages that answer them?"),
    "k_mismatch": ("k mismatch", "Is recall quoted at the k that reaches the reader?"),
    "completeness": ("Completeness", "Does the gold stop at the first passage somebody found?"),
}


def title_of(check: str) -> str:
    """A check's title; for a further one its name in words."""
    return TITLES[check][0] if check in TITLES else check.replace("_", " ").capitalize()


def in_words(reason: str) -> str:
    """A reason as people read it: ``recall_not_measured@5`` is 'recall not measured at 5', ``note:quoted`` 'quoted'."""
    return reason.split(":")[-1].replace("_", " ").replace("@", " at ")


@dataclass(frozen=True)
class Headline:
    """The first screen: verdict, the answer to "can this number be believed?", one reason, one next step.

    ``reason`` says in a few words what was found, ``evidence`` is the finding's own sentence.
    """

    verdict: str
    answer: str
    reason: str
    evidence: str
    step: str | None


def headline(findings: pa.Table) -> Headline:
    """Table findings -> Headline; the reason is the first finding that has the overall verdict.

    A failed pre-check comes first, since it blocks the rest; its warnings come after the four properties.
    """
    verdict = overall(findings)
    rows = sorted(decisive(findings), key=lambda row: row["check"] == "integrity" and verdict != "fail")
    row = next((row for row in rows if row["verdict"] == verdict), None)
    if row is None:
        return Headline(verdict, ANSWERS[verdict], "no check was run", "", None)
    if verdict == "pass":
        return Headline(verdict, ANSWERS[verdict], "ids resolve, and each property was tested and holds", "", None)
    subject = "" if row["subject"] == "all" else f" ({row['subject']})"
    reason = f"{title_of(row['check'])}{subject}: {word(row['check'], row['reason']).meaning}"
    return Headline(verdict, ANSWERS[verdict], reason, row["message"], row["remedy"])


def decisive(findings: pa.Table) -> list[dict[str, Any]]:
    """The rows that carry a verdict, without the numbers that are only shown."""
    return [row for row in findings.to_pylist() if decides(row["check"], row["reason"])]
