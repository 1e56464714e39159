"""The documentation says what the code does: generated parts are current, and nothing public goes unmentioned."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from goldset.audit import CHECKS
from goldset.cli import COMMANDS
from goldset.config import Config
from goldset.errors import EXIT_MEANING, ExitCode
from goldset.metrics import MEASURES
from goldset.schemas import SCHEMAS
from tests import generate_docs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_generated_parts_are_current() -> None:
    done = subprocess.run([sys.executable, "tests/generate_docs.py", "--check"], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    assert f"`goldset {name}`" in README
    command = importlib.import_module(f"goldset.cli.{COMMANDS[name][0]}").command
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for one in commands:
        assert one.help, one.name
        assert all(param.help for param in one.params if isinstance(param, click.Option)), one.name


def test_every_subcommand_of_the_review_is_shown() -> None:
    text = README + (ROOT / "configs" / "reference.toml").read_text()
    assert all(f"goldset review {name}" in text for name in ("serve", "status", "export", "import"))
    assert all(f"goldset judge {name}" in text for name in ("calibrate", "card"))


def test_every_exit_code_measure_column_and_check_is_mentioned() -> None:
    assert set(EXIT_MEANING) == set(ExitCode)
    assert all(f"| {int(code)} | {meaning} |" in README for code, meaning in EXIT_MEANING.items())
    assert all(f"`{name}`" in README for name in MEASURES)
    assert all(name in README for schema in SCHEMAS.values() for name in schema.names)
    assert all(check.name in README for check in CHECKS)


def test_the_reference_is_toml_and_has_every_key_and_the_demo_uses_only_those() -> None:
    reference = (ROOT / "configs" / "reference.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(reference)) == set(Config.model_fields) - {"base"}
    keys = set(re.findall(r"^(?:#\s+)*(\w+) = ", reference, re.MULTILINE))
    demo = tomllib.loads((ROOT / "configs" / "demo.toml").read_text(encoding="utf-8"))
    used = {key for section in demo.values() for key in section} - set(demo["systems"])
    assert used <= keys


@pytest.mark.slow
def test_the_readme_shows_the_coverage_that_the_simulation_finds() -> None:
    block = re.search(r"<!-- generated: coverage -->\n(.*?)\n<!-- end -->", README, re.DOTALL)
    assert block is not None, "run 'python tests/generate_docs.py --coverage'"
    assert generate_docs.coverage_table() == block[1]
