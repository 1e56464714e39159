"""The demo's data are what its written sources say, and they hold what the demo's story needs."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import re
import sys
from collections import Counter
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from goldset.config import load_config
from goldset.corpus import build_corpus
from goldset.errors import DataError
from goldset.formats.corpora import read_documents
from goldset.formats.logs import read_log
from goldset.formats.trec import read_run
from goldset.questions import mask, sample_questions
from goldset.spans import canonical_spans
from goldset.text import question_id, question_key

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "data" / "demo"
SOURCE = DEMO / "source"
CONFIG = ROOT / "configs" / "demo.toml"


@cache
def builder() -> Any:
    """The script data/demo/build.py; it imports the module beside it."""
    if str(DEMO) not in sys.path:
        sys.path.append(str(DEMO))
    spec = importlib.util.spec_from_file_location("demo_build", DEMO / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo_build"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


def content(path: Path) -> bytes:
    """Bytes of a file; of a gzip file what it holds, since compressors differ between machines."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def written(name: str, key: str) -> list[dict[str, Any]]:
    """A list of the written sources, continuations included."""
    found: list[dict[str, Any]] = builder().read_all(SOURCE, name)[key]
    return found


def asked() -> list[dict[str, Any]]:
    """What people asked, the slips that the script makes included."""
    found: list[dict[str, Any]] = builder().as_asked(written("questions", "question"))
    return found


def texts() -> dict[str, str]:
    return {row["doc_id"]: row["text"] for row in rows("documents.jsonl")}


