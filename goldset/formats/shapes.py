"""Which columns of a file of examples are question, gold and grade: Ragas, LlamaIndex, LangSmith or anybody's own.

Names are as the tools' documentation has them: Ragas' SingleTurnSample and Testset, LlamaIndex's
EmbeddingQAFinetuneDataset and LabelledRagDataset, LangSmith's examples with inputs and outputs.
"""

from __future__ import annotations

import ast
import json
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goldset.errors import DataError
from goldset.formats.lines import opaque_id
from goldset.formats.names import GRADE, IDS, QUESTION, QUESTION_ID, TEXTS
from goldset.formats.objects import Objects

_ITEM_ID = ("id", "_id", "doc_id", "chunk_id", "document_id", "id_")
_ITEM_TEXT = ("page_content", "text", "content", "passage")
_AMBIGUOUS = ("contexts", "context", "documents", "source_documents")
_ROLES = {"user": "user", "human": "user", "ai": "assistant", "assistant": "assistant"}


@dataclass(frozen=True)
class Gold:
    """One gold passage as a file names it: by id, by its text, or both."""

    id: str | None
    text: str | None


@dataclass(frozen=True)
class Example:
    """One question with its gold, and the place it stands at."""

    where: str
    question_id: str | None
    text: str
    context: tuple[tuple[str, str], ...] = ()
    gold: tuple[Gold, ...] = ()
    grade: Any = None
    origin: str = "unknown"


@dataclass(frozen=True)
class Shape:
    """What a file was recognised as; ``said`` is the mapping in one line, for people."""

    tool: str
    said: str
    examples: list[Example]
    corpus: dict[str, str] | None = field(default=None)


def recognise(path: Path, read: Objects) -> Shape:
    """Objects of a file -> Shape. Raises DataError where no column can be a question, or none its gold."""
    if read.document is not None:
        return _llamaindex(path, read.document)
    rows = read.rows
    if not rows:
        raise DataError(f"{path}: no example; a line is a question with its gold")
    if read.header is False:
        return _columns(path, read, _by_content(path, [row for _, row in rows]), "questions with gold")
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    if {"inputs", "outputs"} <= set(names) or any(name.startswith(("inputs.", "outputs.")) for name in names):
        flat = [(where, _unfold(where, row)) for where, row in rows]
        names = list(dict.fromkeys(name for _, row in flat for name in row))
        return _columns(path, Objects(read.form, flat, header=read.header), _by_name(path, names), "LangSmith examples")
    ragas = bool({"user_input", "reference_contexts", "evolution_type", "synthesizer_name"} & set(names))
    return _columns(path, read, _by_name(path, names), "Ragas data set" if ragas else "questions with gold")


