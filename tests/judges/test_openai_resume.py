"""The openai judge pays for nothing twice: stored verdicts, what is in their key, budgets, a killed run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goldset.errors import BudgetStop
from goldset.judges import Pair, VerdictStore, judge_candidates
from goldset.judges.chat import ChatJudge
from goldset.judges.rubric import parse_rubric
from goldset.schemas import from_rows
from tests.judges.chatting import RUBRIC, always, limit, make, run
from tests.judges.stub import Answer, Stub, serve
from tests.judges.tables import candidate_row, question_row, span_row, tables


def test_resume_repeats_no_stored_call(store: VerdictStore) -> None:
    contents = iter(["relevant", "Hm.", "Hm.", "not relevant"])
    with serve(lambda number, body: Answer(content=next(contents))) as stub:
        judge = make(stub.url, store, in_flight=1)
        before = run(judge, store, 3)
        after = run(judge, store, 3)
    assert len(stub.requests) == 4  # 1 + 2 (asked again) + 1, and none in the second run
    assert before.drop_columns(["cached"]).equals(after.drop_columns(["cached"]))
    assert set(before.column("cached").to_pylist()) == {False}
    assert set(after.column("cached").to_pylist()) == {True}


def test_failed_pairs_are_asked_again_and_no_others(store: VerdictStore) -> None:
    down = True

    def decide(number: int, body: dict[str, Any]) -> Answer:
        broken = down and "number 1 " in body["messages"][1]["content"]
        return Answer(status=500) if broken else Answer(content="relevant")

    with serve(decide) as stub:
        judge = make(stub.url, store, retries=0)
        first = run(judge, store, 3).to_pylist()
        down = False
        asked = len(stub.requests)
        second = run(judge, store, 3).to_pylist()
    assert [row["status"] for row in first] == ["ok", "failed", "ok"]
    assert [row["status"] for row in second] == ["ok", "ok", "ok"]
    assert len(stub.requests) == asked + 1


def test_equal_texts_are_judged_once(store: VerdictStore) -> None:
    candidates = from_rows("candidates", [candidate_row("q1", "s1", "a"), candidate_row("q1", "s2", "a")])
    questions = from_rows("questions", [question_row("q1", "Which fuse?")])
    spans = from_rows("spans", [span_row("s1", "10 A."), span_row("s2", "10 A.")])
    with serve(always(Answer(content="relevant"))) as stub:
        rows = judge_candidates(candidates=candidates, questions=questions, spans=spans, judge=make(stub.url, store),
                                store=store, budget=limit(), quiet=True).to_pylist()
    assert len(stub.requests) == 1
    assert [(row["span_id"], row["relevant"], row["cached"]) for row in rows] == [("s1", True, False),
                                                                               ("s2", True, True)]


def test_budget_of_calls_stops_before_the_next_call_and_resumes(store: VerdictStore) -> None:
    with serve(always(Answer(content="relevant"))) as stub:
        judge = make(stub.url, store)
        with pytest.raises(BudgetStop, match=r"budget\.calls = 7 .*run again") as caught:
            run(judge, store, 10, limit(calls=7))
        assert caught.value.exit_code == 8
        assert len(stub.requests) == store.count() == 7
        rows = run(judge, store, 10, limit(calls=7)).to_pylist()
    assert len(stub.requests) == 10
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize("in_flight", [1, 8])
def test_budget_of_tokens_and_cost_is_never_overspent(store: VerdictStore, in_flight: int) -> None:
    with serve(always(Answer(content="relevant", delay=0.02))) as stub:
        judge = make(stub.url, store, in_flight=in_flight, price_prompt=1e4, price_completion=1e4, max_tokens=50)
        with pytest.raises(BudgetStop, match=r"budget\.tokens"):
            run(judge, store, 200, limit(tokens=5000))
        used = 100 * stub.answered()  # each answer reports 90 + 10 tokens
        assert 1000 <= used <= 5000
        with pytest.raises(BudgetStop, match=r"budget\.cost"):
            run(judge, store, 200, limit(cost=50))  # 100 tokens at 1e4 a million = 1 a call
        assert 0 < 100 * stub.answered() - used <= 5000
    assert store.count() == stub.answered()


def test_server_without_usage_is_metered_at_the_upper_bound(store: VerdictStore) -> None:
    with serve(always(Answer(content="relevant", usage=None))) as stub:
        judge = make(stub.url, store, in_flight=1, max_tokens=50)
        with pytest.raises(BudgetStop):
            run(judge, store, 60, limit(tokens=10_000))
        assert 1 <= stub.answered() < 60
    assert store.rows()[0].prompt_tokens is None  # unknown is null, not 0
    assert store.rows()[0].cost is None


def test_cache_key_holds_everything_that_can_change_the_answer(store: VerdictStore, pair: Pair) -> None:
    base = make("http://h/v1", store)

    def key(judge: ChatJudge, of: Pair = pair, vote: int = 1, attempt: int = 1) -> str:
        return judge.cache_key(judge.prompt.messages(of, judge.rubric, attempt=attempt), vote=vote, attempt=attempt)

    keys = [key(base), key(base, vote=2), key(base, attempt=2)]
    keys += [key(make("http://h/v1", store, **over)) for over in (
        {"base_url": "http://other/v1"}, {"model": "n"}, {"temperature": 1.0}, {"temperature": None}, {"seed": 1},
        {"max_tokens": 9})]
    keys += [key(base, other) for other in (
        replace(pair, question="other"), replace(pair, passage="other"), replace(pair, need="other"),
        replace(pair, heading="other"), replace(pair, before="other"), replace(pair, after="other"),
        replace(pair, turns=()))]
    for rubric in ("version: 1.0\nOther.", "version: 1.1\nStates part of the answer."):
        keys.append(key(ChatJudge(base.config, parse_rubric(rubric, "r"), base.prompt, store)))
    keys += [key(ChatJudge(base.config, RUBRIC, replace(base.prompt, hash="other"), store))]
    assert len(set(keys)) == len(keys)
    # What cannot change an answer is not in the key.
    same = make("http://h/v1/", store, in_flight=9, retries=1, timeout=3, price_prompt=7.0, votes=2)
    assert key(same, replace(pair, question_id="other", span_id="other")) == keys[0]
    assert same.judge_id == base.judge_id


@pytest.mark.parametrize("module", ["parse", "normalise"])
def test_parser_and_normaliser_versions_are_in_the_key(store: VerdictStore, pair: Pair,
                                                       monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    before = make("http://h/v1", store)
    monkeypatch.setattr(f"goldset.judges.{module}.VERSION", "other/2")
    after = make("http://h/v1", store)
    assert before.fingerprint(pair) != after.fingerprint(pair)
    assert before.judge_id != after.judge_id

CHILD = """
import sys
from pathlib import Path
from tests.judges.chatting import make, run
from goldset.judges import VerdictStore
store = VerdictStore(Path(sys.argv[2]))
run(make(sys.argv[1], store, in_flight=8), store, 100)
"""


def third_is_refused(before_hang: int) -> Callable[[int, dict[str, Any]], Answer]:
    """429 on every third request; after ``before_hang`` answers everything else hangs."""
    answers = 0

    def decide(number: int, body: dict[str, Any]) -> Answer:
        nonlocal answers
        if number % 3 == 0:
            return Answer(status=429, headers={"Retry-After": "0.05"})
        if answers == before_hang:
            return Answer(hang=True)
        answers += 1
        return Answer(content="relevant")

    return decide


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, f"waited 60 s for {what}"
        time.sleep(0.02)


def test_killed_at_pair_57_the_second_start_makes_exactly_43_calls(tmp_path: Path) -> None:
    # Every third request is refused with 429; 57 answers are given and stored, the rest hangs; SIGKILL.
    path = tmp_path / "verdicts.sqlite"
    store = VerdictStore(path)
    current: list[Callable[[int, dict[str, Any]], Answer]] = [third_is_refused(57)]
    with serve(lambda number, body: current[0](number, body)) as stub:
        root = Path(__file__).resolve().parents[2]
        child = subprocess.Popen([sys.executable, "-c", CHILD, stub.url, str(path)],
                                 env={**os.environ, "PYTHONPATH": str(root)}, start_new_session=True)
        try:
            wait_for(lambda: store.count() >= 57, "57 stored verdicts")
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        assert store.count() == stub.answered() == 57
        current[0] = third_is_refused(10_000)
        rows = second_start(stub, store)
        assert stub.answered() == 57 + 43
    assert [row["status"] for row in rows] == ["ok"] * 100
    assert sum(row["cached"] for row in rows) == 57
    stored = [row.span_id for row in store.rows() if row.status == "ok"]
    assert sorted(stored) == [f"s{number:03d}" for number in range(100)]


def second_start(stub: Stub, store: VerdictStore) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run(make(stub.url, store, in_flight=8), store, 100).to_pylist()
    assert 429 in stub.statuses
    return rows


def test_result_depends_neither_on_row_order_nor_on_concurrency(tmp_path: Path) -> None:
    def decide(number: int, body: dict[str, Any]) -> Answer:
        found = re.search(r"Passage number (\d+)", body["messages"][1]["content"])
        assert found
        return Answer(content="relevant" if int(found[1]) % 3 else "not relevant")

    candidates, questions, spans = tables(20)
    made = []
    with serve(decide) as stub:
        for name, in_flight, order in (("a", 1, list(range(20))), ("b", 8, list(range(19, -1, -1)))):
            store = VerdictStore(tmp_path / f"{name}.sqlite")
            made.append(judge_candidates(candidates=candidates.take(order), questions=questions,
                                         spans=spans.take(order), judge=make(stub.url, store, in_flight=in_flight),
                                         store=store, budget=limit(), quiet=True))
    assert made[0].equals(made[1])
