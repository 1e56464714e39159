"""Another chunking of a version's documents, read from a file and held against the text that the version knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import ChunkerConfig, ChunkSource, CorpusConfig, DocumentSource
from goldset.errors import DataError, UsageError, nearest
from goldset.formats.sets import LabelledSet
from goldset.schemas import from_rows
from goldset.spans import restored_texts
from goldset.text import count_words, text_sha256, twin_key

LEAST_AGREEMENT = 0.8
"""If fewer of the chunks than this hold the text that the spans have there, they were cut from other documents."""


def chunk_source(manifest: Mapping[str, Any], path: Path, fields: Mapping[str, str] | None = None) -> ChunkSource:
    """Names of the fields: as given, else those of the version's own chunk file where it had one, or the defaults.

    Raises:
        UsageError: ``fields`` names something that a chunk does not have.
    """
    section = (manifest.get("config", {}).get("corpus") or {}).get("chunks") or {}
    known = [name for name in ChunkSource.model_fields if name != "path"]
    for name in fields or {}:
        if name not in known:
            raise UsageError(f"--fields {name}=…: a chunk has no '{name}'; {nearest(name, known)}")
    # Names that somebody gives replace all those of the version's file: this one is another.
    return ChunkSource.model_validate({**(fields or section), "path": str(path)})


def document_source(manifest: Mapping[str, Any], path: Path, fields: Mapping[str, str] | None = None) -> DocumentSource:
    """Names of the fields: as given, else those of the version's own documents where it had them, or the defaults.

    Raises:
        UsageError: ``fields`` names something that a document does not have.
    """
    section = (manifest.get("config", {}).get("corpus") or {}).get("documents") or {}
    known = [name for name in DocumentSource.model_fields if name not in ("path", "markup")]
    for name in fields or {}:
        if name not in known:
            raise UsageError(f"--document-fields {name}=…: a document has no '{name}'; {nearest(name, known)}")
    named = {**fields, "markup": section.get("markup", "text")} if fields else section
    return DocumentSource.model_validate({**named, "path": str(path)})


def read_chunking(labelled: LabelledSet, path: Path, fields: Mapping[str, str] | None = None) -> pa.Table:
    """Chunk file -> table ``chunks`` with offsets in the documents of the version.

    ``fields`` are the names of its fields, by ours (id, doc_id, text, title, start, end, metadata).

    Chunks with offsets keep them; if any has none, all are located in the text that the spans hold.

    Raises:
        UsageError: the set is no published version.
        DataError: the chunks are not of the version's documents, or of another version of them.
    """
    from goldset.corpus import build_corpus
    from goldset.formats.corpora import read_chunks

    corpus = labelled.corpus
    if labelled.kind != "published" or corpus is None:
        raise UsageError(f"--chunks: {labelled.label} is no published version (it is {labelled.kind}): its gold are "
                         "ids, not stretches of text, and only a published version can be scored under another "
                         "chunking")
    source = chunk_source(labelled.manifest, path, fields)
    raw, _ = read_chunks(source, path)
    texts = restored_texts(corpus.spans)
    documents = None
    if any(chunk.start is None for chunk in raw):
        documents = from_rows("documents", [
            {"doc_id": doc_id, "text": text, "title": None, "url": None, "sha256": text_sha256(text), "metadata": "{}"}
            for doc_id, text in texts.items()])
    built = build_corpus(documents=documents, raw_chunks=raw, config=CorpusConfig(documents=None, chunks=source,
                                                                                   chunker=None))
    _check_text(built.chunks, texts, path)
    return built.chunks


def _check_text(chunks: pa.Table, texts: Mapping[str, str], path: Path) -> None:
    """Refuse chunks of documents, or of versions of documents, that the set does not know."""
    agree = known = 0
    first = ""
    for row in chunks.to_pylist():
        text = texts.get(row["doc_id"])
        if text is None or row["start"] is None:
            continue
        here = twin_key(text[row["start"] : row["end"]]).replace(" ", "")
        if not here:
            continue
        known += 1
        # What no chunk of the version held is unknown there: blanks, which the key drops.
        held = twin_key(row["text"][row["body_start"] :]).replace(" ", "")
        same = held == here or (len(here) < len(held) and _holds(text, row))
        agree += same
        first = first or ("" if same else row["chunk_id"])
    if not known:
        raise DataError(f"{path}: none of the {len(chunks)} chunks lies where the version has text; give chunks of the "
                        "same documents, with the same document ids")
    if agree < LEAST_AGREEMENT * known:
        raise DataError(f"{path}: {known - agree} of {known} chunks hold other text than the version at their offsets "
                        f"(the first is '{first}'); the documents have changed: run 'goldset reanchor' first")


def _holds(text: str, row: Mapping[str, Any]) -> bool:
    body = row["text"][row["body_start"] :]
    return len(body) == row["end"] - row["start"] and all(
        char == other or char.isspace() for char, other in zip(text[row["start"] : row["end"]], body, strict=False))


def explain_file(file: Path, doc_id: str | None, chunks: Path | None, chunker: ChunkerConfig,
                 fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One document of a file and its chunks -> doc_id, length, chunks with roles, spans with words and heading, cuts.

    ``offsets`` counts the chunks by how far their offsets can be trusted; those without offsets are in none of the
    lists and counted as ``without_offsets``.

    Raises:
        DataError: the file has no such document, or the chunks have none of it.
    """
    from goldset.corpus import build_corpus
    from goldset.formats.corpora import read_chunks
    from goldset.spans import canonical_spans, explain_document

    source, documents = _documents_of(file)
    names = documents.column("doc_id").to_pylist()
    name = names[0] if doc_id is None else doc_id
    if name not in names:
        raise DataError(f"--doc {name}: {file} has no such document with text in it; {nearest(name, names)}")
    document = documents.filter(pc.equal(documents.column("doc_id"), name))
    if chunks is None:
        config = CorpusConfig(documents=source, chunks=None, chunker=chunker)
        built = build_corpus(documents=document, raw_chunks=None, config=config)
    else:
        table = chunk_source({}, chunks, fields)
        raw = [chunk for chunk in read_chunks(table, chunks)[0] if chunk.doc_id == name]
        if not raw:
            raise DataError(f"{chunks}: no chunk of document '{name}'; name another with --doc")
        built = build_corpus(documents=document, raw_chunks=raw, config=CorpusConfig(
            documents=None, chunks=table, chunker=None))
    text: str = document.column("text")[0].as_py()
    rows = built.chunks.to_pylist()
    placed = [(row["chunk_id"], row["start"], row["end"]) for row in rows if row["start"] is not None]
    shown = explain_document(text, placed)
    found = canonical_spans(documents=document, chunks=built.chunks).spans.select(["start", "heading"]).to_pylist()
    headings = {row["start"]: row["heading"] for row in found}
    for row in shown["spans"]:
        row["words"] = count_words(text[row["start"] : row["end"]])
        row["heading"] = headings[row["start"]]
    return {"doc_id": name, "length": len(text), "without_offsets": len(rows) - len(placed),
            "offsets": built.report["offsets"], **shown}


def _documents_of(file: Path) -> tuple[DocumentSource, pa.Table]:
    """The documents of a JSONL file, whatever of the usual names its id has, of a folder, or of one text file."""
    from goldset.formats.corpora import read_document_file, read_documents
    from goldset.formats.lines import json_lines

    source = DocumentSource.model_validate({"path": str(file)})
    if file.is_dir():
        return source, read_documents(source, file)[0]
    if not {".jsonl", ".json", ".ndjson"} & set(file.suffixes):
        return source, read_document_file(file)
    first = next((row for _, row in json_lines(file)), {})
    named = next((name for name in ("doc_id", "_id", "id", "document_id") if name in first), source.id)
    source = source.model_copy(update={"id": named})
    return source, read_documents(source, file)[0]
