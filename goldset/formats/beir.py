"""A BEIR folder, or qrels with questions and corpus files of the same kind -> LabelledSet."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.formats.columns import objects_by_block
from goldset.formats.lines import field, json_lines, numbered_lines, opaque_id, open_bytes
from goldset.formats.qrels import find_pair, read_qrels
from goldset.formats.resolve import refuse_respelled
from goldset.formats.sets import Corpus, LabelledSet, Note
from goldset.schemas import ORIGINS, schema_of
from goldset.text import content_hash, count_words, question_key, text_sha256

_ID_FIELDS = ("_id", "id", "question_id", "query_id", "qid", "doc_id", "docid")
_TEXT_FIELDS = ("text", "question", "query", "body", "contents")


def find_file(folder: Path, name: str) -> Path | None:
    """``folder/name`` or its gzip, whichever is there."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def is_beir(folder: Path) -> bool:
    """Whether the folder holds qrels beside questions or a corpus."""
    return (folder / "qrels").is_dir()


def find_qrels(folder: Path) -> Path:
    """The judgments of a BEIR folder: the only file under qrels/, or ``test`` if there are several."""
    found = sorted(path for path in (folder / "qrels").iterdir()
                   if path.name.removesuffix(".gz").endswith((".tsv", ".txt", ".qrels")))
    test = [path for path in found if path.name.split(".")[0] == "test"]
    if len(found) == 1 or test:
        return (test or found)[0]
    names = ", ".join(path.name for path in found) or "none"
    raise DataError(f"{folder / 'qrels'}: one qrels file, or one called test.tsv, is needed and there are: {names}; "
                    "name one with --qrels")


def read_foreign(qrels: Path, *, questions: Path | None, corpus: Path | None, name: str, kind: str,
                 relevant_from: int | None, contradictions: bool = False) -> LabelledSet:
    """Judgments and, where given, the texts around them -> LabelledSet. Corpus texts are read on demand."""
    read = read_qrels(qrels, relevant_from=relevant_from, contradictions=contradictions)
    notes = list(read.notes)
    table = None
    if questions is not None:
        table, odd = read_questions(questions)
        notes += odd
        known = set(table.column("question_id").to_pylist())
        judged = read.judgments.column("question_id").unique().to_pylist()
        strange = [q for q in judged if q not in known]
        if strange:
            _refuse_swapped(qrels, questions, read.judgments, len(judged) - len(strange), known)
            refuse_respelled(str(qrels), "question", pa.array(judged), table.column("question_id").combine_chunks())
        if strange and len(strange) == len(judged):
            raise DataError(f"{qrels}: 0 of {len(strange)} question ids stand in {questions} "
                            f"(first '{strange[0]}', there '{next(iter(known))}'); give the questions of these qrels")
        if strange:
            first = read.judgments.column("question_id").index(strange[0]).as_py()
            where = find_pair(qrels, strange[0], read.judgments.column("span_id")[first].as_py())
            notes.append(Note("question_without_text", len(strange), where or str(questions), strange[0]))
    return LabelledSet(
        name=name, version=None, kind=kind, judgments=read.judgments, gold=read.gold, questions=table,
        notes=tuple(notes), relevant_from=read.relevant_from,
        load_corpus=None if corpus is None else lambda: read_corpus(corpus),
        load_ids=None if corpus is None else lambda: read_ids(corpus),
        load_words=None if corpus is None else lambda ids: read_words(corpus, ids),
        mapping=(read.mapping,), locate=lambda question, span: find_pair(qrels, question, span),
    )


def _refuse_swapped(qrels: Path, questions: Path, judgments: pa.Table, joined: int, known: set[str]) -> None:
    """Stop where the passages' column holds the questions' ids and the questions' column does not."""
    passages = judgments.column("span_id").unique().to_pylist()
    asked = judgments.column("question_id").unique().to_pylist()
    if all(passage in known for passage in passages):
        raise DataError(f"{qrels}: all {len(passages)} ids in the passages' column are questions of {questions} (as "
                        f"'{passages[0]}'), but only {joined} of {len(asked)} in the questions' column: the two "
                        "columns changed places; write the question first, as in 'question 0 passage grade'")


