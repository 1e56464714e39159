"""Small questions about spans that several stages ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.spans.sentences import line_end, line_start, sentences


def context(span: Mapping[str, Any], documents: pa.Table | Mapping[str, str | None]) -> tuple[str, str]:
    """A span and its documents -> the sentence before it and the one after it, as in the document.

    Args:
        span: a row of ``spans`` (doc_id, start and end are read).
        documents: the table ``documents``, or a mapping doc_id -> text (quicker for many spans).

    Returns:
        (before, after); '' where the document ends, or has no text, or the span no offsets.
    """
    if span["start"] is None or span["end"] is None:
        return "", ""
    text = _text(span["doc_id"], documents)
    if text is None:
        return "", ""
    return _before(text, span["start"]), _after(text, span["end"])


def _text(doc_id: str, documents: pa.Table | Mapping[str, str | None]) -> str | None:
    if isinstance(documents, Mapping):
        return documents.get(doc_id)
    row = pc.index(documents.column("doc_id"), doc_id).as_py()
    text: str | None = documents.column("text")[row].as_py() if row >= 0 else None
    return text


def _before(text: str, at: int) -> str:
    end = at
    while end and text[end - 1].isspace():
        end -= 1
    if not end:
        return ""
    found = sentences(text[line_start(text, end - 1) : end])
    low = line_start(text, end - 1) + found[-1][0]
    return text[low:end]


def _after(text: str, at: int) -> str:
    rest = text[at : at + 1]
    while rest and rest.isspace():
        at += 1
        rest = text[at : at + 1]
    if not rest:
        return ""
    low, high = sentences(text[at : line_end(text, at)])[0]
    return text[at + low : at + high]


def main_span(links: pa.Table) -> dict[str, str]:
    """span_links -> chunk_id: the span that holds most of the chunk's text (ties: the smaller span_id)."""
    ordered = links.sort_by([("chunk_share", "ascending"), ("span_id", "descending")])
    return dict(zip(ordered.column("chunk_id").to_pylist(), ordered.column("span_id").to_pylist(), strict=True))
