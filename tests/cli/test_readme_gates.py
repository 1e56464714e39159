"""The CI snippets of the README: their commands are run, as a shell runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", README, re.DOTALL))


def _commands(name: str) -> list[str]:
    """The lines of a snippet that call goldset, without the key before them."""
    lines = [line.strip().removeprefix("- ").removeprefix("run: ") for line in SNIPPETS[name].splitlines()]
    return [line for line in lines if line.startswith("goldset ")]


@pytest.fixture
def project(beir: Path, tmp_path: Path) -> Path:
    """A checkout as the snippets expect it; candidate finds every answer first, production third."""
    folder = tmp_path / "checkout"
    (folder / "gold/demo").mkdir(parents=True)
    shutil.copytree(beir, folder / "gold/demo/v1")
    shutil.copy(beir / "good.run", folder / "candidate.run")
    shutil.copy(beir / "bad.run", folder / "production.run")
    return folder


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = command.replace("goldset ", f"{sys.executable} -m goldset ", 1)
    return subprocess.run(["bash", "-e", "-c", line], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", [".github/workflows/recall.yml", ".gitlab-ci.yml"])
def test_the_commands_pass_and_fail_as_the_readme_says(name: str, project: Path) -> None:
    recall, compare = _commands(name)
    assert _run(recall, project).returncode == 0
    # both systems find all within 5: no question differs, exit code 6, which the snippet lets pass
    done = _run(compare, project)
    assert (done.returncode, "too few to tell" in done.stdout) == (0, True), done.stderr
    # half of the answers gone: the upper bound is below .80
    lines = (project / "candidate.run").read_text().splitlines()
    (project / "candidate.run").write_text("".join(
        f"{line}\n" for number, line in enumerate(lines) if number // 5 % 2 or number % 5))
    assert _run(recall, project).returncode == 1
    # 24 of 30 are left: .63 to .91 around .80 decides nothing
    (project / "candidate.run").write_text("".join(
        f"{line}\n" for number, line in enumerate(lines) if number // 5 % 5 or number % 5))
    assert _run(recall, project).returncode == (0 if "-eq 6" in recall else 6)
