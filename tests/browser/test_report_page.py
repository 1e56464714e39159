"""The audit's page in a real browser: phone and desk width, without scripts, without the network, under 1 MB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from goldset.audit import Context, audit_context, figures, finding, worst_questions
from goldset.pipeline.curves import curves_of
from goldset.report import render_html
from goldset.schemas import from_rows
from tests.audit.conftest import build_run, build_set

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
QUESTIONS = 1000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on 1,000 questions over 1,500 passages, long words and long names among them."""
    passages = {f"d{i}": f"passage number {i} tells of part {i % 97} and of part {i % 89} " * 12 for i in range(1500)}
    passages["d7"] = "unbreakable" * 60
    gold = {f"q{i}": [f"d{i}", *([f"d{i + 49}"] if i % 3 == 0 else [])] for i in range(QUESTIONS)}
    questions = {f"q{i}": f"passage number {i} tells of part {i % 97} or not" for i in range(QUESTIONS)}
    # The second gold is the eighth result: 49 = 7 * 7.
    lists = {f"q{i}": [f"d{(i + step * 7) % 1500}" for step in range(20)] for i in range(QUESTIONS)}
    runs = {name: build_run(name, lists, family=name) for name in ("production", "a-system-with-a-very-long-name" * 2)}
    context = Context(build_set(gold, passages=passages, questions=questions), runs,
                      log_questions=pa.table({"text": [f"where is part {i}" for i in range(200)]}),
                      eval_k=20, serving_k=5, served_system="production")
    path = tmp_path_factory.mktemp("report") / "report.html"
    steps = [{"what": "the old headline", "k": 20, "value": 1.0, "low": 0.9, "high": 1.0, "n": QUESTIONS}]
    path.write_text(render_html("a set", audit_context(context), worst=worst_questions(context),
                                bars=figures(context),
                                supersedes={"set": "old", "verdicts": {"leakage": "fail"}, "steps": steps},
                                curves=curves_of(context.labelled, runs, served_k=5, evaluated_k=20)),
                    encoding="utf-8")
    return path


def test_a_thousand_questions_make_less_than_a_megabyte(page: Path) -> None:
    assert page.stat().st_size < 1_000_000


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_runs_off_the_side_and_nothing_is_fetched(page: Path, browser: Browser, width: int,
                                                          scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800},
                                  color_scheme="dark" if scheme == "dark" else "light")
    tab = context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: errors.append(message.text))
    tab.goto(page.as_uri())
    assert asked == [page.as_uri()]
    assert errors == []
    tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    # The first screen has the answer, the reason and the next step.
    shown = tab.locator(".first").bounding_box()
    assert shown is not None
    assert shown["y"] + min(shown["height"], 700) <= 800
    # Every plot is hidden from screen readers and told in words beside it.
    assert tab.locator("figure").count() == tab.locator("figure svg[aria-hidden=true]").count() > 4
    assert all(len(text) > 20 for text in tab.locator("figcaption").all_inner_texts())
    assert tab.locator("h1").count() == 1
    assert tab.evaluate("[...document.querySelectorAll('th')].every(cell => cell.scope)")
    context.close()


def test_a_phone_shows_each_number_of_the_table(browser: Browser, tmp_path: Path) -> None:
    rows = [{"system": "a-system-with-a-very-long-name" * 2, "measure": measure, "k": 5, "slice": "all", "value": 0.35,
             "low": 0.28, "high": 0.42, "reason": None, "n": 40, "excluded": [{"reason": "no_gold", "count": 3}],
             "method": "wilson_n_eff", "weighting": "none", "gold_version": None} for measure in ("recall", "hit")]
    table = from_rows("measurements", rows)
    findings = from_rows("findings", [finding("completeness", "all", "one_gold", n=43, message="one")])
    path = tmp_path / "report.html"
    path.write_text(render_html("a set", findings, table, main=table.slice(0, 1)), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 360, "height": 800})
    tab.goto(path.as_uri())
    assert tab.locator(".stack").nth(1).is_hidden()  # the further measures are folded
    for cell in ("0.350", "0.280 to 0.420", "40", "3 no gold"):
        box = tab.locator(".stack td", has_text=re.compile(rf"^{cell}$")).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    tab.close()


def test_it_reads_the_same_without_scripts_and_on_paper(page: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 800, "height": 800}, java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    text = tab.locator("main").inner_text()
    for part in ("Can this number be believed?", "Next step", "Look at these first", "counted at 20, never served at 5",
                 "Before and after", "Recall against k", "At 20, evaluated: production 1.000"):
        assert part in text
    assert len(tab.pdf()) > 10_000
    context.close()
