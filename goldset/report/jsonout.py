"""Findings and measurements as JSON documents with a schema version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.errors import DataError

AUDIT_SCHEMA = "goldset.audit/1"
RECALL_SCHEMA = "goldset.recall/1"


def render_json(findings: pa.Table) -> dict[str, Any]:
    """Table findings -> ``{"schema": "goldset.audit/1", "verdict": …, "findings": […], "limits": {…}}``.

    Columns of the findings as in the schema; ``limits`` are all thresholds and minimum sample sizes.
    """
    from goldset.audit import limits, overall

    return {"schema": AUDIT_SCHEMA, "verdict": overall(findings), "findings": findings.to_pylist(),
            "limits": {name: value for name, value, _ in limits()}}


def read_audit_json(path: Path) -> list[dict[str, Any]]:
    """The findings of an audit that was kept with ``--json``.

    Raises:
        DataError: not such a document, or one of another schema version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; keep one with 'goldset audit … --json'") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not an audit's JSON document ({error}); keep one with 'goldset audit … --json'"
                        ) from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != AUDIT_SCHEMA or not isinstance(document.get("findings"), list):
        raise DataError(f"{path}: schema '{found}' where '{AUDIT_SCHEMA}' was expected; keep one with "
                        "'goldset audit … --json'")
    rows: list[dict[str, Any]] = document["findings"]
    return rows


def convicted(findings: list[dict[str, Any]], *, from_verdict: str) -> dict[tuple[str, str], str]:
    """Check and subject -> the gravest verdict at or above ``from_verdict`` (warn or fail)."""
    counted = ("warn", "fail")[("warn", "fail").index(from_verdict) :]
    worst: dict[tuple[str, str], str] = {}
    for row in findings:
        if row["verdict"] in counted:
            key = (row["check"], row["subject"])
            worst[key] = max(worst.get(key, ""), row["verdict"], key=("", "warn", "fail").index)
    return worst


def newly_convicted(findings: pa.Table, before: list[dict[str, Any]], *, from_verdict: str) -> list[str]:
    """What an audit convicts at or above ``from_verdict`` and an earlier one did not: ``check (subject): verdict``.

    What was a warning before and fails now is new. What was not measured before counts as not convicted.
    """
    earlier = convicted(before, from_verdict="warn")
    order = ("", "warn", "fail").index
    return [f"{check} ({subject}): {verdict}" for (check, subject), verdict in
            convicted(findings.to_pylist(), from_verdict=from_verdict).items()
            if order(verdict) > order(earlier.get((check, subject), ""))]


def render_recall_json(measurements: pa.Table) -> dict[str, Any]:
    """Table measurements -> ``{"schema": "goldset.recall/1", "measurements": […]}``; excluded maps reason to count."""
    rows = [{**row, "excluded": {item["reason"]: item["count"] for item in row["excluded"]}}
            for row in measurements.to_pylist()]
    return {"schema": RECALL_SCHEMA, "measurements": rows}
