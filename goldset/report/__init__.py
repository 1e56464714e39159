"""Findings and numbers -> terminal text, JSON, one self-contained HTML page.

A name is imported when it is asked for: a table of numbers needs neither the audit nor a template.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldset.report.html import render_html
    from goldset.report.jsonout import newly_convicted, read_audit_json, render_json, render_recall_json
    from goldset.report.numbers import render_measurements
    from goldset.report.summary import Headline, headline
    from goldset.report.terminal import render_brief, render_terminal

__all__ = ["Headline", "headline", "newly_convicted", "read_audit_json", "render_brief", "render_html", "render_json",
           "render_measurements", "render_recall_json", "render_terminal"]

_MODULE = {"Headline": "summary", "headline": "summary", "newly_convicted": "jsonout", "read_audit_json": "jsonout",
           "render_brief": "terminal", "render_html": "html", "render_json": "jsonout",
           "render_measurements": "numbers", "render_recall_json": "jsonout",
           "render_terminal": "terminal"}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'goldset.report' has no attribute {name!r}")
    return getattr(import_module(f"goldset.report.{_MODULE[name]}"), name)
