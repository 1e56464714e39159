"""Anybody's file of questions with gold (ids or texts) -> LabelledSet."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.errors import DataError, UsageError
from goldset.formats.beir import corpus_of, question_rows, read_corpus
from goldset.formats.columns import split_fields
from goldset.formats.locating import Locator
from goldset.formats.names import QUESTION
from goldset.formats.objects import delimiter_of, first_line, is_json, read_objects
from goldset.formats.pairs import grade_of
from goldset.formats.qrels import UNJUDGED, is_header, is_pairs, judgments_of, threshold_of
from goldset.formats.sets import Corpus, LabelledSet, Note
from goldset.formats.shapes import Example, Gold, recognise
from goldset.text import content_hash, question_id, quote_key

_TRUE, _FALSE = {"true", "yes"}, {"false", "no"}


def is_examples(path: Path) -> bool:
    """Whether a file holds examples and not qrels: JSON of another shape, or a first line that cannot be a judgment."""
    if is_pairs(path):
        return False
    if is_json(path):
        return True
    line = first_line(path)
    parts = [part.strip('"').lower() for part in split_fields(line)]
    if not parts or is_header(parts) or (len(parts) in (3, 4) and parts[-1].lstrip("-").isdigit()):
        return False
    fields = next(csv.reader([line], delimiter=delimiter_of(line)), [])
    if len(fields) < 2:
        return False
    named = {field.strip().lower().replace(" ", "_") for field in fields} & {*QUESTION}
    wordy = any(len(field.split()) >= 3 for field in fields)
    return bool(named) or wordy or path.name.removesuffix(".gz").endswith(".csv")


@dataclass
class _Pairs:
    """Judged pairs as they are found: columns, and the place of each pair."""

    question: list[str]
    span: list[str]
    grade: list[int | None]
    where: dict[tuple[str, str], str]
    texts: dict[str, str]


def read_examples(path: Path, *, corpus: Path | None = None, relevant_from: int | None = None,
                  contradictions: bool = False) -> LabelledSet:
    """A file of examples, recognised by looking -> LabelledSet; ``mapping`` says what was taken for what.

    Gold given as text becomes the passage of the corpus that holds it; one that is nowhere there keeps an id made of
    its text and does not resolve. Gold given as id and text is looked up by id, and compared with its text. With
    ``contradictions`` pairs with two grades are noted and count as not judged, instead of an error.

    Raises:
        DataError: a line that cannot be read, no question, no gold, two grades for one pair, a question id with two
            texts.
    """
    read = read_objects(path)
    shape = recognise(path, read)
    examples = [example for example in shape.examples if example.text.strip()]
    if not examples:
        raise DataError(f"{path}: no example has a question")
    notes = list(read.notes)
    if len(examples) < len(shape.examples):
        first = next(example for example in shape.examples if not example.text.strip())
        notes.append(Note("empty_question", len(shape.examples) - len(examples), first.where))
    bare = [example for example in examples if not example.gold]
    if bare:
        notes.append(Note("question_without_gold", len(bare), bare[0].where, bare[0].text[:60]))
    load = _loader(corpus, shape.corpus)
    passages = load() if load else None
    names = _ids(examples)
    pairs, odd, changed = _pairs(examples, names, passages, contradictions)
    if not pairs.span:
        raise DataError(f"{path}: none of {len(examples)} questions has gold")
    grades = [grade for grade in pairs.grade if grade is not None]
    threshold = threshold_of(path, grades, relevant_from) if grades else 1
    judgments, gold = judgments_of(pairs.question, pairs.span, pairs.grade, threshold)
    where = pairs.where
    name = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    return LabelledSet(name=name, version=None, kind="examples", judgments=judgments, gold=gold,
                       questions=_questions(examples, names), notes=(*notes, *odd),
                       relevant_from=threshold if grades else None, load_corpus=load, mapping=(shape.said,),
                       locate=lambda question, span: where.get((question, span)), changed=tuple(changed),
                       gold_texts=pairs.texts)


def _loader(corpus: Path | None, inline: dict[str, str] | None) -> Callable[[], Corpus] | None:
    if corpus is not None:
        return cache(lambda: read_corpus(corpus))
    if inline is not None:
        return cache(lambda: corpus_of(list(inline), list(inline.values()), [""] * len(inline)))
    return None


def _ids(examples: list[Example]) -> list[str]:
    """The question id of each example: the file's own, else made from the question; one id has one text."""
    names: list[str] = []
    texts: dict[str, Example] = {}
    own = all(example.question_id for example in examples)
    if own:  # an id that stands for several questions numbers rows or passages, not questions
        seen: dict[str, str] = {}
        for example in examples:
            text = seen.setdefault(example.question_id or "", example.text)
            if text != example.text:
                raise DataError(f"{example.where}: question id '{example.question_id}' stands for '{text[:60]}' and "
                                f"'{example.text[:60]}'; an id has one question")
    for example in examples:
        name = example.question_id if own and example.question_id else question_id(example.text, example.context)
        texts.setdefault(name, example)
        names.append(name)
    return names


