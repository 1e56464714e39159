"""Findings and measurements as JSON documents with a schema version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

AUDIT_SCHEMA = "goldset.audit/1"
RECALL_SCHEMA = "goldset.recall/1"


def render_json(findings: pa.Table) -> dict[str, Any]:
    """Table findings -> ``{"schema": "goldset.audit/1", "verdict": …, "findings": […]}``, columns as in the schema."""
    from goldset.audit import overall

    return {"schema": AUDIT_SCHEMA, "verdict": overall(findings), "findings": findings.to_pylist()}


def render_recall_json(measurements: pa.Table) -> dict[str, Any]:
    """Table measurements -> ``{"schema": "goldset.recall/1", "measurements": […]}``; excluded maps reason to count."""
    rows = [{**row, "excluded": {item["reason"]: item["count"] for item in row["excluded"]}}
            for row in measurements.to_pylist()]
    return {"schema": RECALL_SCHEMA, "measurements": rows}
