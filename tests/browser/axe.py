"""axe-core (MPL-2.0, from the package axe-playwright-python) run on a page."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Contrast that axe cannot compute: text of plots (hidden from readers, told in words), and what a scroll box hides.
_OPEN = {"imgNode", "shortTextContent", "elmPartiallyObscured", "elmPartiallyObscuring"}


def complaints(page: Page) -> list[str]:
    """What axe finds wrong, a line each, and what it could not decide for reasons that need a look."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 5, "axe ran on an empty page"
    lines = [f"{rule['id']}: {node['html'][:120]}" for rule in found["violations"] for node in rule["nodes"]]
    return lines + [f"undecided {rule['id']}: {node['html'][:120]}" for rule in found["incomplete"]
                    for node in rule["nodes"] if (node["any"][0]["data"] or {}).get("messageKey") not in _OPEN]
