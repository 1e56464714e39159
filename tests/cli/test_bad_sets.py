"""Foreign sets that cannot be used, and the gate: one sentence on stderr, the documented exit code, nothing written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli import spoil
from tests.cli.conftest import Goldset
from tests.pipeline import golden


def test_unknown_passages_in_the_run_of_a_foreign_set(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    run = tmp_path / "moved.run"
    run.write_text((beir / "good.run").read_text().replace(" Q0 d", " Q0 passage"))
    for command in (["recall", "--k", "2"], ["audit"]):
        done = goldset(command[0], beir, "--run", f"a={run}", *command[1:])
        assert done.code == 3, command
        assert "run 'a': 0 of 34 chunk ids resolve; the first is 'passage" in done.complaint
    run.write_text((beir / "good.run").read_text().replace("q", "topic"))
    done = goldset("recall", beir, "--run", f"a={run}", "--k", "2")
    assert done.code == 3
    assert "run 'a': 0 of 30 question ids resolve; the first is 'topic0'" in done.complaint


FILES: list[tuple[str, str, str | bytes, list[str], str]] = [
    ("graded set without a threshold", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t2\nq1\td1\t1\n", [],
     r"test\.tsv: .*grade.* --relevant-from"),
    ("two grades for one pair", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\td0\t0\n", [],
     r"test\.tsv, line 3: .*line 2"),
    ("qrels with a field too many", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\t0\td0\t1\n", [],
     r"test\.tsv, line 3: 4 fields"),
    ("grade that is no number", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\tyes\n", [],
     r"test\.tsv, line 2: grade 'yes'"),
    ("no judgment", "qrels/test.tsv", "query-id\tcorpus-id\tscore\n", [], r"test\.tsv: no judgment"),
    ("empty qrels", "qrels/test.tsv", "", [], r"test\.tsv: empty"),
    ("qrels in UTF-16", "qrels/test.tsv", "q0\td0\t1\n".encode("utf-16"), [], r"test\.tsv: UTF-16 text; convert it"),
    ("question id twice", "queries.jsonl", '{"_id": "q0", "text": "a"}\n{"_id": "q0", "text": "b"}\n', [],
     r"queries\.jsonl, line 2: question id 'q0' stands in line 1 already"),
    ("questions of another set", "queries.jsonl", '{"_id": "x0", "text": "a"}\n', [], r"0 of 30 question ids stand in"),
    ("run with a field too few", "good.run", "q0 Q0 d0 1 9.0\n", [],
     r"good\.run, line 1: 5 fields where 6 were expected"),
    ("qrels for a run", "good.run", "q0 0 d0 1\n", [], r"4 fields where 6 .*four fields are judgments, which --qrels"),
    ("a rank twice", "good.run", "q0 Q0 d0 1 9.0 a\nq0 Q0 d1 1 8.0 a\n", [], r"good\.run, line 2: rank 1 .*line 1"),
    ("empty run", "good.run", "", [], r"good\.run: no result in the run"),
    ("damaged gzip", "good.run", spoil.CUT, [], r"good\.run.*the gzip file is damaged"),
    ("threshold below 1", "good.run", "q0 Q0 d0 1 9.0 a\n", ["--relevant-from", "0"], r"^--relevant-from 0: "),
]


@pytest.mark.parametrize(("file", "content", "more", "says"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_files_of_a_foreign_set(goldset: Goldset, beir: Path, file: str, content: str | bytes, more: list[str],
                                says: str) -> None:
    spoil.write(file, content)(beir)
    before = golden.listing(beir)
    done = goldset("recall", beir, "--run", f"good={beir / 'good.run'}", "--k", "2", *more)
    assert done.code == (2 if more else 3)
    assert re.search(says, done.complaint), done.complaint
    assert golden.listing(beir) == before


def test_corpus_of_a_foreign_set_with_an_id_twice(goldset: Goldset, beir: Path) -> None:
    spoil.append("corpus.jsonl", '{"_id": "d7", "text": "Again."}')(beir)
    done = goldset("audit", beir)
    assert done.code == 3
    assert re.search(r"corpus\.jsonl, line 41: id 'd7' stands in line 8 already", done.complaint)


def test_a_graded_set_with_its_threshold_is_read(goldset: Goldset, beir: Path) -> None:
    spoil.write("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t2\nq1\td1\t1\n")(beir)
    done = goldset("recall", beir, "--run", f"good={beir / 'good.run'}", "--k", "1", "--relevant-from", "2", "--json")
    assert done.code == 0
    rows = {row["measure"]: row for row in json.loads(done.out)["measurements"]}
    assert (rows["recall"]["value"], rows["recall"]["n"]) == (1.0, 1)


@pytest.mark.parametrize(("run", "least", "code"), [
    ("good", "0.8", 0),  # 30 of 30: the lower bound is 0.88
    ("bad", "0.5", 1),  # 0 of 30 at k = 1: the upper bound is 0.12
    ("good", "0.95", 6),  # between the bounds: cannot be told
    ("bad", "0.05", 6),
])
def test_the_gate(goldset: Goldset, beir: Path, run: str, least: str, code: int) -> None:
    done = goldset("recall", beir, "--run", f"{run}={beir / f'{run}.run'}", "--k", "1", "--min", least)
    assert done.code == code


def test_a_report_that_cannot_be_written(goldset: Goldset, beir: Path) -> None:
    done = goldset("audit", beir, "--run", f"good={beir / 'good.run'}", "--html", beir / "good.run" / "report.html")
    assert done.code == 9
    assert re.search(r"report\.html: cannot be written", done.complaint)


def test_columns_that_changed_places_are_named(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    # Passage ids stand in the questions' column and the reverse; with numbers for ids nearly everything would join.
    swapped = tmp_path / "swapped.qrels"
    swapped.write_text("".join(f"d{i} 0 q{i} 1\n" for i in range(30)))
    texts = ["--questions", beir / "queries.jsonl", "--corpus", beir / "corpus.jsonl"]
    done = goldset("audit", "--qrels", swapped, *texts)
    assert done.code == 3
    assert "all 30 ids in the passages' column are questions of" in done.complaint
    assert "the two columns changed places; write the question first" in done.complaint
    done = goldset("audit", "--qrels", swapped, "--corpus", beir / "corpus.jsonl")
    assert done.code == 3
    assert "0 of 30 passage ids of the gold stand in the corpus (not 'q0')" in done.complaint
    assert "but all 30 question ids do" in done.complaint


@pytest.mark.parametrize(("question", "passage", "says"), [
    ("q{}", "D{}", "the gold of other: 0 of 30 passage ids resolve, but 30 would if case"),
    ("q{}", "d0{}", "the first is 'd00', the set has ids like 'd0'"),  # stays unresolved: zeros inside an id count
    ("Q{}", "d{}", "0 of 30 question ids resolve, but 30 would if case"),
], ids=["case of passages", "zeros inside", "case of questions"])
def test_ids_in_another_spelling_are_named(goldset: Goldset, beir: Path, tmp_path: Path, question: str, passage: str,
                                           says: str) -> None:
    other = tmp_path / "other.qrels"
    other.write_text("".join(f"{question.format(i)} 0 {passage.format(i)} 1\n" for i in range(30)))
    done = goldset("audit", "--qrels", other, "--questions", beir / "queries.jsonl", "--corpus", beir / "corpus.jsonl")
    if "00" in says:
        assert done.code == 1
        assert "30 of 30 gold passages are not in the corpus" in " ".join(done.out.split())
    else:
        assert done.code == 3
        assert says in done.complaint


SHAPES: list[tuple[str, str | bytes, str]] = [
    ("cut.json", '{"q1": {"d1": 1', r"cut\.json, line 1: not JSON \(.*\); mend the line, or write the file again"),
    ("nested.jsonl", '{"question": "a b", "context": [["Title", ["One.", "Two."]]]}\n',
     r"nested\.jsonl, line 1: 'context' holds .* \(list\) where the id or the text of one gold passage was expected"),
    ("half.qrels", "q0 0 d0 0.5\n", r"half\.qrels, line 1: grade '0\.5' is not a whole number; write 1 for"),
    ("huge.qrels", "q0 0 d0 1\nq1 0 d1 99999999999999999\n", r"huge\.qrels, line 2: grade '9+' is too large"),
    ("ids.qrels", "q0 0 1 17\nq1 0 1 46\n", r"no scale of relevance reaches 46: is the last column the grade"),
    ("wide.qrels", "q0 0 d0 1\n".encode("utf-16-le"), r"UTF-16 text without a byte order mark; .*iconv -f UTF-16LE"),
    ("sheet.xlsx", b"PK\x03\x04\xff\n", r"sheet\.xlsx: a spreadsheet or an archive, and text is needed; save"),
    ("set.parquet", b"PAR1\xff\n", r"set\.parquet: a Parquet file, and text is needed; write it as JSON lines"),
    ("windows.csv", "question,gold\nwo ist das Caf\u00e9,d1\n".encode("cp1252"),
     r"windows\.csv, line 2: not UTF-8 .*convert the file to UTF-8 \(iconv -f WINDOWS-1252"),
    ("empty.csv", "", r"empty\.csv: empty; a line is .*\(TREC\).*\(BEIR\), or a question with its gold"),
    ("pairs.csv", "query_id,doc_id,relevance\nq0,d0,1\nq1,,1\n", r"pairs\.csv, line 3: no id in 'query_id' or 'doc_"),
]


@pytest.mark.parametrize(("name", "content", "says"), SHAPES, ids=[row[0] for row in SHAPES])
def test_files_that_no_form_matches(goldset: Goldset, tmp_path: Path, name: str, content: str | bytes,
                                    says: str) -> None:
    spoil.write(name, content)(tmp_path)
    done = goldset("audit", tmp_path / name)
    assert done.code == 3
    assert re.search(says, done.complaint), done.complaint
