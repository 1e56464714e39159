"""TREC run files: what is read, what is refused, and where the error points."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.formats.trec import _repeats, read_run, write_qrels, write_run
from goldset.schemas import conform, from_rows


def _write(folder: Path, text: str | bytes, name: str = "x.run") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _rows(run: pa.Table) -> list[tuple[str, int, str]]:
    return list(zip(*(run.column(name).to_pylist() for name in ("question_id", "rank", "chunk_id")), strict=True))


def test_a_plain_file(tmp_path: Path) -> None:
    run = read_run(_write(tmp_path, "q1 Q0 a 1 2.5 tag\nq1 Q0 b 2 1.5 tag\nq2 Q0 a 1 9 tag\n"), system="bm25",
                   family="lexical")
    assert conform(run, "run").equals(run)
    assert _rows(run) == [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "a")]
    assert set(run.column("system").to_pylist()) == {"bm25"}
    assert set(run.column("family").to_pylist()) == {"lexical"}
    assert run.column("score").to_pylist() == [2.5, 1.5, 9.0]
    assert set(read_run(tmp_path / "x.run", system="s").column("family").to_pylist()) == {"s"}


@pytest.mark.parametrize(
    "text",
    ["q1\tQ0\ta\t1\t2\tt\r\n\r\n  q1  Q0 b\t2 1 t  \r\n", "\ufeffq1 Q0 a 1 2 t\nq1 Q0 b 2 1 t",
     "\n\nq1 Q0 a 1 2 t\n   \nq1\x0bQ0 b 2 1 t\n\n"],
)
def test_any_white_space(tmp_path: Path, text: str) -> None:
    assert _rows(read_run(_write(tmp_path, text), system="s")) == [("q1", 1, "a"), ("q1", 2, "b")]


def test_gzip_by_content(tmp_path: Path) -> None:
    path = _write(tmp_path, gzip.compress(b"q1 Q0 a 1 2 t\n"))
    assert _rows(read_run(path, system="s")) == [("q1", 1, "a")]


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    # 7, 007 and NA are three words.
    text = "7 Q0 12 1 3 t\n007 Q0 012 1 3 t\nNA Q0 null 1 3 t\nnan Q0 1e5 1 3 t\n"
    assert [(q, d) for q, _, d in _rows(read_run(_write(tmp_path, text), system="s"))] == [
        ("7", "12"), ("007", "012"), ("NA", "null"), ("nan", "1e5")]


def test_ranks_decide_and_become_dense(tmp_path: Path) -> None:
    # Lines in any order, scores against the ranks, from 0, with a gap.
    text = "q1 Q0 c 7 9 t\nq2 Q0 x 0 1 t\nq1 Q0 a 0 1 t\nq1 Q0 b 3 5 t\n"
    assert _rows(read_run(_write(tmp_path, text), system="s")) == [
        ("q1", 1, "a"), ("q1", 2, "b"), ("q1", 3, "c"), ("q2", 1, "x")]


def test_a_score_that_is_no_number_is_unknown(tmp_path: Path) -> None:
    run = read_run(_write(tmp_path, "q Q0 a 1 nan t\nq Q0 b 2 -1e-3 t\n"), system="s")
    assert run.column("score").to_pylist() == [None, -0.001]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 a 1 2 t\n\nq1 Q0 b 2 t\n", r"line 3: 5 fields where 6 were expected"),
        ("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t extra\n", r"line 2: 7 fields where 6 were expected"),
        ("q1 Q0 a one 2 t\n", r"line 1: rank 'one' is not a whole number"),
        ("q1 Q0 a -1 2 t\n", r"line 1: rank -1; ranks count from 1"),
        ("q1 Q0 a 1 high t\n", r"line 1: score 'high' is not a number"),
        ("q1 Q0 a 1 2 t\nq2 Q0 a 1 2 t\nq1 Q0 b 1 2 t\n", r"line 3: rank 1 of question 'q1' stands in line 1 already"),
        ("q1 Q0 a 1 2 t\n\nq1 Q0 a 2 2 t\n", r"line 3: chunk 'a' of question 'q1' stands in line 1 already"),
        ("", r"no result in the run"),
        ("\n \n", r"no result in the run"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_run(_write(tmp_path, text), system="s")


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_run(tmp_path / "absent.run", system="s")
    with pytest.raises(DataError, match="UTF-16"):
        read_run(_write(tmp_path, "q1 Q0 a 1 2 t\n".encode("utf-16")), system="s")
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        read_run(_write(tmp_path, b"q1 Q0 a 1 2 t\nq1 Q0 \xff 2 1 t\n"), system="s")
    with pytest.raises(DataError, match="gzip file is damaged"):
        read_run(_write(tmp_path, gzip.compress(b"q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")[:-9]), system="s")


IDS = st.text(st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters='" '), min_size=1, max_size=4)


@given(st.dictionaries(IDS, st.lists(IDS, min_size=1, max_size=5, unique=True), min_size=1, max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, lists: dict[str, list[str]]) -> None:
    run = from_rows("run", [
        {"system": "s", "family": "f", "question_id": question, "rank": rank, "chunk_id": chunk, "score": 1 / 3 / rank}
        for question, chunks in lists.items() for rank, chunk in enumerate(chunks, 1)])
    path = tmp_path_factory.mktemp("run") / "a.run.gz"
    write_run(run, path)
    assert read_run(path, system="s", family="f").equals(run)


def test_an_id_with_a_space_cannot_be_written(tmp_path: Path) -> None:
    run = from_rows("run", [{"system": "s", "family": "f", "question_id": "q 1", "rank": 1, "chunk_id": "c",
                             "score": None}])
    with pytest.raises(DataError, match="'q 1' is empty or holds white space"):
        write_run(run, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()


def test_qrels_leave_unknown_pairs_out(tmp_path: Path) -> None:
    def row(span: str, relevant: bool | None, grade: int | None) -> dict[str, object]:
        return {"question_id": "q", "span_id": span, "relevant": relevant, "grade": grade, "basis": "human",
                "inclusion_prob": 1.0, "stratum": None, "label_ids": []}

    table = from_rows("judgments", [row("c", None, None), row("b", False, None), row("a", True, 3)])
    write_qrels(table, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q 0 a 3\nq 0 b 0\n"


def test_a_chunk_that_repeats_is_named_whatever_the_length_of_its_id(tmp_path: Path) -> None:
    long = "a-document-with-a-name-longer-than-eight-bytes"
    for name in ("d", "12345678", "123456789", long):
        text = f"q1 Q0 {name} 1 3 t\nq1 Q0 other 2 2 t\nq2 Q0 {name} 1 2 t\nq1 Q0 {name} 3 1 t\n"
        with pytest.raises(DataError, match=f"line 4: chunk '{name}' of question 'q1' stands in line 1 already"):
            read_run(_write(tmp_path, text), system="s")
    near = f"q1 Q0 {long}1 1 3 t\nq1 Q0 {long}2 2 2 t\nq1 Q0 {long} 3 1 t\nq11 Q0 {long} 1 1 t\n"
    assert len(read_run(_write(tmp_path, near), system="s")) == 4


@given(st.lists(st.sampled_from(["a", "ab", "é", "a" * 8, "a" * 9, "b" * 17]), min_size=1, max_size=8))
def test_repeats_are_seen_by_their_bytes(ids: list[str]) -> None:
    codes = np.zeros(len(ids), np.int64)
    assert _repeats(codes, pa.array(ids)) == (len(set(ids)) < len(ids))
    assert not _repeats(np.arange(len(ids)), pa.array(ids))
    # a slice shares the bytes of the whole array
    assert _repeats(codes, pa.array(["q", *ids])[1:]) == (len(set(ids)) < len(ids))


def test_a_file_in_place_reads_as_one_that_needs_work(tmp_path: Path) -> None:
    plain = "q1 Q0 a! 1 2.5 t\nq2 Q0 b 1 9 t\nq1 Q0 b 2 1.5 t\n"
    wanted = read_run(_write(tmp_path, plain), system="s")
    assert _rows(wanted) == [("q1", 1, "a!"), ("q1", 2, "b"), ("q2", 1, "b")]
    for other in (plain.replace(" ", "  "), plain.replace(" ", "\t"), plain.replace("\n", " \n"), plain + "\n",
                  " " + plain, plain.replace("\n", "\r\n")):
        assert read_run(_write(tmp_path, other), system="s").equals(wanted)
