"""The audit's pages under axe: of a foreign set and of a published version, phone and desk, light, dark and print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.pipeline.checks import Given, audit_any
from goldset.resources import resource
from tests.browser.axe import complaints
from tests.pipeline.conftest import Harbour, harbour

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["harbour"]
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(harbour: Harbour, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of the demo's old set, which fails, and of a version that was built here."""
    run = read_run(resource("data/demo/old_set_production.run.gz"), system="production")
    outcome = audit_any(load_set(resource("data/demo/old_set")), {"production": run}, eval_k=20, serving_k=5,
                        given=Given(logs=resource("data/demo/queries.jsonl"), logs_text="q"), quiet=True)
    path = tmp_path_factory.mktemp("reports") / "old-set.html"
    outcome.write_html(path)
    return {"old": path, "version": harbour.published.path / "report.html"}


@pytest.mark.parametrize("name", ["old", "version"])
def test_axe_finds_nothing_wrong_with_a_report(pages: dict[str, Path], browser: Browser, name: str) -> None:
    pytest.importorskip("axe_playwright_python")
    # Colours do not depend on the width, nor the order of things on the colours: each once is enough.
    for width, scheme, media in ((360, "light", "screen"), (1280, "dark", "screen"), (800, "light", "print")):
        context = browser.new_context(viewport={"width": width, "height": 800},
                                      color_scheme="dark" if scheme == "dark" else "light")
        tab = context.new_page()
        tab.emulate_media(media="print" if media == "print" else "screen")
        tab.goto(pages[name].as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
        assert complaints(tab) == [], (width, scheme, media)
        context.close()


def test_axe_sees_what_is_wrong(pages: dict[str, Path], browser: Browser) -> None:
    pytest.importorskip("axe_playwright_python")
    tab = browser.new_page()
    html = pages["old"].read_text(encoding="utf-8")
    tab.set_content(html.replace('<html lang="en">', "<html>").replace("--soft: #565d66", "--soft: #aaaaaa"))
    rules = {line.split(":")[0] for line in complaints(tab)}
    assert {"html-has-lang", "color-contrast"} <= rules
    tab.close()