def _unfold(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A LangSmith example -> one object: outputs, then inputs and id, its own names without the prefix."""
    flat: dict[str, Any] = {}
    for part in ("outputs", "inputs"):
        inner = row.get(part)
        if isinstance(inner, str):
            inner = _literal(inner)
        if inner is not None and not isinstance(inner, dict) and inner != "":
            raise DataError(f"{where}: '{part}' holds {type(inner).__name__} where an object was expected, "
                            'e.g. {"question": "…"}')
        flat |= inner or {}
        flat |= {name.removeprefix(f"{part}."): value for name, value in row.items() if name.startswith(f"{part}.")}
    if opaque_id(row.get("id")):
        flat["id"] = row["id"]
    return flat


def _by_name(path: Path, names: list[str]) -> dict[str, str]:
    """Our key -> their column, by name, whatever the case."""
    lower = {name.strip().lower().replace(" ", "_"): name for name in names}
    found = {key: next((lower[name] for name in known if name in lower), None)
             for key, known in (("question", QUESTION), ("ids", IDS), ("texts", TEXTS), ("grade", GRADE),
                                ("question id", QUESTION_ID))}
    place = {key: name for key, name in found.items() if name is not None}
    if "question" not in place:
        raise DataError(f"{path}: no column holds the question; columns found: {', '.join(names)}; "
                        f"call it one of {', '.join(QUESTION[:4])}")
    if place.get("texts", "").lower() in _AMBIGUOUS and (
            "response" in lower or ("answer" in lower and {"ground_truth", "ground_truths"} & lower.keys())):
        place.pop("texts")  # beside what a system answered, these are what it retrieved, and nobody's gold
    if not {"ids", "texts"} & place.keys():
        raise DataError(f"{path}: no column names the gold of a question; columns found: {', '.join(names)}; give ids "
                        f"({', '.join(IDS[:3])}) or texts ({', '.join(TEXTS[:3])}); retrieved contexts are no gold")
    return place


def _by_content(path: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    """A file without header: columns of several words are question and gold text (the longer), others are ids."""
    words = {name: statistics.median(len(str(row[name]).split()) for row in rows) for name in rows[0]}
    wordy = sorted((name for name in words if words[name] >= 3), key=lambda name: words[name])
    single = [name for name in words if name not in wordy]
    if len(wordy) not in (1, 2) or (len(wordy) == 1 and not single):
        raise DataError(f"{path}: no header, and the columns do not tell question from gold; put a first line such as "
                        "question,gold_ids or question,gold_text")
    place = {"question": wordy[0]}
    if len(wordy) == 2:
        place["texts"] = wordy[1]
    after = [name for name in single if list(words).index(name) > list(words).index(wordy[0])]
    if len(wordy) == 1:
        place["ids"] = (after or single)[0]
        single = [name for name in single if name != place["ids"]]
    if single and single[0] not in after:
        place["question id"] = single[0]
    return place


def _columns(path: Path, read: Objects, place: dict[str, str], tool: str) -> Shape:
    split = _separator([row.get(place["ids"]) for _, row in read.rows]) if "ids" in place else None
    examples = []
    for where, row in read.rows:
        text, context = _question(row.get(place["question"]), where)
        identity = opaque_id(row.get(place["question id"])) if "question id" in place else None
        gold = [item for key in ("ids", "texts") if key in place
                for item in _golds(row.get(place[key]), f"{where}: '{place[key]}'", ids=key == "ids",
                                   split=split if key == "ids" else None)]
        if gold and all(item.id for item in gold) is False and {"ids", "texts"} <= place.keys():
            gold = _paired(gold)
        made = {"ai", "synthetic"} & {str(row.get(name, "")).lower() for name in ("query_by", "origin")}
        synthetic = bool(made) or any(row.get(name) for name in ("synthesizer_name", "evolution_type"))
        examples.append(Example(where, (identity or "").strip() or None, text, context, tuple(gold),
                                row.get(place["grade"]) if "grade" in place else None,
                                "synthetic" if synthetic else "unknown"))
    shown = [f"{key} = '{name}'" for key, name in place.items()]
    if split:
        shown.append(f"ids separated by '{split}'")
    if "question id" not in place:
        shown.append("question ids made from the question's text")
    header = {None: "", True: " with a header", False: " without a header"}[read.header]
    return Shape(tool, f"{path}: {tool}, {read.form}{header}: {', '.join(shown)}", examples)


def _paired(gold: list[Gold]) -> list[Gold]:
    """Ids and texts of one example, in the same order: the text is what stood under the id when it was labelled."""
    ids = [item for item in gold if item.text is None]
    texts = [item for item in gold if item.id is None]
    if len(ids) != len(texts):
        return ids or texts
    return [Gold(one.id, other.text) for one, other in zip(ids, texts, strict=True)]


def _question(value: Any, where: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A question as text, or as a conversation: the last user turn, after the turns before it."""
    if isinstance(value, list):
        turns = [(_ROLES.get(str(turn.get("role") or turn.get("type")).lower(), "other"), str(turn.get("content", "")))
                 for turn in value if isinstance(turn, dict)]
        asked = [place for place, (role, _) in enumerate(turns) if role == "user"]
        if not asked:
            raise DataError(f"{where}: a conversation without a turn of the user; a turn is "
                            '{"role": "user", "content": "…"}')
        return turns[asked[-1]][1], tuple(turns[: asked[-1]])
    if value is None or isinstance(value, str):
        return value or "", ()
    raise DataError(f"{where}: the question is {type(value).__name__} where a text was expected")


def _separator(values: Iterable[Any]) -> str | None:
    """What stands between ids that are written as one text; None where each is one id or a list."""
    texts = [value for value in values if isinstance(value, str) and not value.lstrip().startswith("[")]
    return next((mark for mark in ("|", ";", ",", " ") if any(mark in text.strip() for text in texts)), None)


def _golds(value: Any, where: str, *, ids: bool, split: str | None) -> Iterator[Gold]:
    if isinstance(value, str):
        stripped = value.strip()
        if not stripped:
            return
        listed = _literal(stripped) if stripped.startswith("[") and stripped.endswith("]") else None
        value = listed if isinstance(listed, list) else value.split(split) if ids and split else [value]
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(item, dict):
            yield _from_object(item, where)
            continue
        text = opaque_id(item)
        if text is None:
            raise DataError(f"{where} holds {str(item)[:60]!r} ({type(item).__name__}) where the id or the text of one "
                            "gold passage was expected; give the gold of a question as "
                            'gold_ids: ["d1", "d2"] or gold_texts: ["…"]')
        if text.strip():
            yield Gold(text.strip(), None) if ids else Gold(None, text)


def _from_object(item: dict[str, Any], where: str) -> Gold:
    metadata = item.get("metadata")
    inside = metadata if isinstance(metadata, dict) else {}
    identity = next((opaque_id(part[name]) for part in (item, inside) for name in _ITEM_ID
                     if opaque_id(part.get(name))), None)
    text = next((item[name] for name in _ITEM_TEXT if isinstance(item.get(name), str)), None)
    if identity is None and text is None:
        raise DataError(f"{where} has a gold passage without id or text; it needs one of {', '.join(_ITEM_ID)} or "
                        f"{', '.join(_ITEM_TEXT)}")
    return Gold(identity, text)


def _literal(text: str) -> Any:
    """A list or object that a CSV cell holds as JSON, or as pandas writes it; None for anything else."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _llamaindex(path: Path, document: dict[str, Any]) -> Shape:
    if isinstance(document.get("examples"), list):
        examples = []
        for number, row in enumerate(document["examples"], 1):
            where = f"{path}, example {number}"
            by = row.get("query_by") or {}
            made = isinstance(by, dict) and by.get("type") == "ai"
            text, context = _question(row.get("query"), where)
            gold = tuple(_golds(row.get("reference_contexts"), f"{where}: 'reference_contexts'", ids=False, split=None))
            examples.append(Example(where, None, text, context, gold, None, "synthetic" if made else "human"
                                    if isinstance(by, dict) and by.get("type") == "human" else "unknown"))
        return Shape("LlamaIndex", f"{path}: LlamaIndex labelled RAG data set: question = 'query', texts = "
                     "'reference_contexts', question ids made from the question's text", examples)
    queries, relevant = document.get("queries"), document.get("relevant_docs")
    if not isinstance(queries, dict) or not isinstance(relevant, dict):
        raise DataError(f"{path}: a JSON object with {', '.join(list(document)[:8]) or 'nothing'}; known are "
                        "LlamaIndex files (queries, corpus, relevant_docs; or examples), one example a line, or qrels "
                        '{"q1": {"d1": 1}}')
    texts = document.get("corpus")
    corpus = {str(name): text for name, text in texts.items() if isinstance(text, str)} \
        if isinstance(texts, dict) and texts else None
    examples = []
    for name, text in queries.items():
        where = f"{path}, query '{name}'"
        gold = tuple(_golds(relevant.get(name), f"{where}: 'relevant_docs'", ids=True, split=None))
        examples.append(Example(where, name, _question(text, where)[0], (), gold))
    held = "its own corpus" if corpus else "no corpus"
    return Shape("LlamaIndex", f"{path}: LlamaIndex embedding data set: question = 'queries', ids = 'relevant_docs', "
                 f"{held}", examples, corpus)
