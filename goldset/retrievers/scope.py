"""A question's scope (tenant, locale, filters as sent) -> the chunks it may see."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goldset.errors import DataError

Mask = npt.NDArray[np.bool_]


class Scopes:
    """Filters chunks by the metadata of their documents.

    A chunk is visible if, for every key of the scope that some document's metadata has, its own document's value
    equals the scope's, or is a list that contains it. A document without the key is hidden then: an access rule that
    is not known to be met is not met. Keys that no document has (a client's version, say) filter nothing; a list in
    the scope means any of its values.

    Args:
        documents: table documents.
        doc_ids: document of each chunk, in the order of the masks.
    """

    def __init__(self, documents: pa.Table, doc_ids: list[str]) -> None:
        self._documents = documents
        self._doc_ids = doc_ids
        self._masks: dict[str, Mask | None] = {}

    def visible(self, scope: str) -> Mask | None:
        """JSON object of a question's scope -> mask over the chunks; None means all of them."""
        if scope not in self._masks:
            self._masks[scope] = self._mask(scope)
        return self._masks[scope]

    def _mask(self, scope: str) -> Mask | None:
        wanted = {key: value for key, value in _object(scope, "a question's scope").items() if value is not None}
        limits = [(self._values[key], value) for key, value in sorted(wanted.items()) if key in self._values]
        if not limits:
            return None
        mask = np.ones(len(self._doc_ids), dtype=bool)
        for values, value in limits:
            allowed = np.zeros(len(self._documents), dtype=bool)
            for form in _forms(value):
                allowed[values.get(form, [])] = True
            mask &= np.append(allowed, False)[self._document_rows]
        return mask

    @cached_property
    def _document_rows(self) -> npt.NDArray[np.int64]:
        """Row of each chunk's document; the last one (False in every mask) where the document is unknown."""
        rows = {doc_id: row for row, doc_id in enumerate(self._documents.column("doc_id").to_pylist())}
        return np.array([rows.get(doc_id, len(rows)) for doc_id in self._doc_ids], dtype=np.int64)

    @cached_property
    def _values(self) -> dict[str, dict[str, list[int]]]:
        """Metadata key -> value -> rows of the documents that have it."""
        found: dict[str, dict[str, list[int]]] = {}
        columns = (self._documents.column(name).to_pylist() for name in ("doc_id", "metadata"))
        for row, (doc_id, metadata) in enumerate(zip(*columns, strict=True)):
            if metadata == "{}":
                continue
            for key, value in _object(metadata, f"metadata of document '{doc_id}'").items():
                for form in _forms(value):
                    found.setdefault(key, {}).setdefault(form, []).append(row)
        return found


class KnownChunks:
    """The corpus as a system sees it that is not ours: which ids there are, and which of them a scope hides.

    Args:
        chunk_ids: chunks in the order of the masks.
        scopes: the filter.
    """

    def __init__(self, chunk_ids: Sequence[str], scopes: Scopes) -> None:
        self._chunk_ids, self._scopes = chunk_ids, scopes

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {chunk: row for row, chunk in enumerate(self._chunk_ids)}

    def __contains__(self, chunk: object) -> bool:
        return chunk in self._rows

    def example(self) -> str:
        """An id of the corpus, for messages."""
        return min(self._rows, default="nothing")

    def hidden(self, chunk_ids: Iterable[str], scope: str) -> set[str]:
        """Those of the chunks that whoever asks under ``scope`` may not see; ids that are not known are none."""
        mask = self._scopes.visible(scope)
        if mask is None:
            return set()
        return {chunk for chunk in chunk_ids if chunk in self._rows and not mask[self._rows[chunk]]}


def beyond_scope(run: pa.Table, questions: pa.Table, known: KnownChunks) -> Mask:
    """Tables run, questions -> which rows name a chunk that whoever asked may not see."""
    scope_of = dict(zip(*(questions.column(name).to_pylist() for name in ("question_id", "scope")), strict=True))
    asked, chunks = (run.column(name).to_pylist() for name in ("question_id", "chunk_id"))
    lists: dict[str, list[str]] = {}
    for question, chunk in zip(asked, chunks, strict=True):
        lists.setdefault(question, []).append(chunk)
    hidden = {question: known.hidden(found, scope_of.get(question, "{}")) for question, found in lists.items()}
    return np.array([chunk in hidden[question] for question, chunk in zip(asked, chunks, strict=True)], dtype=bool)


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{what}: not JSON ({error.msg} at column {error.colno}); it must be a JSON object") from error
    if not isinstance(value, dict):
        raise DataError(f'{what}: {type(value).__name__} where a JSON object was expected, e.g. {{"tenant": "a"}}')
    return value


def _forms(value: Any) -> list[str]:
    """Values to compare as text: a CSV log writes 7 and true as strings, a JSON corpus does not."""
    if isinstance(value, list):
        return [form for item in value for form in _forms(item)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return [] if value is None or isinstance(value, dict) else [str(value)]
