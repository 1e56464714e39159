"""The text of documents, as far as their spans hold it: a published version carries spans and no documents."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def restored_texts(spans: pa.Table) -> dict[str, str]:
    """Spans -> doc_id: text with every span at its offsets and spaces where no span lies.

    Documents of which a span has no offsets, or a text that does not fit them, are left out.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in spans.select(["doc_id", "start", "end", "text"]).to_pylist():
        rows.setdefault(row["doc_id"], []).append(row)
    texts: dict[str, str] = {}
    for doc_id, group in rows.items():
        if any(row["start"] is None or len(row["text"]) != row["end"] - row["start"] for row in group):
            continue
        parts: list[str] = []
        at = 0
        for row in sorted(group, key=lambda row: int(row["start"])):
            parts += [" " * (row["start"] - at), row["text"]]
            at = row["end"]
        texts[doc_id] = "".join(parts)
    return texts
