"""Runs and qrels that are no TREC files: JSON as ranx and pytrec_eval keep them, JSONL, Parquet."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.formats.examples import is_examples
from goldset.formats.qrels import read_qrels
from goldset.formats.runs import _line_rows, _ranked, read_run
from goldset.formats.sets import load_set
from goldset.formats.trec import write_run
from goldset.schemas import conform

# q1: b before a by score, then two of the same score in the order of the file
RUN = {"q1": {"a": 1.5, "b": 2, "z": 0.5, "y": 0.5}, "007": {"7": 1.0}}
WANTED = [("q1", 1, "b"), ("q1", 2, "a"), ("q1", 3, "z"), ("q1", 4, "y"), ("007", 1, "7")]


def _rows(run: pa.Table) -> list[tuple[str, int, str]]:
    return list(zip(*(run.column(name).to_pylist() for name in ("question_id", "rank", "chunk_id")), strict=True))


def _write(folder: Path, text: str | bytes) -> Path:
    path = folder / "a.run"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_a_run_as_ranx_and_pytrec_eval_keep_it(tmp_path: Path, indent: int | None) -> None:
    run = read_run(_write(tmp_path, json.dumps(RUN, indent=indent)), system="s", family="f")
    assert conform(run, "run").equals(run)
    assert _rows(run) == WANTED
    assert set(run.column("family").to_pylist()) == {"f"}
    packed = read_run(_write(tmp_path, gzip.compress(json.dumps(RUN).encode())), system="s", family="f")
    assert packed.equals(run)


def test_a_run_of_one_row_a_line_and_in_parquet(tmp_path: Path) -> None:
    # ranks decide over scores; ids may be numbers and are kept as their digits
    rows = [{"query_id": 7, "doc_id": 12, "rank": 2, "score": 9.0},
            {"query_id": 7, "doc_id": 13, "rank": 1, "score": 1},
            {"query_id": 8, "doc_id": 12, "rank": 5, "score": 1.0}]
    wanted = [("7", 1, "13"), ("7", 2, "12"), ("8", 1, "12")]
    assert _rows(read_run(_write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows)), system="s")) == wanted
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert _rows(read_run(tmp_path / "a.parquet", system="s")) == wanted
    scored = [{"question_id": "q", "chunk_id": name, "score": value} for name, value in (("a", 1.0), ("b", 3.0))]
    pq.write_table(pa.Table.from_pylist(scored), tmp_path / "b.parquet")
    assert _rows(read_run(tmp_path / "b.parquet", system="s")) == [("q", 1, "b"), ("q", 2, "a")]


def test_trec_and_our_own_table_read_back(tmp_path: Path) -> None:
    run = read_run(_write(tmp_path, "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\n"), system="s")
    write_run(run, tmp_path / "again.run.gz")
    pq.write_table(run, tmp_path / "again.parquet")
    assert read_run(tmp_path / "again.run.gz", system="s").equals(run)
    assert read_run(tmp_path / "again.parquet", system="s").equals(run)


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"q1": {"a": 1, "a": 2}}', "the key 'a' stands twice"),
     ('{"q1": {"a": "x"}}', "question 'q1', passage 'a': score 'x' is no number"),
     ('{"q1": {"a": true}}', "score True is no number"),
     ('{"q1": {"a": 1},\n "q2": 3}', "question 'q2': int where an object was expected"),
     ('{"q1": {"a": 1}', "line 1: not JSON"),
     ('[{"q1": 1}]', "list where an object was expected"),
     ("{}", "no result in the run; it may be TREC lines"),
     ('{"question_id": "q", "chunk_id": "a"}\n', "line 1: neither rank nor score"),
     ('{"question_id": "q", "score": 1}\n', "line 1: no chunk id; one of chunk_id, doc_id"),
     ('{"question_id": "q", "chunk_id": "a", "rank": 1}\n{"question_id": "q", "chunk_id": "b", "score": 1}\n',
      "line 2: question 'q' has results with a rank and without"),
     ('{"question_id": "q", "chunk_id": "a", "rank": 1}\n{"question_id": "q", "chunk_id": "a", "rank": 2}\n',
      "line 2: chunk 'a' of question 'q' stands in line 1 already"),
     ('{"question_id": "q", "chunk_id": "a", "rank": 1.5}\n', "line 1: rank 1.5; ranks are whole numbers"),
     ("PAR1 and no more", "not a readable Parquet file")],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as told:
        read_run(_write(tmp_path, text), system="s")
    assert str(tmp_path / "a.run") in str(told.value)


def test_damaged_gzip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the gzip file is damaged"):
        read_run(_write(tmp_path, gzip.compress(json.dumps(RUN).encode())[:-9]), system="s")


def test_qrels_in_json_are_those_in_trec_form(tmp_path: Path) -> None:
    # 007 and 7 are two questions; -1 is unjudged, -2 is judged not relevant.
    grades = {"7": {"12": 2, "13": -1}, "007": {"012": 0, "a b": 3, "x": -2}}
    (tmp_path / "q.json").write_text(json.dumps(grades))
    found = read_qrels(tmp_path / "q.json", relevant_from=2)
    assert {(row["question_id"], row["span_id"]): row["relevant"] for row in found.judgments.to_pylist()} == {
        ("7", "12"): True, ("7", "13"): None, ("007", "012"): False, ("007", "a b"): True, ("007", "x"): False}
    assert {note.kind for note in found.notes} == {"unjudged_grade", "negative_grade"}
    with pytest.raises(DataError, match="grades go from -2 to 3, and nothing says which of them answer"):
        read_qrels(tmp_path / "q.json")
    (tmp_path / "q.json").write_text('{"q": {"a": 0.5}}')
    with pytest.raises(DataError, match=r"grade 0\.5 is not a whole number"):
        read_qrels(tmp_path / "q.json")


@pytest.mark.parametrize(("text", "examples"), [
    ('{"q1": {"d1": 1}}', False),
    ('{\n "q1": {"d1": 1},\n "q2": {"d2": 0}\n}', False),
    ('{"inputs": {"question": "what"}, "outputs": {"gold_ids": ["d1"]}}', True),
    ('{"queries": {"q1": "what"}, "corpus": {"d1": "text"}, "relevant_docs": {"q1": ["d1"]}}', True),
    ('{"question": "what", "gold_ids": ["d1"]}\n{"question": "why", "gold_ids": ["d2"]}', True),
])
def test_json_qrels_and_json_examples_are_told_apart(tmp_path: Path, text: str, examples: bool) -> None:
    path = tmp_path / "set.json"
    path.write_text(text)
    assert is_examples(path) is examples


def test_json_qrels_open_as_a_set_that_locates_its_labels(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('{"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 99}}')
    found = load_set(path, relevant_from=1)
    assert found.kind == "trec"
    assert found.mapping == (f"{path}: JSON qrels, question, passage, grade",)
    assert found.locate is not None
    assert found.locate("q1", "d2") == f"{path}, question 'q1', passage 'd2'"
    assert found.locate("q1", "d3") is None
    assert [(note.kind, note.where, note.example) for note in found.notes] == [
        ("odd_grade", f"{path}, question 'q2', passage 'd3'", "99")]


_IDS = st.sampled_from(["d1", "d2", "07", "a b", "é", 7, 0, "\ud83d", None, True, 1.5])
_LINES = st.lists(st.fixed_dictionaries(
    {"qid": st.sampled_from(["q1", "q2"]), "docid": _IDS},
    optional={"rank": st.one_of(st.integers(-1, 9), st.sampled_from([None, 1.0, True, 2**31])), "id": _IDS,
              "score": st.one_of(st.floats(), st.integers(-9, 9), st.sampled_from([None, "x", 2**70]))}),
    min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(rows=st.one_of(_LINES, _LINES.map(lambda rows: [
    {"qid": row["qid"], "docid": f"d{place}", "score": row.get("score", 1.0)} for place, row in enumerate(rows)])))
def test_the_quick_reader_and_the_look_at_each_line_agree(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        try:
            slow = _ranked(path, _line_rows(path), "s", None)
        except DataError as error:
            with pytest.raises(DataError, match=re.escape(str(error))):
                read_run(path, system="s")
        else:
            assert read_run(path, system="s").equals(slow)


def test_plain_lines_and_tables_are_not_looked_at_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldset.formats.runs._row", None)  # what looks at a row cannot be called
    rows = [{"qid": 7, "docno": f"d{place}", "rank": 9 - place, "text": "x"} for place in range(5)]
    run = read_run(_write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows)), system="s")
    assert _rows(run) == [("7", place, f"d{5 - place}") for place in range(1, 6)]
    table = pa.table({"qid": pa.array(["q", "q"]).dictionary_encode(), "docno": pa.array(["a", "b"], pa.large_string()),
                      "score": pa.array([float("nan"), -1.0])})
    pq.write_table(table, tmp_path / "a.parquet")
    # What has no number stands last.
    assert _rows(read_run(tmp_path / "a.parquet", system="s")) == [("q", 1, "b"), ("q", 2, "a")]