def read_questions(path: Path) -> tuple[pa.Table, list[Note]]:
    """JSONL (``_id``, ``text``, ``metadata``) or TSV (id, text) -> table ``questions``; ids are kept, not hashed.

    Texts stay as they are: ``null`` and ``NA`` are words. Questions without text are dropped and noted. Questions
    with the same question_key share a cluster.
    """
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    empty: list[int] = []
    for number, identity, text, metadata in _question_rows(path):
        if not text.strip():
            empty.append(number)
            continue
        if identity in seen:
            raise DataError(f"{path}, line {number}: question id '{identity}' stands in line {seen[identity]} already; "
                            "ids must be unique")
        seen[identity] = number
        rows.append(_question(identity, text, metadata))
    if not rows:
        raise DataError(f'{path}: no question; a line is {{"_id": "q1", "text": "…"}} or id, tab, text')
    notes = [Note("empty_question", len(empty), f"{path}, line {empty[0]}")] if empty else []
    return question_rows(rows), notes


def question_batches(path: Path, *, size: int = 10_000) -> Iterator[pa.Table]:
    """The same of a file of any size, so many rows at a time; ids that stand twice are not looked for."""
    kept = ((identity, text, metadata) for _, identity, text, metadata in _question_rows(path) if text.strip())
    while batch := [_question(*row) for row in itertools.islice(kept, size)]:
        yield question_rows(batch)


def _question(identity: str, text: str, metadata: dict[str, Any]) -> dict[str, Any]:
    origin, language = metadata.get("origin"), metadata.get("language")
    return {"question_id": identity, "text": text, "context": _turns(metadata.get("history")),
            "language": language if isinstance(language, str) else "und",
            "origin": origin if origin in ORIGINS else "unknown"}


