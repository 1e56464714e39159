"""The table of speeds: what a row says, what it refuses, and that the rows of search compare like with like."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import bench, bm25_speed
from tests.benchmarks.rows import AtLeast, AtMost, Row, arguments, finish, in_turn, table, write
from tests.benchmarks.words import TERMS, WORDS, questions, token_lists

HERE = Path(__file__).parent


def test_a_ratio_says_how_many_times_better_or_what_share_of_the_cost() -> None:
    # Medians: 2 of (1, 2, 9) and 8 of (8, 8, 5).
    times = {"goldset": [1.0, 9.0, 2.0], "other 1.0": [8.0, 5.0, 8.0], "third": [4.0]}
    faster = Row.of_times("search", "s", times, wanted=AtLeast(4))
    assert (faster.ours, faster.other, faster.against, faster.beside) == (2, 8, "other 1.0", {"third": 4})
    assert (faster.ratio, faster.met) == (4, True)
    dearer = Row.of_times("build", "s of CPU", times, wanted=AtMost(0.2))
    assert (dearer.ratio, dearer.met) == (0.25, False)
    rate = Row("embed", "passages a second", 150, AtLeast(2), "encode", 100, better="large")
    assert (rate.ratio, rate.met) == (1.5, False)
    alone = Row("open", "s", 1.5, AtMost(2))
    assert (alone.ratio, alone.met) == (None, True)
    assert Row("open", "s", 1.5).met is None


def test_the_table_shows_bounds_and_notes_and_the_json_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("search, 5 chunks", "s", 0.5, AtLeast(150), "other 1.0", 100.0, beside={"third": 0.012}, note="why"),
            Row("open", "s", 2.5, AtMost(2), measured={"goldset": [2.5, 2.0, 3.0]})]
    lines = table([row.document() for row in rows]).splitlines()
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        "search, 5 chunks", "s", "1", "0.5", "other 1.0 100, third 0.012", "200×", "≥ 150×", "met"]
    assert [cell.strip() for cell in lines[3].split("|")[1:-1]] == ["open", "s", "3", "2.5", "–", "–", "≤ 2", "missed"]
    assert lines[-1] == "* search, 5 chunks: why"
    options = arguments("", least=5, unit="chunks").parse_args(
        ["--n", "5", "--check", "--json", str(tmp_path / "a" / "rows.json")])
    assert finish(rows, options) == 1
    assert finish(rows[:1], options) == 0
    assert "CPUs; Python 3." in capsys.readouterr().out
    written = json.loads((tmp_path / "a" / "rows.json").read_text())
    assert written["schema"] == "goldset.bench/1"
    assert written["rows"][0]["wanted"] == {"at_least": 150}
    assert (written["rows"][0]["ratio"], written["rows"][0]["met"]) == (200, True)


def test_tools_are_called_in_turn() -> None:
    calls: list[str] = []
    clock = iter(range(100))
    times = in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=3,
                    clock=lambda: float(next(clock)))
    assert calls == ["a", "b"] * 3
    assert times == {"a": [1.0] * 3, "b": [1.0] * 3}


@pytest.mark.parametrize("name", sorted({script for script, *_ in bench.BENCHMARKS.values()}))
def test_every_benchmark_of_the_table_refuses_a_smaller_n(name: str) -> None:
    done = subprocess.run([sys.executable, str(HERE / name), "--n", "9"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "or more; smaller sizes say nothing" in done.stderr


def test_rows_measured_before_are_kept_only_for_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert bench.known(path) == {}
    rows = [{"benchmark": "bm25", **Row("search", "s", 1.0).document()}, {"benchmark": "gone", "work": "x"}]
    write(path, rows)
    assert bench.known(path) == {"bm25": rows[:1]}
    path.write_text(path.read_text().replace(platform.python_version(), "2.7"))
    assert bench.known(path) == {}


def test_the_words_are_drawn_by_their_rank() -> None:
    corpus = list(token_lists(2000))
    counts: dict[str, int] = {}
    for words in corpus:
        assert len(words) == WORDS
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    # Chance of rank r: 1 / (r x H(100,000)), H = 12.090; 200,000 words: 16,542 of the first, 1,654 of the tenth.
    assert counts["w0"] == pytest.approx(16_542, rel=0.03)
    assert counts["w9"] == pytest.approx(1_654, rel=0.1)
    assert {len(query) for query in questions()} == {TERMS}
    assert list(token_lists(2000)) == corpus


def test_the_row_of_questions_compares_equal_scores() -> None:
    row = bm25_speed.questions_row(400, 3)
    assert row.against is not None
    assert row.against.startswith("rank_bm25 0.")
    assert len(row.measured["goldset"]) == 5
    assert row.work == "BM25, 180 questions, top 50, 400 chunks"