def _pairs(examples: list[Example], names: list[str], passages: Corpus | None, contradictions: bool) -> \
        tuple[_Pairs, list[Note], list[tuple[str, str]]]:
    pairs = _Pairs([], [], [], {}, {})
    held = None if passages is None else dict(zip(passages.chunks.column("chunk_id").to_pylist(),
                                                  passages.spans.column("text").to_pylist(), strict=True))
    locator = (Locator(held, _titles(passages)) if passages is not None and held
               and any(item.id is None for row in examples for item in row.gold) else None)
    grades: dict[tuple[str, str], tuple[int | None, str]] = {}
    several: list[tuple[str, str]] = []
    repeated: list[tuple[str, str]] = []
    changed: list[tuple[str, str]] = []
    against: dict[tuple[str, str], str] = {}
    for example, name in zip(examples, names, strict=True):
        grade = _grade(example)
        for item in example.gold:
            spans, places = _spans(item, locator)
            if places > 1:
                several.append((example.where, spans[0]))
            for span in spans:
                pair = (name, span)
                if pair in grades:
                    if grades[pair][0] != grade and contradictions:
                        against.setdefault(pair, example.where)
                        continue
                    if grades[pair][0] != grade:
                        raise DataError(f"{example.where}: grade {grade} for question '{name}', passage '{span}', but "
                                        f"{grades[pair][1]} says {grades[pair][0]}; keep one of them")
                    repeated.append((example.where, span))
                    continue
                grades[pair] = (grade, example.where)
                pairs.question.append(name)
                pairs.span.append(span)
                pairs.grade.append(grade)
                pairs.where[pair] = example.where
                if item.text:
                    pairs.texts.setdefault(span, item.text)
                if item.id and item.text and held and span in held and not _same(item.text, held[span]):
                    changed.append(pair)
    notes = [Note(kind, len(rows), *rows[0]) for kind, rows in
             (("several_places", several), ("repeated_judgment", repeated),
              ("two_grades", [(where, span) for (_, span), where in against.items()])) if rows]
    for place, pair in enumerate(zip(pairs.question, pairs.span, strict=True)):
        pairs.grade[place] = UNJUDGED if pair in against else pairs.grade[place]
    return pairs, notes, changed


def _titles(passages: Corpus) -> dict[str, str]:
    """span_id -> its title, for the passages that have one."""
    rows = zip(*(passages.spans.column(name).to_pylist() for name in ("span_id", "heading")), strict=True)
    return {span: title for span, title in rows if title}


def _spans(item: Gold, locator: Locator | None) -> tuple[tuple[str, ...], int]:
    if item.id is not None:
        return (item.id,), 1
    assert item.text is not None, "gold has an id or a text"
    found = locator.find(item.text) if locator else None
    if found is None or not found.ids:
        return ("text:" + content_hash("gold", quote_key(item.text))[:16],), 1
    return found.ids, found.places


def _same(text: str, passage: str) -> bool:
    """Whether the labelled text and today's passage agree: one holds the other."""
    mine, theirs = quote_key(text), quote_key(passage)
    return mine in theirs or theirs in mine


def _grade(example: Example) -> int | None:
    value = example.grade
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return int(value)
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return int(text in _TRUE)
    return grade_of(text, example.where)


def _questions(examples: list[Example], names: list[str]) -> pa.Table:
    rows: dict[str, dict[str, Any]] = {}
    for example, name in zip(examples, names, strict=True):
        rows.setdefault(name, {"question_id": name, "text": example.text, "origin": example.origin,
                               "context": [{"role": role, "text": text} for role, text in example.context]})
    return question_rows(rows.values())


def refuse(path: Path, questions: Path | None) -> None:
    """Examples carry their questions: another file of them would contradict."""
    if questions is not None:
        raise UsageError(f"{path} carries its questions; leave out --questions {questions}")
