"""The rule judge: the same value, another value, no value; and that an unknown is never a no."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.config import Budget, load_config
from goldset.errors import ConfigError
from goldset.judges import Desk, Pair, Verdict, VerdictStore, build_judge, judge_candidates
from goldset.judges.meter import Meter
from goldset.judges.rubric import parse_rubric
from goldset.judges.rules import ValueJudge, decide
from goldset.schemas import from_rows
from tests.judges.tables import candidate_row, question_row, span_row
from tests.test_config import GOOD

RUBRIC = parse_rubric("version: 1.0\nStates part of the answer.", "rubric")
PATTERNS = {"error": [r"e-?(\d{4})"], "part": [r"[A-Z]{2}-\d+"],
            "date": [r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)", r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{4})"]}


def judge(**patterns: list[str]) -> ValueJudge:
    return ValueJudge(patterns or PATTERNS, "rules", RUBRIC)


def said(question: str, passage: str, store: VerdictStore, **more: Any) -> Verdict:
    (verdict,) = judge().judge([Pair("q", "s", question, passage, **more)],
                               Desk(store, Meter(Budget.model_validate({"calls": 0}))))
    return verdict


@pytest.fixture
def asked(store: VerdictStore) -> Any:
    return lambda question, passage, **more: said(question, passage, store, **more).relevant


@pytest.mark.parametrize(("question", "passage", "relevant"), [
    ("what does E1042 mean", "E1042: the door is open.", True),
    ("what does e-1042 mean", "Error (E1042) means the door is open.", True),  # the group is the value
    ("what does E‑1042 mean", "Ｅ１０４２ means the door is open.", True),  # a hard hyphen; full width
    ("错误E1042怎么办", "E1042 means the door is open.", True),  # no spaces around it
    ("what does E1042 mean", "E1043: the lamp is broken.", False),
    ("what does E1042 mean", "E10421 and XE1042 are other things.", None),  # parts of longer words are no values
    ("what does E1042 mean", "The door must be shut.", None),  # the passage names none: it may answer for all
    ("the door does not shut", "E1043: the lamp is broken.", None),
    ("E1042 or E1043?", "E1043: the lamp is broken.", True),  # one of them
    ("E1042", "E1043, E1044 and E1042 are door errors.", True),
    ("E1042 on AB-7", "E1042 on AB-9: call us.", None),  # one kind agrees, another differs
    ("E1042 on AB-7", "E1042: the door is open.", True),
    ("E1042 on AB-7", "AB-9 has a lamp.", False),
    ("closed on 2026-12-24?", "On 24.12.2026 we close at noon.", True),  # two ways to write one day
    ("closed on 2026-12-24?", "On 12.24.2026 we close at noon.", False),
])
def test_same_other_and_no_value(asked: Any, question: str, passage: str, relevant: bool | None) -> None:
    assert asked(question, passage) is relevant


def test_need_and_earlier_turns_belong_to_the_question_and_the_heading_to_the_passage(asked: Any) -> None:
    assert asked("and what does it mean?", "E1042: open door.", turns=(("user", "I see E1042"),)) is True
    assert asked("it blinks", "E1042: open door.", need="meaning of error E1042") is True
    assert asked("what does E1042 mean", "The door is open.", heading="Errors > E1042") is True
    # The passage itself speaks of another error, but its neighbour of the right one: people look.
    assert asked("what does E1042 mean", "E1043: the lamp.", before="E1042: the door.") is None
    assert asked("what does E1042 mean", "The door is open.", before="E1042:") is None


def test_groups_that_take_no_part_leave_the_whole_match() -> None:
    assert judge(a=[r"e(\d)?x|f(\d)"]).values("ex", "E1X and f2") == {"a": {"ex", "1", "2"}}


def test_a_verdict_shows_what_it_rests_on(store: VerdictStore) -> None:
    yes = said("what does E1042 mean", "Read this first. E1042: the door is open. Close it.", store)
    assert (yes.status, yes.relevant, yes.quote) == ("ok", True, "E1042: the door is open.")
    assert json.loads(yes.raw or "") == {"question": {"error": ["1042"]}, "passage": {"error": ["1042"]}}
    no, none = said("E1042", "E1043 is it.", store), said("doors", "E1043 is it.", store)
    assert (no.status, no.relevant, no.quote) == ("ok", False, None)
    assert (none.status, none.relevant, none.cached) == ("declined", None, False)
    assert said("E1042", "The door.", store, heading="E1042").quote is None  # only the heading names it
    assert store.count() == 0


values = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.frozensets(st.integers(0, 3).map(str), min_size=1))


@given(values, values, values)
def test_a_rejection_needs_a_differing_value_and_nothing_that_agrees(asked: Any, read: Any, near: Any) -> None:
    found = decide(asked, read, near)
    both = asked.keys() & read.keys()
    agreeing = {kind for kind in both if asked[kind] & read[kind]}
    if found is True:
        assert agreeing == both
        assert both
    elif found is False:
        assert both
        assert not agreeing
        assert not any(asked[kind] & near.get(kind, frozenset()) for kind in asked)
    if not both:
        assert found is None


def test_whatever_can_change_a_verdict_is_in_its_key(pair: Pair) -> None:
    base = judge()
    parts = ("question", "need", "passage", "heading", "before", "after")
    changes: list[dict[str, Any]] = [{name: "E1042"} for name in parts]
    others = [replace(pair, **change) for change in changes]
    keys = [base.fingerprint(one) for one in (pair, *others, replace(pair, turns=()))]
    keys += [judge(error=[r"e(\d{4})"]).fingerprint(pair),
             ValueJudge(PATTERNS, "rules", parse_rubric("version: 1.1\nOther.", "r")).fingerprint(pair)]
    assert len(set(keys)) == len(keys)
    turned = ValueJudge(dict(reversed(PATTERNS.items())), "other family", RUBRIC)
    assert turned.judge_id == base.judge_id
    assert turned.fingerprint(replace(pair, question_id="other")) == base.fingerprint(pair)


def _config(tmp_path: Path, patterns: str) -> Path:
    section = GOOD.replace('kind = "similarity"', f'kind = "rule"\npatterns = {patterns}').replace(
        'model = "package:m"\ncalibration = "calibration.jsonl"\n', "").replace('family = "minilm"\nrubric',
                                                                                  'family = "rules"\nrubric')
    (tmp_path / "rubric.md").write_text("version: 1.0\nStates part of the answer.")
    path = tmp_path / "config.toml"
    path.write_text(section)
    return path


def test_from_configuration_to_verdicts(tmp_path: Path, store: VerdictStore) -> None:
    config = load_config(_config(tmp_path, "{error = 'e-?(\\d{4})', date = ['\\d{4}-\\d\\d-\\d\\d']}"))
    made = build_judge(config=config, cache=tmp_path, store=store)
    spans = [span_row("a", "E1042: the door."), span_row("b", "E1043: the lamp."), span_row("c", "Opening times.")]
    rows = judge_candidates(
        candidates=from_rows("candidates", [candidate_row("q", row["span_id"], "a") for row in spans]),
        questions=from_rows("questions", [question_row("q", "What does E1042 mean?")]), spans=from_rows("spans", spans),
        judge=made, store=store, budget=config.judge.budget, quiet=True).to_pylist()
    assert [(row["status"], row["relevant"]) for row in rows] == [("ok", True), ("ok", False), ("declined", None)]
    card = made.card_info()
    assert (card["kind"], card["family"], card["declared_weak"]) == ("rule", "rules", True)
    assert card["patterns"] == {"date": [r"\d{4}-\d\d-\d\d"], "error": [r"e-?(\d{4})"]}


@pytest.mark.parametrize(("patterns", "says"), [
    ("{}", r"'judge\.patterns': .*at least 1"),
    ("{error = 'e('}", r"'judge\.patterns': 'error': 'e\(' is no regular expression \(.*\); mend it"),
    ("{error = 'e?'}", r"'error': 'e\?' matches the empty text"),
    ("{error = []}", r"'error' has no pattern"),
    ("{error = 7}", r"'judge\.patterns\.error"),
])
def test_a_pattern_that_cannot_be_used_is_named(tmp_path: Path, patterns: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_config(_config(tmp_path, patterns))
    assert "\n" not in str(caught.value)
