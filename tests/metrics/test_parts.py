"""Questions in parts: the same numbers as of the whole, question by question and together."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from goldset.formats.parts import OddError, split_files
from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.metrics import per_question, score
from goldset.pipeline.parts import recall_in_parts

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


@pytest.mark.parametrize(("grades", "least", "tabs"), [((0, 1, -1), None, False), ((0, 1, 2, 3, -2), 2, True)])
@pytest.mark.parametrize("part_bytes", [3_000, 1 << 20])
def test_parts_give_what_the_whole_gives(tmp_path: Path, grades: tuple[int, ...], least: int | None, tabs: bool,
                                         part_bytes: int) -> None:
    qrels, files = _write(tmp_path, seed=3, grades=grades, tabs=tabs)
    labelled = load_set(None, qrels=qrels, relevant_from=least)
    runs = {name: read_run(path, system=name) for name, path in files.items()}
    whole = score(labelled, runs, ks=[5, 1, 200]).to_pylist()
    measured = recall_in_parts(qrels, files, ks=[5, 1, 200], relevant_from=least, part_bytes=part_bytes)
    assert measured is not None
    parts = measured.measurements.to_pylist()
    numbers = ("value", "low", "high")
    assert [{name: row[name] for name in row if name not in numbers} for row in parts] == [
        {name: row[name] for name in row if name not in numbers} for row in whole]
    for mine, told in zip(parts, whole, strict=True):
        assert [mine[name] for name in numbers] == pytest.approx([told[name] for name in numbers], abs=1e-12)
    assert {"recall_ties_low", "recall_ceiling"} <= {row["measure"] for row in whole}


def test_question_by_question_to_the_last_bit(tmp_path: Path) -> None:
    qrels, files = _write(tmp_path, seed=4, grades=(0, 1, 2))
    whole = per_question(load_set(None, qrels=qrels, relevant_from=1), read_run(files["a"], system="a"), 5)
    with split_files(qrels, files, relevant_from=1, part_bytes=4_000) as split:
        assert split.count > 5
        found = pa.concat_tables([per_question(part.labelled, part.runs["a"], 5) for part in split.parts])
    assert found.sort_by("question_id").to_pylist() == whole.sort_by("question_id").to_pylist()
    assert len(found) == QUESTIONS


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
    assert recall_in_parts(qrels, files, ks=[5], part_bytes=5_000) is not None
    with (tmp_path / file).open("a") as out:
        out.write(line + "\n")
    assert recall_in_parts(qrels, files, ks=[5], part_bytes=5_000) is None


def test_ids_that_do_not_join_are_left_to_them_too(tmp_path: Path) -> None:
    qrels, files = _write(tmp_path, seed=6, grades=(0, 1))
    files["a"].write_text(files["a"].read_text().replace("q", "Q").replace("Q0", "q0"))
    with pytest.raises(OddError), split_files(qrels, files):
        pass
    (tmp_path / "c.json").write_text('{"q1": {"d1": 1.0}}')
    with pytest.raises(OddError), split_files(qrels, {"c": tmp_path / "c.json"}):
        pass
