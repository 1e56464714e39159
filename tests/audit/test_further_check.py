"""The README's example of a further check, run as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goldset.audit import Word, by_check
from goldset.audit.verdicts import learn
from goldset.formats.sets import LabelledSet
from goldset.report import render_html, render_json, render_terminal

README = Path(__file__).resolve().parents[2] / "README.md"
MakeSet = Callable[..., LabelledSet]


def example(**given: Any) -> dict[str, Any]:
    block = re.search(r"<!-- example: a further check -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"),
                      re.DOTALL)
    assert block is not None
    names = dict(given)
    exec(compile(block[1], str(README), "exec"), names)
    return names


@pytest.mark.parametrize(("text", "verdict"), [("too short", "warn"), ("these are five whole words", "pass")])
def test_the_example_finds_what_it_says_and_stands_in_every_report(make_set: MakeSet, text: str,
                                                                   verdict: str) -> None:
    labelled = make_set({"q1": ["d1"]}, passages={"d1": text}, questions={"q1": "what"})
    findings = example(labelled=labelled, runs={})["findings"]
    assert by_check(findings)["short_gold"] == verdict
    row = next(row for row in findings.to_pylist() if row["check"] == "short_gold")
    assert row["remedy"] == ("label whole sentences" if verdict == "warn" else None)
    assert f"Short gold: {verdict}" in render_terminal(findings)
    assert "Short gold" in render_html("set", findings)
    assert render_json(findings)["findings"][-1]["check"] == "short_gold"


def test_a_word_cannot_change_its_verdict() -> None:
    with pytest.raises(AssertionError, match="the word 'truncated' of the check 'circularity' is there already"):
        learn([Word("circularity", "truncated", "pass", "nothing to see")])
