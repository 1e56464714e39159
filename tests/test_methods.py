"""METHODS.md cannot lie: its examples run, and every section and check that is cited anywhere is there."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

from goldset.metrics.registry import MEASURES
from goldset.pipeline.scores import explain
from goldset.resources import resource

ROOT = Path(__file__).resolve().parents[1]
METHODS = ROOT / "goldset" / "METHODS.md"
TEXT = METHODS.read_text(encoding="utf-8")
HEADINGS = re.compile(r"^##+ (\d+(?:\.\d+)?)\.? (.+)$", re.MULTILINE)
# METHODS 3.2 · METHODS 1 and 10 · METHODS 5 to 8 · METHODS 8, 2.1; a line may break after the word.
CITED = re.compile(r"\bMETHODS[\s#/]+(\d+(?:\.\d+)?(?:(?:,| and| to),?\s\d+(?:\.\d+)?(?![\d%]))*)")
TYPES = {".py", ".md", ".json", ".toml", ".html", ".js", ".jsonl"}


def _checks() -> Iterator[tuple[int, str]]:
    """(number, section) of each example that carries a number: ``# check 3, 4: what``."""
    section = ""
    for line in TEXT.splitlines():
        if heading := HEADINGS.match(line):
            section = heading[1]
        if found := re.search(r"# check (\d+(?:, \d+)*)", line):
            yield from ((int(number), section) for number in found[1].split(", "))


def _promised() -> dict[int, str]:
    """Check -> section, as section 13 lists them: ``**1** 1 to 8, 33``."""
    promised: dict[int, str] = {}
    for section, numbers in re.findall(r"\*\*([\d.]+)\*\* ([\d, to\n]+)[;.]", TEXT.partition("## 13.")[2]):
        for part in numbers.replace("\n", " ").split(","):
            first, _, last = part.strip().partition(" to ")
            promised |= dict.fromkeys(range(int(first), int(last or first) + 1), section)
    return promised


def _files() -> Iterator[str]:
    """Every text file of the project, this one left out; environments that somebody set up beside it are not it."""
    folders = (ROOT / name for name in ("goldset", "flows", "tests", "configs", "data"))
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(path for folder in folders for path in folder.rglob("*"))]
    for path in sorted(paths):
        if path.suffix in TYPES and path.is_file() and path != Path(__file__):
            yield str(path.relative_to(ROOT))


def _citations() -> Iterator[tuple[str, str]]:
    """(file, what it cites after the word METHODS) over the whole checkout."""
    for name in _files():
        yield from ((name, match[1]) for match in CITED.finditer((ROOT / name).read_text(encoding="utf-8")))


def test_every_example_gives_what_stands_below_it() -> None:
    failed, tried = doctest.testfile(str(METHODS), module_relative=False, encoding="utf-8")
    assert failed == 0, "run: python -m doctest goldset/METHODS.md"
    assert tried > 60


def test_every_check_stands_once_and_in_the_section_that_the_list_names() -> None:
    found = list(_checks())
    assert len(found) == len(dict(found)), "a check number stands twice"
    assert dict(found) == _promised()


def test_every_cited_section_and_check_exists() -> None:
    headings = {number for number, _ in HEADINGS.findall(TEXT)}
    checks = dict(_checks())
    cited = list(_citations())
    assert cited
    for name, what in cited:
        first, *rest = re.findall(r"\d+(?:\.\d+)?", what)
        assert first in headings, f"{name} cites METHODS {what}"
        # After 13 comes the number of a check, elsewhere another section.
        unknown = [part for part in rest if (int(part) not in checks if first == "13" else part not in headings)]
        assert not unknown, f"{name} cites METHODS {what}"


def test_every_measure_that_methods_explains_is_one_and_the_modules_exist() -> None:
    for name in re.findall(r"`(recall\w*|answerable|mrr|ndcg)`", TEXT):
        assert name in MEASURES or name == "probe_recall", name
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", TEXT):
        assert (ROOT / "goldset" / path).exists() or (ROOT / path).exists(), path


def test_whoever_asks_how_recall_is_counted_is_told_where_the_formulas_stand() -> None:
    assert str(resource("goldset/METHODS.md")) in explain()
    assert resource("goldset/METHODS.md").read_text(encoding="utf-8") == TEXT
    assert "[goldset/METHODS.md](goldset/METHODS.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_nothing_cites_a_paper_that_the_checkout_does_not_have() -> None:
    for name in _files():
        text = (ROOT / name).read_text(encoding="utf-8")
        found = re.search(r"\bSTATISTICS\b|\b(?:DESIGN|STACK|STYLE) \d|\bCASES C\d", text)
        assert found is None, f"{name}: {found}"
