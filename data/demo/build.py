"""Derive the demo's files from its written sources: ``python data/demo/build.py [FOLDER]``.

The sources (source/*.md and *.toml) are the truth: handbook pages with fact marks, what people asked and the facts
that answer it, where two readers err, and the questions of the old set. Everything else is computed here, without
clock or chance, so that a second run gives the same files.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from traffic import as_asked, log_lines

from goldset.config import CorpusConfig
from goldset.corpus import build_corpus
from goldset.errors import DataError
from goldset.formats.corpora import read_documents
from goldset.formats.trec import write_run
from goldset.lexical import BM25Index
from goldset.questions import mask
from goldset.schemas import from_rows
from goldset.spans import canonical_spans, sentences
from goldset.store import write_text
from goldset.text import question_id, question_key, tokenize, unit_hash

HERE = Path(__file__).resolve().parent
READERS = ("anna", "ben")
ADJUDICATOR = "carol"
DEPTH = 50  # of production's runs
GOLD_WITHIN = 10  # the old set's gold was looked for in so many of production's results

_MARK = re.compile(r"\{\{f:([a-z0-9,-]+)\|(.*?)\}\}", re.DOTALL)
_PART = re.compile(r"\{\{> ([a-z0-9-]+)\}\}")
_LIST_MARK = re.compile(r"(?:- |\d+\. )")
# What production throws away before it searches; it also cuts a plural s.
_STOP_WORDS = """a an and are as at be by can do does for from get how i if in is it my of on or our so that the there
this to up we what when where which who why will with you your"""
_STOP = frozenset(_STOP_WORDS.split())

Place = tuple[str, int, int]


@dataclass
class Handbook:
    """Documents as written to documents.jsonl, and where each fact is stated: (doc_id, start, end)."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, list[Place]] = field(default_factory=dict)

    def text(self, place: Place) -> str:
        """The words of a place."""
        doc_id, start, end = place
        return next(str(doc["text"]) for doc in self.documents if doc["doc_id"] == doc_id)[start:end]

    def places(self, facts: list[str], *, doc: str | None = None) -> list[Place]:
        """All places of some facts, in order, each once; only those of one document if ``doc`` is given."""
        for fact in facts:
            if fact not in self.facts:
                raise DataError(f"fact '{fact}' is needed but marked nowhere in source/*.md")
        found = {place for fact in facts for place in self.facts[fact] if doc in (None, place[0])}
        return sorted(found)


def read_handbook(source: Path) -> Handbook:
    """Marked pages -> documents without marks, and the facts. A mark must hold one whole sentence or table row."""
    book = Handbook()
    for path in sorted(source.glob("*.md")):
        _, head, body = path.read_text(encoding="utf-8").split("+++\n", 2)
        body = _PART.sub(lambda m: (source / "parts" / f"{m[1]}.md").read_text(encoding="utf-8").strip(), body)
        pieces, marks, at, length = [], [], 0, 0
        for match in _MARK.finditer(body):
            pieces += [body[at:match.start()], match[2]]
            length += match.start() - at
            marks.append((match[1].split(","), length, length + len(match[2])))
            length, at = length + len(match[2]), match.end()
        text = "".join([*pieces, body[at:]])
        if "{{" in text or "}}" in text:
            raise DataError(f"{path}: a mark is not closed, or not written {{{{f:fact|sentence}}}}")
        page = tomllib.loads(head)
        bounds = sentences(text)
        for facts, start, end in marks:
            place = (page["doc_id"], *_whole(text, bounds, start, end, path))
            for fact in facts:
                book.facts.setdefault(fact, []).append(place)
        book.documents.append({"doc_id": page["doc_id"], "title": page["title"], "url": page["url"], "text": text,
                               "metadata": page["metadata"]})
    return book


def _whole(text: str, bounds: list[tuple[int, int]], start: int, end: int, path: Path) -> tuple[int, int]:
    """The sentence that a mark holds; the sign of a list item may stand before the mark."""
    touched = [(low, high) for low, high in bounds if low < end and start < high]
    if len(touched) == 1:
        low, high = touched[0]
        if high == end and (low == start or _LIST_MARK.fullmatch(text[low:start])):
            return low, high
    raise DataError(f"{path}: the mark around {text[start:end]!r} is not one whole sentence: "
                    f"{[text[low:high] for low, high in touched]}")


