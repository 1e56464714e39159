"""Findings and numbers -> terminal text, JSON, one self-contained HTML page."""

from goldset.report.html import render_html
from goldset.report.jsonout import newly_convicted, read_audit_json, render_json, render_recall_json
from goldset.report.summary import Headline, headline
from goldset.report.terminal import render_brief, render_measurements, render_terminal

__all__ = ["Headline", "headline", "newly_convicted", "read_audit_json", "render_brief", "render_html",
           "render_json", "render_measurements", "render_recall_json", "render_terminal"]
