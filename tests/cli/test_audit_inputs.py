"""``goldset audit``: what may be given beside the set, on the command line, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Goldset, beir, goldset

__all__ = ["beir", "goldset"]


def test_a_warning_fails_where_it_is_asked_to(goldset: Goldset, beir: Path) -> None:
    # Production serves more than is quoted: a warning; one gold a question is another.
    arguments = ["audit", beir, "--run", f"good={beir / 'good.run'}", "--eval-k", "2", "--serving-k", "4"]
    assert goldset(*arguments).code == 0
    assert goldset(*arguments, "--fail-on", "warn").code == 1


def test_the_log_of_what_was_served_gives_the_k(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    log = tmp_path / "answers.jsonl"
    log.write_text("".join(json.dumps({"out": {"passages": ["a"] * size}}) + "\n" for size in (2, 2, 2, 1)))
    arguments = ["audit", beir, "--run", f"bad={beir / 'bad.run'}", "--eval-k", "4", "--served-log", log,
                 "--served-field", "out.passages"]
    # Each gold of bad.run stands at rank 3: within the quoted four, beyond the two that reach readers.
    out = " ".join(goldset(*arguments).out.split())
    assert "2 passages reached the reader in 3 of 4 logged answers, as few as 1 in 1." in out
    assert "recall@4 is 1.000, recall@2 is 0.000, 100.0 points less" in out
    out = " ".join(goldset(*arguments, "--serving-k", "4").out.split())
    assert "[fail] log: served less. 4 are said to be served" in out


def test_a_reference_set_is_named_where_it_decides(goldset: Goldset, beir: Path) -> None:
    out = " ".join(goldset("audit", beir, "--reference", beir).out.split())
    # Thirty questions are fewer than fifty.
    assert "[insufficient] too few. 30 questions with gold and 30 of beir with theirs: 50 of each are needed" in out


def test_every_report_carries_the_thresholds(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = goldset("audit", beir, "--html", page, "--json")
    limits = json.loads(done.out)["limits"]
    assert limits["leak_strong"] == 0.71
    text, html = " ".join(goldset("audit", beir).out.split()), page.read_text(encoding="utf-8")
    for name, value in limits.items():
        assert f"{name.replace('_', ' ')} {value:g}" in text
        assert f"<td>{name.replace('_', ' ')}</td><td class=\"n\">{value:g}</td>" in html