def read_all(source: Path, name: str) -> dict[str, Any]:
    """``name.toml`` and its continuations ``a-name.toml``, ``b-name.toml`` …, their lists one after the other."""
    found: dict[str, Any] = {}
    for path in sorted(source.glob(f"*{name}.toml"), key=lambda path: (len(path.name), path.name)):
        if not re.fullmatch(rf"(?:[a-z]-)?{name}\.toml", path.name):
            continue
        for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[key] = found.get(key, []) + value if isinstance(value, list) else value
    return found


def masked(text: str) -> str:
    """A question as the rebuild stores it."""
    return mask(text)[0]


def label_rows(questions: list[dict[str, Any]], cases: list[dict[str, Any]], book: Handbook) -> list[dict[str, Any]]:
    """What each assessor answers: the truth for the adjudicator, the truth with their own errors for the readers."""
    rows, used = [], 0
    for entry in questions:
        for text in entry["texts"]:
            truth = book.places(entry["facts"])
            # The first line of a question is its first reader's; the readers take turns.
            readers = READERS if unit_hash("demo reader", text) < 0.5 else READERS[::-1]
            for assessor in (*readers, ADJUDICATOR):
                mine = [case for case in cases if case["question"] == text and case["assessor"] == assessor]
                used += len(mine)
                rows.append(_recorded(masked(text), assessor, truth, mine, book))
    if used != len(cases):
        raise DataError(f"disagreements.toml: {len(cases) - used} cases name an unknown question or assessor")
    return rows


def _recorded(text: str, assessor: str, truth: list[Place], cases: list[dict[str, Any]],
              book: Handbook) -> dict[str, Any]:
    evidence = list(truth)
    lists: dict[str, list[Place]] = {"no": [], "cant_tell": []}
    for case in cases:
        places = _case_places(case, book)
        if case["kind"] in ("missed", "slip"):
            if not set(places) <= set(truth):
                raise DataError(f"disagreements.toml: '{case['question']}' is not answered at {places}")
            if case["kind"] == "missed":
                evidence = [place for place in evidence if place not in places]
            else:
                lists["no"] += places
        elif case["kind"] == "extra":
            evidence = sorted({*evidence, *places})
        elif case["kind"] == "cant_tell":
            lists["cant_tell"] += places
        else:
            raise DataError(f"disagreements.toml: kind '{case['kind']}'; allowed: missed, slip, extra, cant_tell")
    row: dict[str, Any] = {"question": text, "assessor": assessor, "evidence": _ranges(evidence)}
    row.update({name: _ranges(places) for name, places in lists.items() if places})
    return row


def _case_places(case: dict[str, Any], book: Handbook) -> list[Place]:
    if "fact" in case:
        return book.places([case["fact"]], doc=case["doc"])
    text = next(doc["text"] for doc in book.documents if doc["doc_id"] == case["doc"])
    start = text.find(case["quote"])
    if start < 0:
        raise DataError(f"disagreements.toml: {case['quote']!r} does not stand in '{case['doc']}'")
    return [(case["doc"], start, start + len(case["quote"]))]


def _ranges(places: list[Place]) -> list[dict[str, Any]]:
    return [{"doc_id": doc_id, "start": start, "end": end} for doc_id, start, end in places]


def holds(piece: dict[str, Any], places: list[Place]) -> bool:
    """Whether a chunk or span wholly contains one of the places."""
    return any(piece["doc_id"] == doc_id and piece["start"] <= start and end <= piece["end"]
               for doc_id, start, end in places)


