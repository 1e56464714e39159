"""Start-up: what a command may load, in fresh processes. Times: tests/benchmarks/audit_speed.py."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from goldset.cli import COMMANDS
from tests.cli.conftest import beir

__all__ = ["beir"]

HEAVY = {"pandas", "pyarrow", "numpy", "scipy", "torch", "faiss", "prefect", "sentence_transformers", "pydantic"}
SHELL = {"goldset.cli", "goldset.errors"}
NEVER_IN_AUDIT = {"torch", "faiss", "prefect", "sentence_transformers", "scipy.stats", "openai", "fastapi",
                  "sqlalchemy"}


def _modules(*arguments: str) -> tuple[set[str], str]:
    code = ("import sys, json, goldset.cli\n"
            f"sys.argv = ['goldset', *{list(arguments)!r}]\n"
            "try:\n    goldset.cli.main()\nexcept SystemExit as stop:\n"
            "    print('@@' + json.dumps([stop.code, sorted(sys.modules)]))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    out, _, loaded = done.stdout.rpartition("@@")
    code_, modules = json.loads(loaded)
    assert code_ in (0, 1, 6), done.stderr
    return set(modules), out


def test_help_loads_click_and_nothing_heavy() -> None:
    modules, out = _modules("--help")
    assert not HEAVY & modules
    # Of the package only the command line itself: the commands are imported when they are called.
    assert {name for name in modules if name.startswith("goldset.")} <= SHELL
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("command", ["audit", "recall"])
def test_audit_and_recall_load_no_model_and_no_server(command: str, beir: Path) -> None:
    extra = ["--k", "5"] if command == "recall" else []
    modules, out = _modules(command, str(beir), "--run", f"a={beir / 'good.run'}", *extra, "--json")
    assert not NEVER_IN_AUDIT & modules
    assert json.loads(out)["schema"] == f"goldset.{command}/1"


def test_recall_of_many_ids_does_without_pandas_scipy_and_the_configuration(tmp_path: Path) -> None:
    # Up to 1,000 questions Student's t is taken from scipy.special, and that imports numpy.ma.
    qrels, run = tmp_path / "set.qrels", tmp_path / "a.run"
    qrels.write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(1100)))
    run.write_text("".join(f"q{i} Q0 d{i + i % 2} 1 9.0 a\n" for i in range(1100)))
    modules, out = _modules("recall", "--qrels", str(qrels), "--run", f"a={run}", "--k", "5", "--json")
    assert not {"pandas", "pydantic", "numpy.ma", "scipy.special"} & modules
    assert json.loads(out)["schema"] == "goldset.recall/1"


def test_each_summary_is_the_first_line_of_the_command() -> None:
    for name, (module, summary) in COMMANDS.items():
        command = importlib.import_module(f"goldset.cli.{module}").command
        assert command.name == name
        assert (command.help or "").splitlines()[0] == summary


def test_the_import_layers_hold() -> None:
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([str(Path(sys.executable).parent / "lint-imports")], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
