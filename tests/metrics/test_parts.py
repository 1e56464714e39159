"""Questions in parts: the same numbers as of the whole, question by question and together."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.formats.parts import OddError, Source, split_files
from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.metrics import per_question, score
from goldset.pipeline.curves import Beside
from goldset.pipeline.parts import compare_in_parts, recall_in_parts
from goldset.pipeline.scores import compare_any, recall_any

QUESTIONS = 160


def _write(folder: Path, *, seed: int, grades: tuple[int, ...], tabs: bool = False) -> tuple[Path, dict[str, Path]]:
    """Qrels and two runs, lines in any order: ties, questions without gold, without results, outside the qrels."""
    draw = random.Random(seed)
    judged = [(f"q{i}", f"d{j}", draw.choice(grades)) for i in range(QUESTIONS)
              for j in draw.sample(range(30), draw.randint(1, 8))]
    lines = [f"{q}\t{d}\t{grade}" if tabs else f"{q} 0 {d} {grade}" for q, d, grade in judged]
    draw.shuffle(lines)
    qrels = folder / "qrels.txt"
    qrels.write_text(("query-id\tcorpus-id\tscore\n" if tabs else "") + "\n".join(lines) + "\n")
    runs = {}
    for name in ("b", "a"):
        rows = []
        for i in range(5, QUESTIONS + 7):
            best = 9.0
            for rank, j in enumerate(draw.sample(range(30), draw.randint(1, 12)), 1):
                best -= draw.choice((0, 0, 1))
                rows.append(f"q{i} Q0 d{j} {rank} {best} {name}")
        draw.shuffle(rows)
        runs[name] = folder / f"{name}.run"
        runs[name].write_text("\n".join(rows) + "\n")
    return qrels, runs


def _source(qrels: Path) -> Source:
    found = Source.of(None, qrels, None, None)
    assert found is not None
    return found


@pytest.mark.parametrize(("grades", "least", "tabs"), [((0, 1, -1), None, False), ((0, 1, 2, 3, -2), 2, True)])
@pytest.mark.parametrize("part_bytes", [3_000, 1 << 20])
def test_parts_give_what_the_whole_gives(tmp_path: Path, grades: tuple[int, ...], least: int | None, tabs: bool,
                                         part_bytes: int) -> None:
    qrels, files = _write(tmp_path, seed=3, grades=grades, tabs=tabs)
    labelled = load_set(None, qrels=qrels, relevant_from=least)
    runs = {name: read_run(path, system=name) for name, path in files.items()}
    whole = score(labelled, runs, ks=[5, 1, 200]).to_pylist()
    measured = recall_in_parts(_source(qrels), files, ks=[5, 1, 200], relevant_from=least, part_bytes=part_bytes)
    assert measured is not None
    parts = measured.measurements.to_pylist()
    assert parts == whole  # to the last bit
    assert {"recall_ties_low", "recall_ceiling"} <= {row["measure"] for row in whole}


def test_question_by_question_to_the_last_bit(tmp_path: Path) -> None:
    qrels, files = _write(tmp_path, seed=4, grades=(0, 1, 2))
    whole = per_question(load_set(None, qrels=qrels, relevant_from=1), read_run(files["a"], system="a"), 5)
    with split_files(_source(qrels), files, relevant_from=1, part_bytes=4_000) as split:
        assert split.count > 5
        found = pa.concat_tables([per_question(part.labelled, part.runs["a"], 5) for part in split.parts])
    assert found.sort_by("question_id").to_pylist() == whole.sort_by("question_id").to_pylist()
    assert len(found) == QUESTIONS


def _beir(folder: Path, draw: random.Random, questions: int, grades: tuple[int, ...]) -> None:
    """Near-duplicates, languages, empty texts, judged questions without a text, gold that the corpus lacks."""
    (folder / "qrels").mkdir(parents=True)
    lines = [{"_id": f"q{i}", "text": draw.choice(["vpn", "Vpn ", f"text {i}", f"text {i // 3}", " "]),
              "metadata": {"language": draw.choice(["en", "de", "fr"])}} for i in range(questions)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": f"d{j}", "text": "x"}) + "\n" for j in range(25)))
    judged = [f"q{i}\td{j}\t{draw.choice(grades)}\n" for i in range(questions + 3) if draw.random() < 0.9
              for j in draw.sample(range(30), draw.randint(1, 8))]
    judged += ["q0\td99\t1\n", "q1\td98\t1\n", f"q2\td97\t{max(grades)}\n"]
    draw.shuffle(judged)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))


def _run(path: Path, form: str, draw: random.Random, questions: int) -> None:
    """A run in one of its forms; questions apart, lists of any length, equal scores."""
    rows = []
    for i in range(questions + 2):
        best = 9.0
        for rank, j in enumerate(draw.sample(range(30), draw.randint(0, 12)), 1):
            best -= draw.choice((0, 0, 0.5, 1 / 3))
            rows.append({"qid": f"q{i}", "docid": f"d{j}", "rank": rank, "score": best})
    rows.append({"qid": "q0", "docid": "d99", "rank": 99, "score": -9.0})
    if form != "scores":  # there the order of the file decides between equal scores, in the whole and in parts
        draw.shuffle(rows)
    if form == "trec":
        path.write_text("".join(f"{row['qid']} Q0 {row['docid']} {row['rank']} {row['score']} x\n" for row in rows))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=17)
    else:
        left_out = {"scores": "rank", "ranks": "score"}[form]
        path.write_text("".join(json.dumps({name: value for name, value in row.items() if name != left_out}) + "\n"
                                for row in rows))


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), questions=st.integers(3, 40), grades=st.sampled_from([(0, 1), (-1, 0, 1, 2)]),
       forms=st.sampled_from(list(itertools.permutations(("trec", "ranks", "scores", "parquet"), 2))),
       part_bytes=st.sampled_from([4_000, 1 << 20]))
def test_whatever_is_asked_of_the_parts_is_that_of_the_whole(seed: int, questions: int, grades: tuple[int, ...],
                                                            forms: tuple[str, str], part_bytes: int) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set"
        _beir(path, draw, questions, grades)
        files = {name: Path(folder) / f"{name}.run" for name in ("b", "a")}
        for file, form in zip(files.values(), forms, strict=True):
            _run(file, form, draw, questions)
        whole = load_set(path, relevant_from=1)
        runs = {name: read_run(file, system=name) for name, file in files.items()}
        told = recall_any(whole, runs, ks=[50, 3], by=["language", "week"], beside=Beside(curve=True))
        source = Source.of(path, None)
        assert source is not None
        parts = recall_in_parts(source, files, ks=[50, 3], relevant_from=1, by=["language", "week"], curve=True,
                                part_bytes=part_bytes)
        assert parts is not None
        # Words are counted where the texts are read whole.
        assert parts.as_json() == {**told.as_json(), "words_served": []}
        assert parts.text() == "\n".join(line for line in told.text().splitlines() if " words at " not in line)
        compared = compare_in_parts(source, files, k=3, relevant_from=1, part_bytes=part_bytes)
        assert compared is not None
        assert compared.as_json() == compare_any(whole, runs, k=3).as_json()


@pytest.mark.parametrize(("name", "text"), [
    ("queries.jsonl", '{"_id": "q1", "text": "another"}'),  # an id that stands twice
    ("queries.jsonl", '{"_id": "q999"}'),
    ("corpus.jsonl", '{"_id": "d\\ud800", "text": "x"}'),
    ("a.run", '{"qid": "q1", "docid": "d1", "score": 1.0, "rank": 3}'),  # the others have no rank
    ("a.run", '{"qid": "q1", "docid": 7, "score": 1.0}'),
    ("a.run", '["q1", "d1", 1.0]'),
])
def test_odd_lines_of_a_folder_are_left_to_the_readers_of_whole_files(tmp_path: Path, name: str, text: str) -> None:
    draw = random.Random(2)
    _beir(tmp_path / "set", draw, 30, (0, 1))
    _run(tmp_path / "a.run", "scores", draw, 30)
    source = Source.of(tmp_path / "set", None)
    assert source is not None
    assert recall_in_parts(source, {"a": tmp_path / "a.run"}, ks=[3], part_bytes=2_000) is not None
    file = next(path for path in (tmp_path / name, tmp_path / "set" / name) if path.exists())
    file.write_text(file.read_text() + text + "\n")
    try:
        found = recall_in_parts(source, {"a": tmp_path / "a.run"}, ks=[3], part_bytes=2_000)
    except DataError:  # a question without a text is named at once
        assert "q999" in text
    else:
        assert found is None


def test_what_cannot_come_apart_is_no_source(tmp_path: Path) -> None:
    assert Source.of(None, None) is None
    assert Source.of(tmp_path, None) is None  # neither a BEIR folder nor a version
    assert Source.of(tmp_path / "a", tmp_path / "b") is None


@pytest.mark.parametrize(("file", "line"), [
    ("qrels.txt", "q1 0 d999 1\nq1 0 d999 0"),  # two grades for one pair
    ("qrels.txt", 'q1 0 "d1" 1'),
    ("qrels.txt", "q1 0 d1000"),
    ("a.run", "q7 Q0 d500 1 3.5 a"),  # a rank that stands twice
    ("a.run", "q7 Q0 d500 77"),
    ("a.run", "q7 Q0 d500 77 much a"),
])
def test_what_is_out_of_the_ordinary_is_left_to_the_readers_of_whole_files(tmp_path: Path, file: str,
                                                                           line: str) -> None:
    qrels, files = _write(tmp_path, seed=5, grades=(0, 1))
    assert recall_in_parts(_source(qrels), files, ks=[5], part_bytes=5_000) is not None
    with (tmp_path / file).open("a") as out:
        out.write(line + "\n")
    assert recall_in_parts(_source(qrels), files, ks=[5], part_bytes=5_000) is None


def test_ids_that_do_not_join_are_left_to_them_too(tmp_path: Path) -> None:
    qrels, files = _write(tmp_path, seed=6, grades=(0, 1))
    files["a"].write_text(files["a"].read_text().replace("q", "Q").replace("Q0", "q0"))
    with pytest.raises(OddError), split_files(_source(qrels), files):
        pass
    (tmp_path / "c.json").write_text('{"q1": {"d1": 1.0}}')  # one object, which nothing can be cut from
    with pytest.raises(OddError), split_files(_source(qrels), {"c": tmp_path / "c.json"}):
        pass