def production_tokens(text: str) -> list[str]:
    """How production cuts text into terms: our words without the commonest, a plural s taken off."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
            for word in tokenize(text) if word not in _STOP]


class Production:
    """The system in production: BM25 with k1 2.0 and b 0.3 over the chunks."""

    def __init__(self, chunks: list[dict[str, Any]]) -> None:
        self.index = BM25Index.build([chunk["chunk_id"] for chunk in chunks],
                                     [production_tokens(chunk["text"]) for chunk in chunks], k1=2.0, b=0.3)

    def search(self, text: str, depth: int = DEPTH) -> list[tuple[str, float]]:
        """(chunk id, score), best first."""
        return self.index.search(production_tokens(text), depth)

    def run(self, questions: dict[str, str]) -> pa.Table:
        """question_id -> text, as table run."""
        rows = [{"system": "production", "family": "lexical", "question_id": name, "rank": rank, "chunk_id": chunk,
                 "score": round(score, 6)}
                for name, text in questions.items() for rank, (chunk, score) in enumerate(self.search(text), 1)]
        return from_rows("run", rows)


def old_set(entries: list[dict[str, Any]], chunks: list[dict[str, Any]], book: Handbook,
            production: Production) -> list[tuple[str, str, str]]:
    """(query id, text, gold chunk): one gold a question, found in production's top 10.

    A model was shown the ten results from the last to the first, and the first that held the answer was taken. A
    question without such a result was thrown away as unclear.
    """
    by_id = {chunk["chunk_id"]: chunk for chunk in chunks}
    rows = []
    for number, entry in enumerate(entries, 1):
        places = book.places([entry["fact"]])
        shown = [name for name, _ in production.search(entry["text"], GOLD_WITHIN) if holds(by_id[name], places)]
        if shown:
            rows.append((f"old-{number:03d}", entry["text"], shown[-1]))
    return rows


def calibration_rows(entries: list[dict[str, Any]], spans: list[dict[str, Any]], book: Handbook,
                     production: Production, chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each question: every span that answers, the best-looking that do not, and one at random."""
    place = {chunk["chunk_id"]: (chunk["doc_id"], (chunk["start"] + chunk["end"]) // 2) for chunk in chunks}
    rows = []
    for entry in entries:
        places = book.places(entry["facts"])
        yes = [span for span in spans if holds(span, places)]
        looks = [place[name] for name, _ in production.search(entry["text"])]
        near = [span for doc_id, middle in looks for span in spans
                if span["doc_id"] == doc_id and span["start"] <= middle < span["end"] and span not in yes]
        near = list({span["span_id"]: span for span in near}.values())
        rest = [span for span in spans if span not in yes and span not in near]
        far = sorted(rest, key=lambda span: unit_hash("demo far", entry["text"], span["span_id"]))
        rows += [{"question": entry["text"], "passage": span["text"], "relevant": relevant}
                 for relevant, found in ((True, yes), (False, [*near[:3], *far[:1]])) for span in found]
    return rows


def build(out: Path, source: Path = HERE / "source") -> None:
    """Write all derived files into a folder."""
    book = read_handbook(source)
    asked = read_all(source, "questions")
    questions = as_asked(asked["question"])
    wordings = [masked(text) for entry in questions for text in entry["texts"]]
    if len({question_key(text) for text in wordings}) != len(wordings):
        twice = [text for text, count in Counter(map(question_key, wordings)).items() if count > 1]
        raise DataError(f"questions.toml: these wordings stand there twice: {twice}")

    write_jsonl(out / "documents.jsonl", book.documents)
    config = CorpusConfig.model_validate({"documents": {"path": out / "documents.jsonl", "markup": "markdown"},
                                          "chunker": {"words": 120, "step": 50}})  # as configs/demo.toml has it
    assert config.documents is not None
    documents, _ = read_documents(config.documents, config.documents.path)
    corpus = build_corpus(documents=documents, raw_chunks=None, config=config)
    chunks = corpus.chunks.to_pylist()
    spans = canonical_spans(documents=corpus.documents, chunks=corpus.chunks).spans.to_pylist()
    production = Production(chunks)

    write_text(out / "queries.jsonl", "\n".join(log_lines(questions, read_all(source, "log"))) + "\n")
    write_jsonl(out / "labels.jsonl",
                label_rows(questions, read_all(source, "disagreements")["case"], book))
    write_jsonl(out / "calibration.jsonl", calibration_rows(asked["calibration"], spans, book, production, chunks))
    write_run(production.run({question_id(text): text for text in wordings}), out / "production.run.gz")

    old = old_set(read_all(source, "old_questions")["old"], chunks, book, production)
    write_jsonl(out / "old_set" / "corpus.jsonl",
                [{"_id": chunk["chunk_id"], "title": "", "text": chunk["text"]} for chunk in chunks])
    write_jsonl(out / "old_set" / "queries.jsonl", [{"_id": name, "text": text} for name, text, _ in old])
    write_text(out / "old_set" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n"
               + "".join(f"{name}\t{gold}\t1\n" for name, _, gold in old))
    write_run(production.run({name: text for name, text, _ in old}), out / "old_set_production.run.gz")


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    """One object a line."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
