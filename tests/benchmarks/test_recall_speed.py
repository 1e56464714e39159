"""The benchmark says what it measured, and refuses to measure less."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.benchmarks import recall_speed, recall_stream

SCRIPT = Path(__file__).with_name("recall_speed.py")


def test_all_three_tools_find_the_same_recall(tmp_path: Path) -> None:
    commands = recall_speed.commands(*recall_speed.write_files(tmp_path, 50))
    values = {tool: recall_speed.value_of(tool, recall_speed.once(command, tmp_path)[2])
              for tool, command in commands.items()}
    assert 0.05 < values["pytrec-eval"] < 1
    assert max(values.values()) - min(values.values()) < 1e-3


def test_a_million_questions_or_none() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT.with_name("recall_stream.py")), "--questions", "999999"],
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert "1,000,000 or more" in done.stderr


def test_what_was_planted_is_found_in_every_form(tmp_path: Path) -> None:
    found = {case: odd for case, _, _, odd in recall_stream.measure(tmp_path / "files", 300)}
    assert found == {case: [] for case in recall_stream.CASES}
