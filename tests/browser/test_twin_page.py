"""The page /twins in a real browser, on a real project: what is pressed there is followed by the next rebuild."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goldset.config import load_config
from goldset.pipeline import rebuild
from tests.pipeline import golden
from tests.test_near_twins import A, B

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GOLDSET_CACHE", "GOLDSET_REVIEW_URL", "GOLDSET_REVIEW_TOKENS"):
        monkeypatch.delenv(name, raising=False)
    path = golden.write(tmp_path / "harbour")
    for name in ("documents.jsonl", "chunks.jsonl"):
        with (path.parent / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"doc_id": doc, "chunk_id": doc, "text": text, "start": 0, "end": len(text)})
                            + "\n" for doc, text in (("memo", A), ("note", B)))
    rebuild(load_config(path), quiet=True)
    return path


@pytest.fixture
def address(project: Path) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "goldset", "review", "serve", "-c", str(project), "--port", "0"],
                               cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield next(match.group() for line in process.stderr if (match := re.search(r"http://\S+", line)))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        process.stderr.close()


def test_two_passages_are_judged_as_one_from_the_page(browser: Browser, project: Path, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.fill("#who", "ada")
    page.click("text=Start reading")
    page.click("text=Near twins")
    page.wait_for_url("**/twins")
    pair = page.locator(".twin")
    assert pair.count() == 1
    assert pair.locator("del").inner_text() == "word20"
    assert pair.locator("ins").inner_text() == "other"
    pair.get_by_role("button", name="Judge as one").click()
    page.wait_for_url("**/twins#pair1")
    assert pair.locator(".state").inner_text().startswith("Judged as one, ada, ")
    assert pair.get_by_role("button").all_inner_texts() == ["Keep apart", "Undo"]
    spans = rebuild(load_config(project), quiet=True, until="spans").table("spans").to_pylist()
    groups = {row["doc_id"]: row["twin_group"] for row in spans}
    assert groups["note"] == groups["memo"] == f"memo#0-{len(A)}"
    pair.get_by_role("button", name="Undo").click()
    page.locator(".state", has_text=re.compile("^Open$")).wait_for()
    page.click("text=Back to reading")
    page.wait_for_url(address)
    page.close()
