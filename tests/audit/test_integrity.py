"""The pre-check: what does not resolve, what stands twice, what the reader saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import Aged, Context, audit_context, audit_set, overall
from goldset.audit.integrity import Integrity
from goldset.errors import DataError
from goldset.formats.sets import LabelledSet, Note, load_set

MakeSet = Callable[..., LabelledSet]
MakeRun = Callable[..., pa.Table]


def findings(labelled: LabelledSet, runs: dict[str, pa.Table] | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    table = audit_set(labelled, runs or {}, checks=[Integrity()])
    return {(row["subject"], row["reason"]): row for row in table.to_pylist()}


def test_a_sound_set_is_clean(make_set: MakeSet) -> None:
    rows = findings(make_set({"q1": ["d1"], "q2": ["d2"]}, passages={"d1": "a", "d2": "b"},
                             questions={"q1": "x", "q2": "y"}))
    assert list(rows) == [("all", "clean")]
    assert rows["all", "clean"]["n"] == 2


def test_c06_gold_outside_the_corpus_puts_a_ceiling_on_recall(make_set: MakeSet) -> None:
    # q1 keeps one of two gold, q2 both of two: a perfect system reaches (1/2 + 1)/2 = .75. 1 of 4 is above 5 %.
    rows = findings(make_set({"q1": ["d1", "gone"], "q2": ["d1", "d2"]}, passages={"d1": "a", "d2": "b"}))
    row = rows["all", "stale"]
    assert (row["verdict"], row["measured"]) == ("fail", 0.25)
    assert row["message"].startswith("1 of 4 gold passages are not in the corpus as they were labelled (missing 1, "
                                     "changed 0; first 'gone')")
    assert "cannot exceed 0.750" in row["message"]


def test_a_little_stale_gold_warns(make_set: MakeSet) -> None:
    gold = {f"q{i}": [f"d{i}"] for i in range(40)} | {"q40": ["gone"]}
    rows = findings(make_set(gold, passages={f"d{i}": f"text {i}" for i in range(40)}))
    assert rows["all", "unresolved"]["verdict"] == "warn"


def test_without_gold_nothing_else_is_checked(make_set: MakeSet) -> None:
    table = audit_set(make_set({}, not_relevant=[("q1", "d1")]), {})
    assert [row["reason"] for row in table.to_pylist()] == ["no_gold"]
    assert overall(table) == "fail"


def test_c06_the_first_offender_has_file_and_line(tmp_path: Path) -> None:
    corpus, qrels = tmp_path / "corpus.jsonl", tmp_path / "qrels.txt"
    corpus.write_text('{"_id": "d1", "text": "a b"}\n')
    qrels.write_text("q1 0 d1 1\n\nq2 0 gone 1\n")
    row = findings(load_set(qrels, corpus=corpus))["all", "stale"]
    assert f"(missing 1, changed 0; first 'gone', {qrels}, line 3)" in row["message"]


def test_changed_text_is_stale_and_puts_no_ceiling(make_set: MakeSet) -> None:
    gold = {f"q{i}": [f"d{i}"] for i in range(40)}
    labelled = make_set(gold, passages={f"d{i}": f"text {i}" for i in range(40)}, changed=(("q3", "d3"),))
    row = findings(labelled)["all", "unresolved"]  # 1 of 40 is 2.5 %, below 5 %
    assert (row["verdict"], row["measured"]) == ("warn", 0.025)
    assert "missing 0, changed 1; first 'd3'" in row["message"]
    assert "cannot exceed" not in row["message"]


def test_a_perfect_system_has_a_ceiling_at_k(make_set: MakeSet) -> None:
    # q1 has three gold, at most two of them fit into k = 2; q2 has one: (2/3 + 1)/2 = .833.
    table = audit_set(make_set({"q1": ["d1", "d2", "d3"], "q2": ["d1"]}), {}, serving_k=2, eval_k=3,
                      checks=[Integrity()])
    rows = {row["reason"]: row for row in table.to_pylist()}
    assert rows["ceiling@2"]["measured"] == pytest.approx(5 / 6)
    assert "ceiling@3" not in rows  # everything fits


def test_gold_on_overlapping_chunks_counts_twice_and_templates_do_not(make_set: MakeSet) -> None:
    shared, same = "s" * 60 + "h" * 60, "The same notice stands at the head of every page of this handbook. " * 2
    passages = {"a": "one " * 40 + shared, "b": shared + " two" * 40, "c": "prefix " + "one " * 40 + shared,
                "t1": same + "first", "t2": same + "second", "short": "s" * 60}
    rows = findings(make_set({"q1": ["a", "b"], "q2": ["a", "c"], "q3": ["t1", "t2"], "q4": ["a", "short"]},
                             passages=passages))
    row = rows["all", "overlap"]
    assert (row["verdict"], row["measured"]) == ("warn", 2)
    assert "first: question 'q1', 'b' and 'a'" in row["message"]


def test_oversized_gold_names_the_longest(make_set: MakeSet) -> None:
    rows = findings(make_set({"q1": ["d1"], "q2": ["d2"]}, passages={"d1": "w " * 1000, "d2": "w " * 1001}))
    assert rows["all", "oversized_gold"]["measured"] == 1
    assert "longest 'd2', 1001 words" in rows["all", "oversized_gold"]["message"]


def test_grades_that_no_scale_uses_are_noted_with_their_line(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q1 0 a 1\nq1 0 b -7\nq1 0 c 100\n")
    row = findings(load_set(qrels, relevant_from=1))[str(qrels), "note:odd_grade"]
    assert (row["verdict"], row["measured"]) == ("warn", 2)
    assert row["message"].startswith(f"{qrels}, line 2: grades outside -2 to 10")


def test_twins_duplicates_and_empty_gold_are_counted(make_set: MakeSet) -> None:
    rows = findings(make_set({"q1": ["d1", "d2"], "q2": ["d3"], "q3": ["d1"]},
                             passages={"d1": "same  text", "d2": "same text", "d3": " "},
                             questions={"q1": "What now?", "q2": "what now", "q3": "else"}))
    assert rows["all", "twins"]["measured"] == 1
    assert rows["all", "duplicate_questions"]["measured"] == 2
    assert "first: q1, q2" in rows["all", "duplicate_questions"]["message"]
    assert rows["all", "empty_gold"]["measured"] == 1
    assert ("all", "clean") not in rows


def test_c07_grades_minus_one_are_counted_and_are_no_labels(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q1 0 a -2\nq1 0 b -1\nq1 0 c 0\nq1 0 d 1\nq1 0 e 2\nq1 0 f 3\n")
    rows = findings(load_set(qrels, relevant_from=2))
    assert rows["all", "unjudged"]["measured"] == 1
    assert rows["all", "unjudged"]["verdict"] == "pass"
    assert rows[str(qrels), "read:negative_grade"]["verdict"] == "pass"
    assert rows["all", "clean"]["n"] == 2  # e and f
    with pytest.raises(DataError, match="--relevant-from"):
        load_set(qrels)


def test_notes_of_the_reader_become_findings(make_set: MakeSet) -> None:
    notes = (Note("bom", 1, "qrels.txt, line 1"), Note("repeated_judgment", 3, "qrels.txt, line 7", "q1 d1"),
             Note("something_new", 2, "qrels.txt, line 9"))
    rows = findings(make_set({"q1": ["d1"]}, notes=notes))
    assert rows["qrels.txt", "read:bom"]["verdict"] == "pass"
    assert rows["qrels.txt", "note:repeated_judgment"]["verdict"] == "warn"
    assert rows["qrels.txt", "note:repeated_judgment"]["message"] == (
        "qrels.txt, line 7: judgments stand in the file more than once and count once (e.g. 'q1 d1'); 3 in all.")
    assert "something new" in rows["qrels.txt", "note:something_new"]["message"]


def test_runs_against_the_set(make_set: MakeSet, make_run: MakeRun) -> None:
    labelled = make_set({"q1": ["d1"], "q2": ["d2"], "q3": ["d1"]}, passages={"d1": "a", "d2": "b"})
    rows = findings(labelled, {"a": make_run("a", {"q1": ["d1", "zz"], "q2": ["d2"], "q9": ["d1"]})})
    assert rows["a", "missing_questions"]["measured"] == 1
    assert "first 'q3'" in rows["a", "missing_questions"]["message"]
    assert (rows["a", "extra_questions"]["verdict"], rows["a", "extra_questions"]["measured"]) == ("pass", 1)
    assert "1 of 3 returned ids" in rows["a", "unknown_ids"]["message"]


def test_c04_a_run_of_another_id_scheme_is_foreign_never_recall_zero(make_set: MakeSet, make_run: MakeRun) -> None:
    rows = findings(make_set({"q1": ["007"]}), {"a": make_run("a", {"q1": ["7", "12"]})})
    row = rows["a", "foreign_run"]
    assert (row["verdict"], row["measured"]) == ("fail", 0)
    assert "0 of 2 returned ids" in row["message"]
    with pytest.raises(DataError, match="0 of 2 chunk ids"):
        audit_set(make_set({"q1": ["007"]}, passages={"007": "a"}), {"a": make_run("a", {"q1": ["7", "12"]})})


def test_gold_against_todays_documents_has_a_verdict_of_its_own(make_set: MakeSet) -> None:
    gold = {f"q{i:02}": [f"d{i}"] for i in range(40)}
    labelled = make_set(gold, passages={f"d{i}": f"text {i}" for i in range(40)})

    def told(**lost: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        context = Context(labelled, aged=Aged("new.jsonl", **lost))
        rows: list[dict[str, Any]] = audit_context(context, [Integrity()]).to_pylist()
        return next(row for row in rows if row["subject"] == "staleness")

    assert (told()["verdict"], told()["reason"]) == ("pass", "current")
    moved = told(moved=(("q05", "d5"),))
    assert (moved["verdict"], moved["reason"], moved["measured"]) == ("warn", "moved", 0)
    # Two of forty are 5 %: not more than the limit; three are.
    aged = told(changed=(("q01", "d1"),), missing=(("q02", "d2"),))
    assert (aged["verdict"], aged["reason"], aged["measured"]) == ("warn", "aged", 0.05)
    assert ("38 of 40 gold passages stand in new.jsonl as they were labelled (0 moved, 1 changed, 1 missing; first "
            "missing: question 'q02', passage 'd2')") in aged["message"]
    assert told(missing=tuple((f"q0{i}", f"d{i}") for i in range(3)))["verdict"] == "fail"


@pytest.mark.parametrize(("name", "text"), [
    ("test.tsv", "q1\td1\t1\nq2\td2\t1\nq1\td1\t0\nq3\td3\t1\n"),
    ("set.csv", "question,gold_id,grade\nwhat is one,d1,1\nwhat is two,d2,1\nwhat is one,d1,0\nwhat is three,d3,1\n"),
])
def test_a_pair_with_two_grades_is_told_and_counts_as_not_judged(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    labelled = load_set(path, contradictions=True)
    rows = {row["reason"]: row for row in audit_set(labelled, {}, checks=[Integrity()]).to_pylist()}
    row = rows["note:two_grades"]
    line = 3 + text.startswith("question")
    assert (row["verdict"], row["n"]) == ("warn", 1)
    assert f"{path}, line {line}: pairs stand with two different grades; they count as not judged" in row["message"]
    assert sorted(labelled.gold.column("span_id").to_pylist()) == ["d2", "d3"]
    assert labelled.judgments.column("relevant").null_count == 1
    with pytest.raises(DataError, match=f"line {line}: grade 0"):  # where a number is wanted, nothing is guessed
        load_set(path)
