"""Writes what README.md and configs/reference.toml derive from the code; ``--check`` only compares.

A generated part of the README stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. The demo's output is
one of them: ``--demo`` runs ``goldset demo`` (minutes) and writes it; tests/flows compares it with a fresh run.
``--coverage`` simulates how often the intervals hold the truth (a minute) and writes that table. Blocks in ELSEWHERE
are written by the command that stands there and by nothing else.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
REFERENCE = ROOT / "configs" / "reference.toml"
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def _commands() -> str:
    from goldset.cli import COMMANDS

    return "\n".join(["| command | does |", "|---|---|",
                      *(f"| `goldset {name}` | {summary} |" for name, (_, summary) in COMMANDS.items())])


def _exit_codes() -> str:
    from goldset.errors import EXIT_MEANING

    return "\n".join(["| code | means |", "|---|---|",
                      *(f"| {int(code)} | {meaning} |" for code, meaning in EXIT_MEANING.items())])


def _measures() -> str:
    from goldset.metrics.registry import MEASURES

    return "\n".join(["| measure | formula | source |", "|---|---|---|",
                      *(f"| `{row.name}` | {row.formula} | {row.source} |" for row in MEASURES.values())])


def _verdicts() -> str:
    from goldset.audit.verdicts import describe

    return describe()


def _tables() -> str:
    from goldset.schemas import SCHEMAS, key_of

    return "\n".join(["| table | key | columns |", "|---|---|---|",
                      *(f"| {name} | {', '.join(key_of(name))} | {', '.join(schema.names)} |"
                        for name, schema in SCHEMAS.items())])


GENERATED: dict[str, Callable[[], str]] = {
    "commands": _commands, "exit-codes": _exit_codes, "measures": _measures, "verdicts": _verdicts, "tables": _tables,
}

ELSEWHERE = {"demo": "python tests/generate_docs.py --demo",
             "survival": "python tests/benchmarks/survival.py --seed N --write",
             "carried": "python tests/benchmarks/carried.py --seed N --write",
             "proof": "python tests/benchmarks/proof.py --seeds N --write",
             "speed": "python tests/benchmarks/bench.py --write",
             "coverage": "python tests/generate_docs.py --coverage"}


def unfilled(readme: str) -> list[str]:
    """What is wrong with the blocks of the README: nobody writes them, or nobody has."""
    found = {match["name"]: match["body"].strip() for match in _BLOCK.finditer(readme)}
    unknown = [f"nothing writes the block '{name}'" for name in found if name not in GENERATED | ELSEWHERE]
    return unknown + [f"the block '{name}' is empty: run '{command}'" for name, command in ELSEWHERE.items()
                      if not found.get(name)]


def reference() -> str:
    """configs/reference.toml: every key of every section, with its description and default."""
    from goldset.config import Config

    lines = ["# Every key, with its meaning and default. Generated from goldset/config by `make docs`.",
             "# Keys without a default are required. Paths are relative to the configuration file.", ""]
    for name, field in Config.model_fields.items():
        if name == "base":
            continue
        seen: set[str] = set()
        for title, model in _sections(name, field.annotation):
            section = [f"[{title}]", *_keys(model)]
            if title in seen:  # a TOML table stands once: the other kinds of judge are comments
                section = [line if line.startswith("#") else f"# {line}" for line in section]
            seen.add(title)
            lines += [f"# {_first_line(model)}", *section, ""]
    return "\n".join(lines).rstrip() + "\n"


def _sections(name: str, annotation: Any) -> Iterator[tuple[str, Any]]:
    members = _models(annotation)
    for model in members:
        kind = model.model_fields.get("kind")
        label = f"{name}.{get_args(kind.annotation)[0]}_example" if name == "systems" and kind else name
        yield label, model


def _models(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _first_line(model: Any) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


def _keys(model: Any, indent: str = "") -> Iterator[str]:
    # The kind says which keys there are, so it comes first, also where a section shares its keys with others.
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] != "kind"):
        inner = _models(field.annotation)
        about = field.description or (_first_line(inner[0]) if inner else "")
        about = about or (f'one of: {", ".join(get_args(field.annotation))}' if name == "kind" else "")
        if name == "kind":
            yield f'{indent}{name} = "{get_args(field.annotation)[0]}"'
        elif field.default is PydanticUndefined:
            yield f"{indent}# {name} = {_placeholder(field.annotation)}   # required; {about}"
        elif inner:
            yield f"{indent}# {name} = {{…}}   # {about}"
        else:
            yield f"{indent}# {name} = {_toml(field.default)}   # {_choices(field.annotation)}{about}"
        for part in inner:
            yield f"{indent}#   keys of {name}:"
            yield from (line if line.startswith("#") else f"# {line}" for line in
                        (f"#     {row.lstrip('# ')}" for row in _keys(part)))


def _choices(annotation: Any) -> str:
    for item in (annotation, *get_args(annotation)):
        if get_args(item) and all(isinstance(value, str) for value in get_args(item)):
            return " | ".join(get_args(item)) + "; "
    return ""


def _placeholder(annotation: Any) -> str:
    if annotation in (int, float):
        return "…"
    if get_origin(annotation) in (tuple, list):
        return "[…]"
    table = get_origin(annotation) is dict or (_models(annotation) and get_origin(annotation) is not types.UnionType)
    return "{…}" if table else '"…"'


def _toml(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"'


def demo_output() -> str:
    """What ``goldset demo`` prints, the folder's name made the same everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "goldset", "demo", "--keep", folder], cwd=ROOT, check=True,
                              capture_output=True, text=True)
        return normalise(done.stdout, folder)


def coverage_table() -> str:
    """The table that ``python tests/benchmarks/coverage.py`` prints."""
    sys.path.insert(0, str(ROOT))
    from tests.benchmarks.coverage import table

    return table(1000)


def normalise(text: str, folder: str) -> str:
    """Replace the workspace's path, the only thing that differs between two runs."""
    return text.replace(str(Path(folder).resolve()), "workspace/demo").replace(folder, "workspace/demo").strip()


def _fill(readme: str, blocks: dict[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        name = match["name"]
        return f"{match[1]}{blocks[name]}\n{match[4]}" if name in blocks else match[0]

    return _BLOCK.sub(put, readme)


def write_block(name: str, body: str) -> None:
    """Replace one block of the README that is written elsewhere."""
    README.write_text(_fill(README.read_text(), {name: body}))


def main() -> int:
    """Write or compare; exit code 1 names what is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    blocks = {name: make() for name, make in GENERATED.items()}
    if options.demo:
        blocks["demo"] = f"```\n{demo_output()}\n```"
    if options.coverage:
        blocks["coverage"] = coverage_table()
    wanted = {README: _fill(README.read_text(), blocks), REFERENCE: reference()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if options.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run 'make docs'")
        wrong = unfilled(README.read_text())
        for line in wrong:
            print(f"README.md: {line}")
        return int(bool(stale or wrong))
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