def old_gold() -> dict[str, str]:
    with (DEMO / "old_set" / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    assert all(line["score"] == "1" for line in lines)
    assert len({line["query-id"] for line in lines}) == len(lines), "one gold a question"
    return {line["query-id"]: line["corpus-id"] for line in lines}


def old_ranks() -> dict[str, int | None]:
    """Rank of each old question's gold in production's run, None if it is not there."""
    run = read_run(DEMO / "old_set_production.run.gz", system="production").to_pylist()
    found = {(row["question_id"], row["chunk_id"]): row["rank"] for row in run}
    return {name: found.get((name, gold)) for name, gold in old_gold().items()}


def test_building_again_gives_the_same_files(tmp_path: Path) -> None:
    builder().build(tmp_path)
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    kept = {path.relative_to(DEMO) for path in DEMO.rglob("*")
            if path.is_file() and "source" not in path.parts and "__pycache__" not in path.parts}
    assert kept - made == {Path("README.md"), Path("build.py"), Path("traffic.py")}
    assert {str(path) for path in made if content(tmp_path / path) != content(DEMO / path)} == set()


def test_every_fact_that_a_question_needs_is_marked() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.md"))
    marked = {fact for names in re.findall(r"\{\{f:([^|]*)\|", pages) for fact in names.split(",")}
    entries = written("questions", "question") + written("questions", "calibration")
    needed = {fact for entry in entries for fact in entry["facts"]}
    needed |= {entry["fact"] for entry in written("old_questions", "old")}
    assert needed - marked == set()


def test_evidence_is_the_sentences_between_the_marks() -> None:
    stated: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.md"):
        for names, sentence in re.findall(r"\{\{f:([^|]*)\|(.*?)\}\}", path.read_text(encoding="utf-8")):
            for fact in names.split(","):
                stated.setdefault(fact, set()).add(sentence)
    facts = {mask(text)[0]: entry["facts"] for entry in asked() for text in entry["texts"]}
    documents, truth = texts(), [row for row in rows("labels.jsonl") if row["assessor"] == "carol"]
    assert {row["question"] for row in truth} == set(facts)
    for row in truth:
        found = {documents[place["doc_id"]][place["start"]:place["end"]] for place in row["evidence"]}
        # A list item's sentence begins at its sign, the mark behind it.
        plain = {re.sub(r"^(?:- |\d+\. )", "", sentence) for sentence in found}
        assert plain == set().union(*(stated[fact] for fact in facts[row["question"]]))


def test_a_sentence_that_states_a_fact_is_marked_wherever_it_stands() -> None:
    book, documents = builder().read_handbook(SOURCE), texts()
    for fact, places in book.facts.items():
        for sentence in {book.text(place) for place in places}:
            found = {(doc, at.start()) for doc, text in documents.items()
                     for at in re.finditer(re.escape(sentence), text)}
            assert found <= {(doc, start) for doc, start, _ in places}, (fact, sentence)


def test_no_mark_is_left_in_the_documents_and_no_label_without_a_document() -> None:
    documents = texts()
    assert not any("{{" in text or "}}" in text for text in documents.values())
    for row in rows("labels.jsonl"):
        for place in row["evidence"] + row.get("no", []) + row.get("cant_tell", []):
            assert 0 <= place["start"] < place["end"] <= len(documents[place["doc_id"]])


def test_a_mark_that_is_not_one_sentence_is_refused(tmp_path: Path) -> None:
    page = '+++\ndoc_id = "d"\ntitle = "D"\nurl = "u"\nmetadata = {}\n+++\nOne is here. Two {{f:a|is here.}}\n'
    (tmp_path / "d.md").write_text(page, encoding="utf-8")
    with pytest.raises(DataError, match="not one whole sentence"):
        builder().read_handbook(tmp_path)


def test_readers_depart_from_the_truth_where_the_list_says_and_nowhere_else() -> None:
    cases = written("disagreements", "case")
    listed = {(case["question"], case["assessor"]) for case in cases}
    by_pair = {(row["question"], row["assessor"]): row for row in rows("labels.jsonl")}
    different = set()
    for (question, assessor), row in by_pair.items():
        same = {**by_pair[question, "carol"], "assessor": assessor}
        if row != same:
            different.add((question, assessor))
    assert different == listed
    assert {case["kind"] for case in cases} == {"missed", "slip", "extra", "cant_tell"}


def test_whatever_the_sampler_can_keep_is_labelled_and_searched() -> None:
    config = load_config(CONFIG, questions={"size": 100_000})
    source = config.questions.logs[0]
    log = read_log(source, config.path(source.path), mask=mask, max_line_bytes=1_000_000)
    sample = sample_questions(events=log.events, config=config.questions, seed=config.project.seed, timezone="UTC",
                              frame=None)
    kept = {row["question_id"]: row["text"] for row in sample.questions.to_pylist()}
    labels = rows("labels.jsonl")
    for assessor in ("anna", "ben", "carol"):
        assert kept.keys() <= {question_id(row["question"]) for row in labels if row["assessor"] == assessor}
    searched = set(read_run(DEMO / "production.run.gz", system="production").column("question_id").to_pylist())
    # Production's run lacks a question if, and only if, no chunk holds one of its terms.
    terms = builder().production_tokens
    known = {term for row in rows("old_set/corpus.jsonl") for term in terms(row["text"])}
    assert kept.keys() - searched == {name for name, text in kept.items() if known.isdisjoint(terms(text))}
    answered = {question_id(row["question"]): bool(row["evidence"]) for row in labels if row["assessor"] == "carol"}
    counts = Counter(answered[name] for name in kept)
    assert counts[True] >= 70
    assert counts[False] >= 12
    assert any("[email]" in text for text in kept.values())
    assert "@" not in "".join(kept.values())
    drops = {row["reason"]: row["lines"] for row in sample.drops.to_pylist()}
    chatter = Counter({entry["text"]: entry["count"] for entry in written("log", "chatter")})
    assert drops["machine"] == 36
    assert drops["greeting"] == chatter.total() - chatter[""] >= 12
    assert drops["empty"] + sum(bad.reason == "empty" for bad in log.rejected) == chatter[""] >= 2
    followups = {entry["text"] for entry in written("log", "followup")}
    assert drops["followup"] >= len(followups) >= 20
    assert not followups & set(kept.values())
    assert drops["language"] >= 8
    assert log.lines == len((DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    assert len(log.rejected) == len(written("log", "damaged")) >= 8


def test_the_log_is_like_real_traffic() -> None:
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    events = [event for event in map(_event, lines) if event and event["agent"] != "probe/2.3" and event["q"].strip()]
    assert len(lines) >= 900
    sessions = Counter(event["sid"] for event in events)
    assert len(sessions) >= 150
    assert Counter(sessions.values())[1] / len(sessions) > 0.3, "most people ask one thing"
    assert max(sessions.values()) >= 5
    # A head and a long tail: the tenth that is asked most takes a third of the events, many are asked once.
    counts = sorted(Counter(question_key(event["q"]) for event in events).values(), reverse=True)
    assert sum(counts[: len(counts) // 10]) / sum(counts) > 0.3
    assert counts.count(1) / len(counts) > 0.3
    known = {question_key(text) for entry in asked() for text in entry["texts"]}
    assert len(known) > len({question_key(text) for entry in written("questions", "question")
                             for text in entry["texts"]}), "the script adds slips"
    words = [len(event["q"].split()) for event in events]
    assert sum(count == 1 for count in words) >= 50
    assert len({question_key(event["q"]) for event in events if len(event["q"].split()) >= 10}) >= 40
    everything = "\n".join(lines)
    assert re.search(r"[\w.]+@[\w.]*example", everything)
    assert re.search(r"\b[EH][-A-Z0-9]+\b", everything), "codes"
    assert not re.search(r"@(?![\w.-]*\bexample\b)", everything), "addresses lie under reserved names"
    times = [event["ts"] for event in events]
    assert times == sorted(times)
    days = Counter(datetime.fromisoformat(time).weekday() for time in times)
    assert max(days[5], days[6]) < min(days[day] for day in range(5)), "few ask at weekends"
    assert len({time[:10] for time in times}) >= 35
    stamps = re.findall(r'"ts": "(\d{4}-\d\d-\d\d)', everything)
    assert min(stamps) >= "2026-09-20"
    assert max(stamps) == "2026-10-31", "six weeks"


def _event(line: str) -> dict[str, Any] | None:
    """A line of the log; None where it is damaged."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("q"), str) and "agent" in row else None


def test_slips_stay_near_the_wording_and_answer_to_its_facts() -> None:
    for entry, plain in zip(asked(), written("questions", "question"), strict=True):
        # A wording of rank 1, 2, 3, 4, 5, 6 is asked 1, 3, 6, 11, 15, 21 times (rank ** 1.7).
        assert sum(entry["asked"]) == sum({1: 1, 2: 3, 3: 6, 4: 11, 5: 15, 6: 21}[rank] for rank in plain["asked"])
        assert entry["texts"][: len(plain["texts"])] == plain["texts"]
        for slip in entry["texts"][len(plain["texts"]):]:
            assert any(sorted(slip) == sorted(text) or len(slip) == len(text) - 1 for text in plain["texts"])
            assert not any(character.isdigit() for character in set(slip) - set("".join(plain["texts"])))


def test_the_config_asks_for_fewer_draws_than_there_are() -> None:
    config = load_config(CONFIG)
    assert 90 <= config.questions.size <= 200
    assert {config.path(path).exists() for path in (
        config.corpus.documents.path if config.corpus.documents else Path("missing"), config.questions.logs[0].path,
        Path("../data/demo/production.run.gz"), Path("../data/demo/calibration.jsonl"))} == {True}


def test_runs_name_chunks_of_the_configured_chunker() -> None:
    config = load_config(CONFIG)
    assert config.corpus.documents is not None
    documents, _ = read_documents(config.corpus.documents, config.path(config.corpus.documents.path))
    stored = {row["doc_id"]: row["text"] for row in documents.to_pylist()}
    assert stored == texts(), "the labels' offsets count in the text as stored"
    chunks = build_corpus(documents=documents, raw_chunks=None, config=config.corpus).chunks
    ids = set(chunks.column("chunk_id").to_pylist())
    for name in ("production.run.gz", "old_set_production.run.gz"):
        assert set(read_run(DEMO / name, system="production").column("chunk_id").to_pylist()) <= ids
    assert {row["_id"] for row in rows("old_set/corpus.jsonl")} == ids


def test_every_piece_of_evidence_lies_whole_in_a_span_and_in_a_chunk() -> None:
    config = load_config(CONFIG)
    assert config.corpus.documents is not None
    documents, _ = read_documents(config.corpus.documents, config.path(config.corpus.documents.path))
    corpus = build_corpus(documents=documents, raw_chunks=None, config=config.corpus)
    spans = canonical_spans(documents=corpus.documents, chunks=corpus.chunks).spans
    for table in (spans, corpus.chunks):
        pieces = table.select(["doc_id", "start", "end"]).to_pylist()
        for row in rows("labels.jsonl"):
            for place in row["evidence"]:
                where = (place["doc_id"], place["start"], place["end"])
                assert any(builder().holds(piece, [where]) for piece in pieces), where


def test_the_old_set_flatters() -> None:
    ranks = old_ranks()
    assert len(ranks) >= 150
    found = [rank for rank in ranks.values() if rank is not None and rank <= 20]
    assert len(found) / len(ranks) > 0.9
    assert max(rank for rank in ranks.values() if rank is not None) <= 10, "gold comes from the top 10 only"
    assert sum(6 <= rank <= 10 for rank in found) >= 25


def test_the_calibration_has_both_classes_and_no_question_of_the_log() -> None:
    pairs = rows("calibration.jsonl")
    counts = Counter(pair["relevant"] for pair in pairs)
    assert counts[True] >= 25
    assert counts[False] >= 60
    asked = {question_key(row["question"]) for row in rows("labels.jsonl")}
    assert not asked & {question_key(pair["question"]) for pair in pairs}


@pytest.mark.parametrize(("old", "new"), [
    ("setup-box2", "setup-box3"), ("admin-update-os2", "admin-update-os3"), ("climate-box2", "climate-box3"),
    ("desk4-windows", "desk5-windows"), ("desk4-mac-linux", "desk5-mac-linux")])
def test_two_versions_of_the_product_say_almost_the_same(old: str, new: str) -> None:
    documents = texts()
    first, second = documents[old].split(), documents[new].split()
    assert SequenceMatcher(None, first, second, autojunk=False).ratio() > 0.6
    assert documents[old] != documents[new]


def test_it_is_small_and_there_is_a_handbook() -> None:
    size = sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert size < 5_000_000
    documents = texts()
    assert len(documents) >= 60
    assert sum(len(text.split()) for text in documents.values()) >= 36_000
    assert len(rows("old_set/corpus.jsonl")) >= 600, "chunks of 120 words every 50"
    everything = "\n".join(documents.values())
    assert len(re.findall(r"^#{1,3} ", everything, re.MULTILINE)) >= 200, "headings"
    assert len(re.findall(r"^\|[- |]+\|$", everything, re.MULTILINE)) >= 20, "tables"
    paragraphs = Counter(block for text in documents.values() for block in set(text.split("\n\n")) if len(block) > 200)
    assert max(paragraphs.values()) >= 20, "boilerplate"