def question_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows with question_id and text, perhaps context, origin, language -> table questions, each drawn once."""
    full = [{
        "context": [], "query": row["text"], "need": None, "scope": "{}", "language": "und", "origin": "unknown",
        "asked_first": None, "asked_last": None, "times_asked": None, "draws": 1, "u": None, "inclusion_prob": None,
        "traffic_weight": 1.0, "cluster_id": "c" + content_hash("cluster", question_key(row["text"]))[:16],
        "session_cluster": None, "stratum": "all", **row,
    } for row in rows]
    schema = schema_of("questions")
    relaxed = pa.schema([column.with_nullable(True) for column in schema])
    table = pa.Table.from_pylist(full, schema=relaxed)
    return pa.Table.from_arrays(table.columns, schema=schema)


def _turns(history: Any) -> list[dict[str, str]]:
    """Earlier turns as MTRAG-like metadata writes them: objects with role and text; anything else is left alone."""
    if not isinstance(history, list):
        return []
    return [{"role": str(turn.get("role", "user")), "text": turn["text"]} for turn in history
            if isinstance(turn, dict) and isinstance(turn.get("text"), str)]


def _question_rows(path: Path) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    with open_bytes(path) as stream:
        jsonl = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    if jsonl:
        for number, row in json_lines(path):
            metadata = row.get("metadata")
            yield number, _identity(row, path, number), _text(row, path, number), (
                metadata if isinstance(metadata, dict) else {})
        return
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        identity, tab, text = line.partition("\t")
        if not tab or not identity.strip():
            raise DataError(f"{path}, line {number}: no tab; a line is id, tab, question (or a JSON object)")
        yield number, identity.strip(), text, {}


def _identity(row: dict[str, Any], path: Path, number: int) -> str:
    for name in _ID_FIELDS:
        value = opaque_id(field(row, name))
        if value is not None and value.strip():
            return value
    raise DataError(f"{path}, line {number}: no id; one of {', '.join(_ID_FIELDS)} must hold a text or whole number")


def _text(row: dict[str, Any], path: Path, number: int) -> str:
    for name in _TEXT_FIELDS:
        value = row.get(name)
        if isinstance(value, str):
            return value
    raise DataError(f"{path}, line {number}: no text; one of {', '.join(_TEXT_FIELDS)} must hold a text")


def read_corpus(path: Path) -> Corpus:
    """corpus.jsonl (``_id``, ``title``, ``text``) -> Corpus in which each id is its own document, chunk and span.

    A chunk's text is the title, a line break, the text; ``body_start`` is the length of what stands before the text.

    Raises:
        DataError: an id that repeats, a row without id or text (names the line), an empty corpus.
    """
    ids: list[str] = []
    bodies: list[str] = []
    titles: list[str] = []
    seen: dict[str, int] = {}
    for number, row in json_lines(path):
        identity = _identity(row, path, number)
        if identity in seen:
            raise DataError(f"{path}, line {number}: id '{identity}' stands in line {seen[identity]} already; "
                            "ids must be unique")
        seen[identity] = number
        ids.append(identity)
        bodies.append(_text(row, path, number))
        title = row.get("title")
        titles.append(title if isinstance(title, str) else "")
    if not ids:
        raise DataError(f'{path}: empty corpus; a line is {{"_id": "d1", "title": "…", "text": "…"}}')
    return corpus_of(ids, bodies, titles)


def read_ids(path: Path) -> pa.Array:
    """corpus.jsonl -> the ids of its rows, in the order of the file."""
    blocks = list(id_blocks(path))
    plain = [chunk for block in blocks if block is not None for chunk in block.column("passage_id").chunks]
    if plain and None not in blocks:
        return pa.chunked_array(plain).combine_chunks()
    return pa.array([_identity(row, path, number) for number, row in json_lines(path)], pa.string())


def id_blocks(path: Path) -> Iterator[pa.Table | None]:
    """corpus.jsonl of any size -> column passage_id, block by block; None where only a look at each line can tell."""
    for block in objects_by_block(path, dict.fromkeys(_ID_FIELDS, pa.string())):
        # The first of the names that is there; one that only some lines have is a matter of each line.
        ids = None if block is None else next(
            (column for name in _ID_FIELDS if (column := block.column(name)).null_count < len(column)), None)
        if ids is None or ids.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(ids), "")).as_py():
            yield None
        else:
            yield pa.table({"passage_id": ids})


def read_words(path: Path, ids: set[str]) -> dict[str, int]:
    """corpus.jsonl, ids -> the words of these passages, title and text; those that it lacks are left out."""
    found: dict[str, int] = {}
    for number, row in json_lines(path):
        if (identity := _identity(row, path, number)) in ids:
            title = row.get("title")
            found[identity] = count_words(_text(row, path, number)) + count_words(title if title and isinstance(
                title, str) else "")
    return found


def corpus_of(ids: list[str], bodies: list[str], titles: list[str]) -> Corpus:
    """Ids, texts and titles (empty: none) -> Corpus in which each id is its own document, chunk and span."""
    heads = [f"{title}\n" if title else "" for title in titles]
    lengths = [len(body) for body in bodies]
    zeros, count = [0] * len(ids), len(ids)
    declared = ["declared"] * count
    chunks: dict[str, list[Any]] = {"chunk_id": ids, "doc_id": ids, "start": zeros, "end": lengths,
              "text": [head + body for head, body in zip(heads, bodies, strict=True)],
              "body_start": [len(head) for head in heads], "offsets": declared}
    spans: dict[str, list[Any]] = {"span_id": ids, "doc_id": ids, "start": zeros, "end": lengths, "text": bodies,
             "heading": [title or None for title in titles], "doc_sha256": [text_sha256(body) for body in bodies],
             "text_hash": [content_hash(body) for body in bodies],
             # Delivery in foreign sets is by id, as their own tools score them, so twins stay apart.
             "twin_group": ids, "words": [count_words(body) for body in bodies], "offsets": declared}
    links: dict[str, list[Any]] = {"chunk_id": ids, "span_id": ids, "chunk_share": [1.0] * count,
                              "span_share": [1.0] * count}
    return Corpus(*(_typed(columns, name) for columns, name in
                    ((chunks, "chunks"), (spans, "spans"), (links, "span_links"))))


def _typed(columns: dict[str, list[Any]], name: str) -> pa.Table:
    schema = schema_of(name)
    return pa.Table.from_arrays([pa.array(columns[column.name], column.type) for column in schema], schema=schema)
