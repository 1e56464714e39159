"""Twins that not everybody may see: the same text behind two access rules is judged once for each."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from goldset.schemas import conform
from goldset.text import canonical_json


def twins_apart(spans: pa.Table, documents: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Tables spans and documents, keys of scopes -> spans whose twin groups hold documents with equal values of these.

    Otherwise a question of one tenant would be judged on the other tenant's copy, whose heading and neighbouring
    sentences whoever asked could not see. A group is named after its first span.
    """
    values = {}
    for doc_id, metadata in zip(*(documents.column(name).to_pylist() for name in ("doc_id", "metadata")), strict=True):
        found = json.loads(metadata)
        values[doc_id] = canonical_json([found.get(key) for key in keys])
    columns = (spans.column(name).to_pylist() for name in ("span_id", "doc_id", "twin_group"))
    first: dict[tuple[str, str | None], str] = {}
    groups = [first.setdefault((group, values.get(doc_id)), span) for span, doc_id, group in zip(*columns, strict=True)]
    at = spans.column_names.index("twin_group")
    return conform(spans.set_column(at, spans.schema.field(at), pa.array(groups, pa.string())), "spans")
