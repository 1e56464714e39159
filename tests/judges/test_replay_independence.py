from __future__ import annotations

from pathlib import Path

import pytest

from goldset.config import Budget
from goldset.errors import DataError
from goldset.judges import VerdictStore, independence, judge_candidates
from goldset.judges.replay import ReplayJudge
from goldset.judges.rubric import parse_rubric
from goldset.schemas import from_rows
from tests.judges.tables import tables

RUBRIC = parse_rubric("version: 1.0\nStates part of the answer.", "rubric")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_recorded_verdicts_come_back_and_the_rest_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl",
                 '{"question_id": "q1", "span_id": "s000", "relevant": true, "score": 1, "quote": "x"}',
                 '{"question_id": "q1", "span_id": "s001", "relevant": false}',
                 '{"question_id": "q1", "span_id": "s002", "relevant": null}')
    candidates, questions, spans = tables(4)
    store = VerdictStore(tmp_path / "v.sqlite")
    judge = ReplayJudge(path, "people", RUBRIC)
    rows = judge_candidates(candidates=candidates, questions=questions, spans=spans, judge=judge, store=store,
                            budget=Budget.model_validate({"calls": 0}), quiet=True).to_pylist()
    assert [(row["status"], row["relevant"], row["score"], row["quote"]) for row in rows] == [
        ("ok", True, 1.0, "x"), ("ok", False, None, None), ("empty", None, None, None), ("empty", None, None, None)]
    assert judge.card_info()["recorded"] == 3


def test_judge_id_follows_the_content_not_the_line_order(tmp_path: Path) -> None:
    one, two = ('{"question_id": "q1", "span_id": "s1", "relevant": true}',
                '{"question_id": "q1", "span_id": "s2", "relevant": false}')
    first = ReplayJudge(write(tmp_path / "a.jsonl", one, two), "f", RUBRIC)
    assert ReplayJudge(write(tmp_path / "b.jsonl", two, one), "f", RUBRIC).judge_id == first.judge_id
    assert ReplayJudge(write(tmp_path / "c.jsonl", one), "f", RUBRIC).judge_id != first.judge_id


@pytest.mark.parametrize(("line", "says"), [
    ('{"question_id": "q1", "span_id": "s1"}', "relevant is None"),
    ('{"question_id": "q1", "span_id": "s1", "relevant": 0}', "relevant is 0"),
    ('{"question_id": null, "span_id": "s1", "relevant": true}', "must be strings"),
    ('{"question_id": "q1", "span_id": "s1", "relevant": true, "grade": 2}', "unknown key 'grade'"),
    ('{"question_id": "q1", "span_id": "s1", "relevant": true, "score": "high"}', "score must be a number"),
    ('{"question_id": "q0", "span_id": "s0", "relevant": false}', "a second, different verdict"),
])
def test_bad_lines_are_named(tmp_path: Path, line: str, says: str) -> None:
    path = write(tmp_path / "r.jsonl", '{"question_id": "q0", "span_id": "s0", "relevant": true}', line)
    with pytest.raises(DataError, match=says) as caught:
        ReplayJudge(path, "f", RUBRIC)
    assert f"{path}, line 2" in str(caught.value)


@pytest.mark.parametrize(("column", "says"), [("question_id", "question 'other' is not in the table of questions"),
                                              ("span_id", "span 'other' is not in the table of spans")])
def test_a_candidate_of_another_rebuild_is_refused(tmp_path: Path, column: str, says: str) -> None:
    candidates, questions, spans = tables(2)
    rows = candidates.to_pylist()
    rows[1][column] = "other"
    judge = ReplayJudge(write(tmp_path / "r.jsonl"), "f", RUBRIC)
    with pytest.raises(DataError, match=says):
        judge_candidates(candidates=from_rows("candidates", rows), questions=questions, spans=spans, judge=judge,
                         store=VerdictStore(tmp_path / "v.sqlite"), budget=Budget.model_validate({}), quiet=True)


def test_no_candidates_give_an_empty_table(tmp_path: Path) -> None:
    candidates, questions, spans = tables(1)
    judge = ReplayJudge(write(tmp_path / "r.jsonl"), "f", RUBRIC)
    made = judge_candidates(candidates=candidates.slice(0, 0), questions=questions, spans=spans, judge=judge,
                            store=VerdictStore(tmp_path / "v.sqlite"), budget=Budget.model_validate({}), quiet=True)
    assert len(made) == 0


def test_independence_names_every_system_that_shares_a_family() -> None:
    systems = {"dense": "minilm", "hybrid": "lexical+minilm", "bm25": "lexical", "production": "MiniLM "}
    assert independence("minilm", systems) == [
        "judge not independent of dense: both use minilm",
        "judge not independent of hybrid: both use minilm",
        "judge not independent of production: both use minilm",
    ]
    assert independence("gpt", systems) == []
    assert independence("gpt+lexical", systems) == [
        "judge not independent of bm25: both use lexical",
        "judge not independent of hybrid: both use lexical",
    ]
    assert independence("mini", systems) == []  # names are compared whole
