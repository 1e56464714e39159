"""The sample: every event accounted for, draws by permanent numbers, weights as stored, order without effect."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from goldset.config import QuestionsConfig
from goldset.errors import DataError
from goldset.questions import QuestionTables, sample_questions
from goldset.questions.panel import draw
from goldset.schemas import conform, from_rows
from goldset.text import question_id

START = datetime(2025, 3, 3, 12, tzinfo=UTC)


def event(line: int, text: str, time: datetime | None = START, **more: Any) -> dict[str, Any]:
    return {
        "source": "log",
        "line": line,
        "text": text,
        "query": None,
        "context": [],
        "session": None,
        "user": None,
        "agent": None,
        "time": time,
        "scope": "{}",
        "masked": 0,
        **more,
    }


def sample(
    rows: list[dict[str, Any]], seed: int = 1, timezone: str = "UTC", frame: frozenset[str] | None = None, **keys: Any
) -> QuestionTables:
    config = QuestionsConfig.model_validate({"logs": [{"path": "log"}], "window": "all", "rotate": 0, **keys})
    made = sample_questions(events=from_rows("events", rows), config=config, seed=seed, timezone=timezone, frame=frame)
    assert sum(made.drops.column("lines").to_pylist()) == len(rows)
    assert conform(made.questions, "questions").equals(made.questions)
    return made


def drops(made: QuestionTables) -> dict[str, int]:
    return dict(zip(made.drops.column("reason").to_pylist(), made.drops.column("lines").to_pylist(), strict=True))


def by_text(made: QuestionTables) -> dict[str, dict[str, Any]]:
    return {row["text"]: row for row in made.questions.to_pylist()}


def zipf(n: int = 600, texts: int = 120, seed: int = 5) -> list[dict[str, Any]]:
    """A log in which text r is asked about 1/r as often as the first, in sessions of their own."""
    chance = random.Random(seed)
    picks = chance.choices(range(1, texts + 1), weights=[1 / rank for rank in range(1, texts + 1)], k=n)
    return [
        event(i + 1, f"topic number{rank} setup", START + timedelta(minutes=chance.uniform(0, 40_000)), session=f"s{i}")
        for i, rank in enumerate(picks)
    ]


def test_every_event_has_one_reason() -> None:
    rows = [
        event(1, "reset router"),
        event(2, "reset router", None),
        event(3, "reset modem", START - timedelta(days=50)),
        event(4, "  ?! "),
        event(5, "Hello!"),
        event(6, "status page", agent="uptime monitor"),
        event(7, "Wie setze ich meinen Router zurück?"),
        event(8, "and the second one?"),
        event(9, "' OR 1=1--"),
        event(10, "vpn"),
        event(11, "AB-1209"),
    ]
    frame = frozenset(question_id(text) for text in ("reset router", "vpn"))
    made = sample(rows, window="6w", languages=["en"], frame=frame, size=1)
    assert drops(made) == {
        "outside_window": 1,
        "no_time": 1,
        "empty": 1,
        "greeting": 1,
        "machine": 2,
        "language": 1,
        "followup": 1,
        "outside_frame": 1,
        "not_sampled": 1,
        "kept": 1,
    }
    examples = dict(zip(made.drops.column("reason").to_pylist(), made.drops.column("example").to_pylist(), strict=True))
    assert examples["empty"] == "  ?! "
    assert examples["outside_frame"] == "AB-1209"
    assert made.report["machine"] == {"declared": 1, "fuzzing": 1}
    assert made.report["frame"] == {"questions": 2, "found": 2}


def test_lookalikes_of_missing_values_and_keywords_are_kept() -> None:
    texts = ["null", "NA", "None", "nan", "404 error", "asdfgh", "vpn", "AB-1209", "🍟➕🍔"]
    made = sample([event(i + 1, text) for i, text in enumerate(texts)], languages=["en"])
    assert set(by_text(made)) == set(texts)
    assert {row["language"] for row in by_text(made).values()} == {"und"}


def test_one_question_in_several_forms() -> None:
    # Two of four events read "Reset  password"; "reset password?" and "RESET PASSWORD" are the same question_key.
    forms = ["Reset  password", "reset password?", "RESET PASSWORD", "Reset  password"]
    rows = [
        event(i + 1, text, START + timedelta(hours=i), session=f"s{i}", query="q" if i else None)
        for i, text in enumerate(forms)
    ]
    made = sample([*rows, event(9, "reset router", None)])
    row = by_text(made)["Reset  password"]
    assert row["question_id"] == question_id("reset password")
    assert (row["times_asked"], row["draws"], row["traffic_weight"]) == (4, 4, 4.0)
    assert (row["asked_first"], row["asked_last"]) == (START, START + timedelta(hours=3))
    assert (row["session_cluster"], row["query"], row["origin"], row["stratum"]) == ("s0", "q", "log", "all")
    other = by_text(made)["reset router"]
    assert (other["asked_first"], other["session_cluster"], other["query"]) == (None, None, "reset router")
    # All 5 of 5 events are in the sample.
    assert {row["inclusion_prob"] for row in made.questions.to_pylist()} == {1.0}


def test_forms_that_are_equally_frequent_fall_to_the_smallest() -> None:
    assert set(by_text(sample([event(1, "b2b Invoice"), event(2, "B2B invoice")]))) == {"B2B invoice"}


def test_events_are_drawn_with_multiplicity() -> None:
    rows = zipf()
    made = sample(rows, size=180)
    table = made.questions.to_pylist()
    assert sum(row["draws"] for row in table) == 180
    assert all(row["traffic_weight"] == row["draws"] <= row["times_asked"] for row in table)
    assert {row["inclusion_prob"] for row in table} == {180 / 600}
    assert drops(made) == {"not_sampled": 420, "kept": 180}
    # The head (about 600/5.4 = 112 events) is drawn about 33 times; one number a text would take all of it or little.
    head = by_text(made)["topic number1 setup"]
    assert 20 <= head["draws"] <= 50


def test_the_plain_mean_over_draws_estimates_the_traffic_mean() -> None:
    # Value of a text: 1 for odd ranks. Over 60 seeds the mean over draws must agree with the mean over events; an
    # SRS of 180 of 600 has a standard error of sqrt(.25/180 * .7) = .031, the mean of 60 of them .004.
    rows = zipf()
    value = {row["text"]: int(row["text"].split("number")[1].split()[0]) % 2 for row in rows}
    truth = sum(value[row["text"]] for row in rows) / len(rows)
    for rotate in (0, 0.2):
        means = []
        for seed in range(60):
            table = sample(rows, seed=seed, size=180, rotate=rotate).questions.to_pylist()
            means.append(sum(row["draws"] * value[row["text"]] for row in table) / 180)
        assert abs(sum(means) / len(means) - truth) < 0.016
        spread = (sum((mean - truth) ** 2 for mean in means) / len(means)) ** 0.5
        assert 0.02 < spread < 0.045


def test_identical_events_do_not_share_a_number() -> None:
    made = sample([event(i + 1, "vpn") for i in range(100)] + [event(101 + i, "proxy") for i in range(100)], size=60)
    # With one number a text the draw would be 60 : 0. Hypergeometric: mean 30, sd 3.3.
    assert all(15 < row["draws"] < 45 for row in made.questions.to_pylist())


def test_distinct_questions_are_drawn_uniformly() -> None:
    rows = zipf()
    made = sample(rows, unit="distinct", size=40)
    asked = Counter(row["text"] for row in rows)
    assert made.questions.num_rows == 40
    for row in made.questions.to_pylist():
        assert row["draws"] == 1
        assert row["traffic_weight"] == row["times_asked"] == asked[row["text"]]
        assert row["inclusion_prob"] == 40 / len(asked)
    assert drops(made)["kept"] == sum(row["times_asked"] for row in made.questions.to_pylist())


@pytest.mark.parametrize("unit", ["events", "distinct"])
@pytest.mark.parametrize("rotate", [0, 0.3])
def test_row_order_has_no_effect(unit: str, rotate: float) -> None:
    rows = [*zipf(200, 40), *[event(1000 + i, "vpn", None) for i in range(5)]]
    first = sample(rows, unit=unit, rotate=rotate, size=50)
    for seed in (1, 2):
        random.Random(seed).shuffle(rows)
        again = sample(rows, unit=unit, rotate=rotate, size=50)
        assert again.questions.equals(first.questions)
        assert again.drops.equals(first.drops)
        assert again.report == first.report


def test_one_more_question_changes_no_other_number() -> None:
    rows = zipf(200, 40)
    before = by_text(sample(rows, size=50))
    after = by_text(sample([*rows, event(999, "brand new question", session="n")], size=50))
    both = before.keys() & after.keys()
    assert len(both) > 20
    assert all(before[text]["u"] == after[text]["u"] for text in both)
    assert sum(abs(before[text]["draws"] - after.get(text, {"draws": 0})["draws"]) for text in before) <= 1


def test_a_larger_sample_contains_the_smaller_one() -> None:
    rows = zipf()
    small, large = by_text(sample(rows, size=60)), by_text(sample(rows, size=120))
    assert all(row["draws"] <= large[text]["draws"] for text, row in small.items())
    assert by_text(sample(rows, size=60, seed=2)).keys() != small.keys()


def test_a_share_of_the_panel_rotates_with_the_end_of_the_window() -> None:
    units = [(random.Random(i).random(), random.Random(-i - 1).random()) for i in range(500)]
    moved = [(u, random.Random(i + 7777).random()) for i, (u, _) in enumerate(units)]
    first, second = draw(units, size=100, rotate=0.2), draw(moved, size=100, rotate=0.2)
    fixed = set(sorted(range(500), key=lambda i: units[i])[:80])
    assert len(first) == len(set(first)) == len(second) == 100
    assert fixed <= set(first) & set(second)
    # The other twenty come from 420: about one in twenty stays by chance.
    assert len(set(first) & set(second)) < 90
    assert draw(units, size=100, rotate=0) == sorted(sorted(range(500), key=lambda i: units[i])[:100])
    assert draw(units, size=1000, rotate=0.5) == list(range(500))


def test_rotation_in_the_sample_follows_until_and_nothing_else() -> None:
    rows = zipf()
    keys: dict[str, Any] = {"size": 100, "unit": "distinct", "rotate": 0.5}
    # Both ends lie after the last event, so the same 600 events are eligible.
    first = by_text(sample(rows, until=date(2025, 6, 1), **keys))
    again = by_text(sample(rows, until=date(2025, 6, 1), **keys))
    later = by_text(sample(rows, until=date(2025, 6, 8), **keys))
    assert first == again
    assert first.keys() != later.keys()
    fixed = sorted(first.values(), key=lambda row: row["u"])[:1]
    assert fixed[0]["text"] in later


def test_the_window_is_half_open_in_the_project_zone() -> None:
    # Berlin is at +01:00 before 30 March 2025 and +02:00 after: [23 March 00:00, 6 April 00:00) local is
    # [22 March 23:00Z, 5 April 22:00Z).
    rows = [
        event(1, "just before", datetime(2025, 3, 22, 22, 59, 59, tzinfo=UTC)),
        event(2, "first moment", datetime(2025, 3, 22, 23, tzinfo=UTC)),
        event(3, "last moment", datetime(2025, 4, 5, 21, 59, 59, tzinfo=UTC)),
        event(4, "just after", datetime(2025, 4, 5, 22, tzinfo=UTC)),
    ]
    made = sample(rows, timezone="Europe/Berlin", window="2w", until=date(2025, 4, 6))
    assert set(by_text(made)) == {"first moment", "last moment"}
    assert made.report["window"] == {
        "from": "2025-03-22T23:00:00+00:00",
        "until": "2025-04-05T22:00:00+00:00",
        "timezone": "Europe/Berlin",
    }
    # Without until the window ends with the last event's local day, 6 April, and 1w starts on 31 March 00:00 local.
    made = sample(rows, timezone="Europe/Berlin", window="1w")
    assert set(by_text(made)) == {"last moment", "just after"}
    assert made.report["window"]["until"] == "2025-04-06T22:00:00+00:00"


def test_followups_stand_aside_or_keep_their_context() -> None:
    turns = [{"role": "user", "text": "Reset router?"}, {"role": "agent", "text": "Press it."}]
    rows = [
        event(1, "Reset router?", session="a"),
        event(2, "why?", session="a", context=turns),
        event(3, "Router price list", session="a", context=turns),
        event(4, "router price list", session="b"),
    ]
    aside = sample(rows)
    assert drops(aside)["followup"] == 1
    assert by_text(aside)["Router price list"]["context"] == []
    assert by_text(aside)["Router price list"]["times_asked"] == 2
    assert by_text(aside)["Router price list"]["question_id"] == question_id("router price list")
    kept = sample(rows, followups="context")
    assert "followup" not in drops(kept)
    assert by_text(kept)["why?"]["context"] == turns
    assert by_text(kept)["why?"]["question_id"] == question_id("why?", [(t["role"], t["text"]) for t in turns])
    assert by_text(kept)["router price list"]["context"] == []
    assert by_text(kept)["Router price list"]["times_asked"] == 1


def test_near_duplicates_stay_questions_and_share_a_cluster() -> None:
    texts = ["how do i reset my password", "How do I reset password?", "reset router", "vpn"]
    made = sample([event(i + 1, text) for i, text in enumerate(texts)])
    rows = by_text(made)
    assert len(rows) == 4
    pair = [rows[text] for text in texts[:2]]
    assert {row["cluster_id"] for row in pair} == {min(row["question_id"] for row in pair)}
    assert rows["vpn"]["cluster_id"] == rows["vpn"]["question_id"]
    assert made.report["clusters"] == 3
    assert sample([event(i + 1, text) for i, text in enumerate(texts)], near_duplicate=1).report["clusters"] == 4


def test_monitors_do_not_fill_the_sample() -> None:
    chance = random.Random(3)
    people = [
        event(i + 1, f"question about topic{i}", START + timedelta(seconds=chance.uniform(0, 600_000)), session=f"s{i}")
        for i in range(300)
    ]
    probe = [event(1000 + i, "atlanta", START + timedelta(seconds=60 * i), agent="probe/2") for i in range(10_000)]
    made = sample([*people, *probe], size=180)
    assert drops(made) == {"machine": 10_000, "not_sampled": 120, "kept": 180}
    assert made.report["machine"] == {"fixed_interval": 10_000}
    assert made.report["agent_known"] is True
    assert made.questions.num_rows == 180
    assert sample(people, size=10).report["agent_known"] is False


def test_nothing_usable_says_why() -> None:
    rows = [event(1, "hi"), event(2, "hello"), event(3, " ")]
    with pytest.raises(DataError, match=r"no usable question among 3 log events \(greeting 2, empty 1; window"):
        sample(rows)
    with pytest.raises(DataError, match=r"outside_frame 1.*frame of 1 questions"):
        sample([event(1, "vpn")], frame=frozenset({"q0"}))
    with pytest.raises(DataError, match=r"no_time 1.*map its time column"):
        sample([event(1, "vpn", None)], window="6w")
    with pytest.raises(DataError, match="hold no question at all; look into the quarantine file"):
        sample([])


def test_scope_and_language_are_those_of_most_events() -> None:
    rows = [event(i + 1, "How do I reset my router?", scope=scope) for i, scope in enumerate(['{"a":1}', "{}", "{}"])]
    row = by_text(sample(rows))["How do I reset my router?"]
    assert (row["scope"], row["language"]) == ("{}", "en")


def test_the_result_is_sorted_and_typed() -> None:
    made = sample(zipf(100, 30), size=20)
    ids = made.questions.column("question_id")
    assert ids.to_pylist() == sorted(ids.to_pylist())
    assert pc.min(made.questions.column("u")).as_py() >= 0
    assert isinstance(made.drops, pa.Table)
