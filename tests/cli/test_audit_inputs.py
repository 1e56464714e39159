"""``goldset audit``: what may be given beside the set, on the command line, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Goldset, beir, goldset

__all__ = ["beir", "goldset"]


def test_a_warning_fails_where_it_is_asked_to(goldset: Goldset, beir: Path) -> None:
    # Production serves more than is quoted: a warning; one gold a question is another.
    arguments = ["audit", beir, "--run", f"good={beir / 'good.run'}", "--eval-k", "2", "--serving-k", "4"]
    assert goldset(*arguments).code == 0
    assert goldset(*arguments, "--fail-on", "warn").code == 1


def test_the_log_of_what_was_served_gives_the_k(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    log = tmp_path / "answers.jsonl"
    log.write_text("".join(json.dumps({"out": {"passages": ["a"] * size}}) + "\n" for size in (2, 2, 2, 1)))
    arguments = ["audit", beir, "--run", f"bad={beir / 'bad.run'}", "--eval-k", "4", "--served-log", log,
                 "--served-field", "out.passages"]
    # Each gold of bad.run stands at rank 3: within the quoted four, beyond the two that reach readers.
    out = " ".join(goldset(*arguments).out.split())
    assert "2 passages reached the reader in 3 of 4 logged answers, as few as 1 in 1." in out
    assert "recall@4 is 1.000, recall@2 is 0.000, 100.0 points less" in out
    out = " ".join(goldset(*arguments, "--serving-k", "4").out.split())
    assert "[fail] log: served less. 4 are said to be served" in out


def test_a_reference_set_is_named_where_it_decides(goldset: Goldset, beir: Path) -> None:
    out = " ".join(goldset("audit", beir, "--reference", beir).out.split())
    # Thirty questions are fewer than fifty.
    assert "[insufficient] too few. 30 questions with gold and 30 of beir with theirs: 50 of each are needed" in out


def test_every_report_carries_the_thresholds(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = goldset("audit", beir, "--html", page, "--json")
    limits = json.loads(done.out)["limits"]
    assert limits["leak_strong"] == 0.71
    text, html = " ".join(goldset("audit", beir).out.split()), page.read_text(encoding="utf-8")
    for name, value in limits.items():
        assert f"{name.replace('_', ' ')} {value:g}" in text
        assert f"<td>{name.replace('_', ' ')}</td><td class=\"n\">{value:g}</td>" in html


PAIRS = {
    "mteb.jsonl": "".join(f'{{"query-id": "q{i}", "corpus-id": "d{i}", "score": 1.0}}\n' for i in range(30)),
    "pandas.csv": "query_id,doc_id,relevance\n" + "".join(f"q{i},d{i},1\n" for i in range(30)),
    "excel.csv": "\ufeffsep=;\r\nqid;docno\r\n" + "".join(f"q{i};d{i}\r\n" for i in range(30)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_with_named_columns_are_qrels(goldset: Goldset, beir: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PAIRS[name].encode())
    done = goldset("audit", "--qrels", path, "--questions", beir / "queries.jsonl", "--corpus", beir / "corpus.jsonl")
    assert f"read {path}: qrels, a pair a line: question = " in done.err
    assert "30 gold passages of 30 questions: ids resolve, nothing stands twice" in " ".join(done.out.split())


def test_a_pair_with_two_grades_is_named_by_its_line(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text(PAIRS["mteb.jsonl"] + '{"query-id": "q3", "corpus-id": "d3", "score": 0}\n')
    done = goldset("audit", "--qrels", path, "--corpus", beir / "corpus.jsonl")
    out = " ".join(done.out.split())
    assert "twice.jsonl, line 31: pairs stand with two different grades" in out
    assert "grade -1" not in out  # that it counts as not judged is no grade of the file


def test_a_judged_question_without_text_is_named_by_its_line(goldset: Goldset, beir: Path) -> None:
    with (beir / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("nobody\td3\t1\n")
    out = " ".join(goldset("audit", beir).out.split())
    assert "test.tsv, line 32: judged questions have no text (e.g. 'nobody'); 1 in all." in out


def test_gold_texts_alone_show_what_was_copied(goldset: Goldset, tmp_path: Path) -> None:
    # Each question repeats six words of its gold; no other passage is known, so how rare they are is not.
    path = tmp_path / "ragas.jsonl"
    path.write_text("".join(json.dumps({
        "user_input": f"which pump serves the tower number {i}", "reference_contexts": [
            f"It is pump {i * 3}: which pump serves the tower number {i} is written on the door."]}) + "\n"
        for i in range(60)))
    out = " ".join(goldset("audit", path).out.split())
    assert "[warn] suspected" in out
    assert "60 of 60 questions repeat 5 or more words of their gold in a row (100.0 %" in out


def test_a_failed_probe_leaves_nothing_behind(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    done = goldset("audit", beir, "--probe", tmp_path / "probe")
    assert (done.code, (tmp_path / "probe").exists()) == (2, False)
    assert "--probe needs two unrelated systems and has bm25" in done.complaint


def test_logs_without_a_question_are_named(goldset: Goldset, beir: Path) -> None:
    done = goldset("audit", beir, "--logs", beir / "good.run")
    assert done.code == 3
    assert "good.run: no line holds a question; a log is JSON lines or CSV" in done.complaint
