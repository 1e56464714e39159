"""Labelled sets from qrels, BEIR folders and published versions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from goldset.errors import DataError, UsageError
from goldset.formats.qrels import read_qrels
from goldset.formats.sets import LabelledSet, load_set
from goldset.schemas import conform, empty


def _write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _judged(labelled: LabelledSet) -> dict[tuple[str, str], bool | None]:
    return {(row["question_id"], row["span_id"]): row["relevant"] for row in labelled.judgments.to_pylist()}


def _notes(labelled: LabelledSet) -> dict[str, int]:
    return {note.kind: note.count for note in labelled.notes}


def _set(path: Path, text: str | bytes, relevant_from: int | None = None) -> LabelledSet:
    return load_set(None, qrels=_write(path / "a.qrels", text), relevant_from=relevant_from)


def test_separators_blank_lines_and_quotes(tmp_path: Path) -> None:
    # Windows line ends, blank lines, tabs and quotes mixed, as in castorini/pyserini#1128.
    labelled = _set(tmp_path, 'q1 0 d1 1\r\n\r\nq1\t0\td2\t0\r\nq2  0   d9  "1"\r\n   \r\n')
    assert _judged(labelled) == {("q1", "d1"): True, ("q1", "d2"): False, ("q2", "d9"): True}
    assert _notes(labelled) == {"blank_lines": 2, "quoted": 1}
    assert [note.where.rsplit(", ")[-1] for note in labelled.notes] == ["line 2", "line 4"]
    for name, table in (("judgments", labelled.judgments), ("gold", labelled.gold)):
        assert conform(table, name).equals(table)


@pytest.mark.parametrize(("line", "count"), [("q1 0 d2", 3), ("q1 0 d2 1 x", 5)])
def test_a_line_with_another_number_of_fields(tmp_path: Path, line: str, count: int) -> None:
    with pytest.raises(DataError, match=rf"a\.qrels, line 3: {count} fields where 4 were expected"):
        _set(tmp_path, f"q1 0 d1 1\n\n{line}\n")


@pytest.mark.parametrize(
    "text", ["\ufeffquery-id\tcorpus-id\tscore\nq1\td1\t1\n", "\ufeffq1 0 d1 1", "\ufeffq1\td1\t1\n"])
def test_a_byte_order_mark_is_no_part_of_the_first_id(tmp_path: Path, text: str) -> None:
    # What spreadsheets write before the first character.
    labelled = _set(tmp_path, text)
    assert _judged(labelled) == {("q1", "d1"): True}
    assert _notes(labelled) == {"bom": 1}


def test_utf16_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-16"):
        _set(tmp_path, "q1 0 d1 1\n".encode("utf-16"))


def test_ids_are_opaque(tmp_path: Path) -> None:
    # 007 and 7 are two ids, as in capreolus-ir/capreolus#100.
    labelled = _set(tmp_path, "007 0 12 1\n7 0 012 1\n")
    assert _judged(labelled) == {("007", "12"): True, ("7", "012"): True}


def test_negative_and_graded_labels(tmp_path: Path) -> None:
    # As in TREC: -1 is pooled and not judged, -2 is judged not relevant
    text = "".join(f"q 0 d{grade} {grade}\n" for grade in (-2, -1, 0, 1, 2, 3))
    with pytest.raises(DataError, match=r"grades go from -2 to 3.*--relevant-from"):
        _set(tmp_path, text)
    labelled = _set(tmp_path, text, 2)
    assert {span: relevant for (_, span), relevant in _judged(labelled).items()} == {
        "d-2": False, "d-1": None, "d0": False, "d1": False, "d2": True, "d3": True}
    assert labelled.gold.column("span_id").to_pylist() == ["d2", "d3"]
    assert _notes(labelled) == {"unjudged_grade": 1, "negative_grade": 1}
    assert labelled.relevant_from == 2
    with pytest.raises(DataError, match="no judgment reaches --relevant-from 4"):
        _set(tmp_path, text, 4)
    with pytest.raises(UsageError, match="--relevant-from 0"):
        _set(tmp_path, text, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("q1 0 d1 high\n", "line 1: grade 'high' is not a whole number"),
     ("q1 0 d1 1\nq1 0 d2 0.5\n", "line 2: grade '0.5' is not a whole number"),
     ("q1 0 d1 1\nq1 0 d1 0\n", "line 2: grade 0 for question 'q1', passage 'd1', but line 1 says 1"),
     ("\n\n", "empty"),
     ("query-id\tcorpus-id\tscore\n", "no judgment"),
     ("query-id\tcorpus-id\tscore\nq1\td1\n", "line 2: 2 fields where 3 were expected"),
     ("q1\t\t1\n", "line 1: an empty id")],
)
def test_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _set(tmp_path, text)


def test_repeated_lines_count_once(tmp_path: Path) -> None:
    labelled = _set(tmp_path, "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 1\n")
    assert len(labelled.judgments) == 2
    assert _notes(labelled) == {"repeated_judgment": 1}


def test_whole_number_grades_with_a_point(tmp_path: Path) -> None:
    assert read_qrels(_write(tmp_path / "q", "q1 0 d1 1.0\n")).judgments.column("grade").to_pylist() == [1]


def _beir(folder: Path) -> Path:
    rows = [{"_id": "d1", "title": "Routers", "text": "Hold reset for ten seconds."}, {"_id": 12, "text": "Café"}]
    _write(folder / "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    _write(folder / "queries.jsonl.gz", gzip.compress(
        b'{"_id": "q1", "text": "null", "metadata": {"origin": "log", "language": "en"}}\n'
        b'{"_id": "q2", "text": "  "}\n{"_id": 3, "text": "NULL?"}\n'))
    _write(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n3\t12\t1\nq9\td1\t0\n")
    return folder


def test_beir_folder(tmp_path: Path) -> None:
    labelled = load_set(_beir(tmp_path / "tiny"))
    assert (labelled.name, labelled.kind, labelled.label) == ("tiny", "beir", "tiny")
    assert _judged(labelled) == {("q1", "d1"): True, ("3", "12"): True, ("q9", "d1"): False}
    questions = labelled.questions
    assert questions is not None
    assert conform(questions, "questions").equals(questions)
    # null is a word; q2 has no text. "null" and "NULL?" are the same question: one cluster.
    assert questions.column("text").to_pylist() == ["null", "NULL?"]
    assert questions.column("origin").to_pylist() == ["log", "unknown"]
    assert len(set(questions.column("cluster_id").to_pylist())) == 1
    assert _notes(labelled) == {"empty_question": 1, "question_without_text": 1}


def test_corpus_is_read_on_demand(tmp_path: Path) -> None:
    folder = _beir(tmp_path / "tiny")
    labelled = load_set(folder)
    corpus = labelled.corpus
    assert corpus is not None
    for name, table in (("chunks", corpus.chunks), ("spans", corpus.spans), ("span_links", corpus.links)):
        assert conform(table, name).equals(table)
    chunk = corpus.chunks.to_pylist()[0]
    assert chunk["text"] == "Routers\nHold reset for ten seconds."
    assert chunk["text"][chunk["body_start"]:] == "Hold reset for ten seconds."
    assert (chunk["start"], chunk["end"]) == (0, 27)
    assert corpus.chunks.column("chunk_id").to_pylist() == ["d1", "12"]
    lazy = load_set(folder)
    _write(folder / "corpus.jsonl", '{"_id": "d1", "text": "a"}\n\n{"_id": "d1", "text": "b"}\n')
    with pytest.raises(DataError, match="line 3: id 'd1' stands in line 1 already"):
        _ = lazy.corpus


def test_several_qrels(tmp_path: Path) -> None:
    folder = _beir(tmp_path / "tiny")
    _write(folder / "qrels" / "dev.tsv", "q1\td1\t0\n")
    assert _judged(load_set(folder))["q1", "d1"] is True
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    with pytest.raises(DataError, match=r"dev\.tsv, train\.tsv; name one with --qrels"):
        load_set(folder)
    assert len(load_set(folder, qrels=folder / "qrels" / "dev.tsv").judgments) == 1


def test_questions_of_another_set(tmp_path: Path) -> None:
    qrels = _write(tmp_path / "a.qrels", "q1 0 d1 1\n")
    questions = _write(tmp_path / "q.tsv", "x1\thow to reset\n")
    with pytest.raises(DataError, match=r"0 of 1 question ids stand in .*q\.tsv \(first 'q1', there 'x1'\)"):
        load_set(None, qrels=qrels, questions=questions)


@pytest.mark.parametrize(
    ("text", "message"),
    [("q1 how\n", "line 1: no tab"), ("q1\ta\nq1\tb\n", "line 2: question id 'q1' stands in line 1 already"),
     ('{"_id": "q1"}\n', "line 1: no text"), ('{"text": "a"}\n', "line 1: no id"), ("", "no question")],
)
def test_bad_questions(tmp_path: Path, text: str, message: str) -> None:
    qrels = _write(tmp_path / "a.qrels", "q1 0 d1 1\n")
    with pytest.raises(DataError, match=message):
        load_set(None, qrels=qrels, questions=_write(tmp_path / "q", text))


def test_nothing_to_load(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no labelled set"):
        load_set(None)
    with pytest.raises(DataError, match="neither a published version"):
        load_set(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        load_set(tmp_path / "absent")
    file = _write(tmp_path / "b.qrels", "q1 0 d1 1\n")
    assert load_set(file).name == "b"
    with pytest.raises(UsageError, match="name one set of judgments"):
        load_set(file, qrels=file)


def test_published_version(tmp_path: Path) -> None:
    folder = tmp_path / "gold" / "demo" / "v2"
    folder.mkdir(parents=True)
    for name in ("questions", "judgments", "gold", "chunks", "spans", "span_links"):
        pq.write_table(empty(name), folder / f"{name}.parquet")
    (folder / "manifest.json").write_text(json.dumps({"name": "demo", "version": "v2", "relevant_from": None}))
    labelled = load_set(folder)
    assert (labelled.label, labelled.kind, labelled.manifest["name"]) == ("demo/v2", "published", "demo")
    assert labelled.corpus is not None
    with pytest.raises(UsageError, match="brings its own"):
        load_set(folder, relevant_from=2)
    with pytest.raises(DataError, match=r"holds the versions v2; name one"):
        load_set(folder.parent)
    (folder / "gold.parquet").unlink()
    with pytest.raises(DataError, match=r"gold\.parquet: no such table"):
        load_set(folder)
