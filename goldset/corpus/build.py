"""Documents and raw chunks -> the tables documents and chunks, with a report of what was found and left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from goldset.config import CorpusConfig
from goldset.corpus.chunker import cut_document
from goldset.corpus.locate import Placed, in_document, shares_text, whole_document, without_document
from goldset.corpus.tokens import load_token_starts
from goldset.errors import DataError
from goldset.formats.corpora import RawChunk
from goldset.progress import progress
from goldset.schemas import OFFSET_STATES, conform, empty, from_rows, schema_of
from goldset.text import canonical_json, twin_key

UNPLACED_SHARE = 0.2
"""If more of the chunks than this are not in their documents, the documents are the wrong ones."""


@dataclass(frozen=True)
class CorpusTables:
    """Tables ``documents`` and ``chunks``, and what was counted on the way."""

    documents: pa.Table
    chunks: pa.Table
    report: dict[str, Any]


def build_corpus(
    *, documents: pa.Table | None, raw_chunks: Sequence[RawChunk] | None, config: CorpusConfig, quiet: bool = True
) -> CorpusTables:
    """Documents and chunks as read -> documents, chunks with offsets that say how far they can be trusted.

    Without chunks the documents are cut by ``config.chunker``, chunk_id = ``doc_id:start-end``. Chunks with nothing
    visible in their body are left out and counted. Documents that only chunks name get a row without text. Unless
    ``quiet``, bars show how far it is.

    Report: documents, chunks, empty_chunks, offsets (state -> chunks), first (state -> the first chunk in it, for
    states that deserve a look), unknown_documents, overlapping_pairs (neighbours), pairs_agree, first_disagreeing.

    Raises:
        DataError: nothing is left, no chunk names a known document, or too many chunks are not in their documents.
    """
    table = documents if documents is not None else empty("documents")
    if raw_chunks is None:
        placed = _own_chunks(table, config, quiet)
        report: dict[str, Any] = {"empty_chunks": 0, "first_empty_chunk": None, "unknown_documents": 0}
    else:
        placed, report = _given_chunks(raw_chunks, table, config, quiet)
    if not placed:
        raise DataError(
            f"{_where(config)}: no chunk with any text in it ({report['empty_chunks']} empty); the corpus is empty"
        )
    return CorpusTables(
        _all_documents(table, placed),
        _chunk_table(placed),
        {
            "documents": len({found.chunk.doc_id for found in placed} | set(table.column("doc_id").to_pylist())),
            "chunks": len(placed),
            **report,
            **_offset_report(placed),
            **_overlap_report(placed),
        },
    )


def _where(config: CorpusConfig) -> str:
    source = config.chunks or config.documents
    assert source is not None
    return str(source.path)


def _own_chunks(documents: pa.Table, config: CorpusConfig, quiet: bool) -> list[Placed]:
    assert config.chunker is not None
    tokenizer = config.chunker.tokenizer
    token_starts = load_token_starts(tokenizer) if tokenizer is not None else None
    placed = []
    columns = (documents.column(name).to_pylist() for name in ("doc_id", "text"))
    with progress("cutting documents", len(documents), quiet=quiet) as advance:
        for doc_id, text in zip(*columns, strict=True):
            for start, end in cut_document(text or "", config.chunker, token_starts):
                chunk = RawChunk(0, f"{doc_id}:{start}-{end}", doc_id, text[start:end], None, start, end, {})
                placed.append(Placed(chunk, start, end, 0, "verified"))
            advance(1)
    return placed


def _given_chunks(
    raw: Sequence[RawChunk], documents: pa.Table, config: CorpusConfig, quiet: bool
) -> tuple[list[Placed], dict[str, Any]]:
    texts = dict(zip(documents.column("doc_id").to_pylist(), documents.column("text").to_pylist(), strict=True))
    groups: dict[str, list[RawChunk]] = {}
    empties = []
    for chunk in raw:
        if twin_key(chunk.text):
            groups.setdefault(chunk.doc_id, []).append(chunk)
        else:
            empties.append(chunk.chunk_id)
    unknown = [doc_id for doc_id in groups if texts.get(doc_id) is None]
    if texts and groups and len(unknown) == len(groups):
        raise DataError(
            f"{_where(config)}: 0 of {len(groups)} document ids of the chunks are among the documents, the "
            f"first is '{unknown[0]}', the documents have ids like '{next(iter(texts))}'; "
            "check the fields that hold the ids"
        )
    placed: list[Placed] = []
    with progress("placing chunks", len(raw) - len(empties), quiet=quiet) as advance:
        for doc_id, chunks in groups.items():
            text = texts.get(doc_id)
            if text is not None:
                placed.extend(in_document(chunks, text))
            elif len(chunks) == 1 and chunks[0].chunk_id == doc_id and chunks[0].start is None:
                placed.append(whole_document(chunks[0]))
            else:
                placed.extend(without_document(chunks))
            advance(len(chunks))
    _check_found([found for found in placed if texts.get(found.chunk.doc_id) is not None], config)
    empties.extend(found.chunk.chunk_id for found in placed if not twin_key(found.body))
    placed = [found for found in placed if twin_key(found.body)]
    return placed, {
        "empty_chunks": len(empties),
        "first_empty_chunk": next(iter(empties), None),
        "unknown_documents": len(unknown) if texts else 0,
    }


def _check_found(placed: list[Placed], config: CorpusConfig) -> None:
    lost = [found.chunk for found in placed if found.start is None]
    if len(lost) > UNPLACED_SHARE * len(placed):
        first = lost[0]
        raise DataError(
            f"{_where(config)}, line {first.line}: the text of chunk '{first.chunk_id}' is not in its document "
            f"'{first.doc_id}'{_declared_at(first)}, nor are {len(lost) - 1} others of {len(placed)} chunks; "
            "give the documents that these chunks were cut from"
        )


def _declared_at(chunk: RawChunk) -> str:
    return "" if chunk.start is None else f" (offsets {chunk.start}-{chunk.end})"


def _offset_report(placed: list[Placed]) -> dict[str, Any]:
    counts = Counter(found.offsets for found in placed)
    first: dict[str, str] = {}
    for found in placed:
        chunk = found.chunk
        moved = found.offsets == "located" and chunk.start is not None
        if moved or found.offsets in ("mismatched", "absent"):
            first.setdefault(
                found.offsets,
                f"chunk '{chunk.chunk_id}' of '{chunk.doc_id}'{_declared_at(chunk)}, line {chunk.line}",
            )
    return {"offsets": {state: counts[state] for state in OFFSET_STATES if counts[state]}, "first": first}


def _overlap_report(placed: list[Placed]) -> dict[str, Any]:
    ordered = sorted(
        (found for found in placed if found.start is not None),
        key=lambda found: (found.chunk.doc_id, found.start, -(found.end or 0), found.chunk.chunk_id),
    )
    pairs = agree = 0
    first = None
    for left, right in pairwise(ordered):
        if left.chunk.doc_id == right.chunk.doc_id and (right.start or 0) < (left.end or 0):
            pairs += 1
            # Two chunks that hold their document's own text cannot disagree.
            if {left.offsets, right.offsets} == {"verified"} or shares_text(left, right):
                agree += 1
            else:
                first = first or f"chunks '{left.chunk.chunk_id}' and '{right.chunk.chunk_id}'"
    return {"overlapping_pairs": pairs, "pairs_agree": agree, "first_disagreeing": first}


def _all_documents(documents: pa.Table, placed: list[Placed]) -> pa.Table:
    """The documents, and a row without text for each that only chunks name."""
    known = set(documents.column("doc_id").to_pylist())
    titles: dict[str, str | None] = {}
    common: dict[str, dict[str, Any]] = {}
    for found in placed:
        chunk = found.chunk
        if chunk.doc_id in known:
            continue
        titles[chunk.doc_id] = titles.get(chunk.doc_id) or chunk.title or None
        before = common.get(chunk.doc_id)
        # What all chunks of a document say alike is said of the document; offsets and the like are not.
        common[chunk.doc_id] = (
            chunk.metadata
            if before is None
            else {name: value for name, value in before.items() if chunk.metadata.get(name) == value}
        )
    rows = [
        {
            "doc_id": doc_id,
            "text": None,
            "title": title,
            "url": None,
            "sha256": None,
            "metadata": canonical_json(common[doc_id]),
        }
        for doc_id, title in titles.items()
    ]
    added = pa.concat_tables([documents, from_rows("documents", rows)]) if rows else documents
    return conform(added.sort_by("doc_id"), "documents")


def _chunk_table(placed: list[Placed]) -> pa.Table:
    ordered = sorted(placed, key=lambda found: found.chunk.chunk_id)
    columns = {
        "chunk_id": [found.chunk.chunk_id for found in ordered],
        "doc_id": [found.chunk.doc_id for found in ordered],
        "start": [found.start for found in ordered],
        "end": [found.end for found in ordered],
        "text": [found.chunk.text for found in ordered],
        "body_start": [found.body_start for found in ordered],
        "offsets": [found.offsets for found in ordered],
    }
    schema = schema_of("chunks")
    return conform(
        pa.table({name: pa.array(values, schema.field(name).type) for name, values in columns.items()}),
        "chunks",
    )
