"""The openai judge against a stub server: statuses, retries, budget, keys, resume."""

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

import pyarrow as pa
import pytest

from goldset.config import Budget, OpenAIJudge
from goldset.errors import BudgetStop, ConfigError, ExternalError
from goldset.judges import Pair, VerdictStore, judge_candidates
from goldset.judges.call import backoff, retry_after
from goldset.judges.chat import ChatJudge
from goldset.judges.prompt import load_prompt
from goldset.judges.rubric import parse_rubric
from goldset.schemas import from_rows
from tests.judges.stub import Answer, Stub, serve
from tests.judges.tables import candidate_row, question_row, span_row, tables

RUBRIC = parse_rubric("version: 1.0\nStates part of the answer.", "rubric")


def make(url: str, store: VerdictStore, **over: Any) -> ChatJudge:
    section = OpenAIJudge.model_validate({
        "kind": "openai", "family": "stub", "rubric": "r.md", "base_url": url, "model": "m", "in_flight": 4,
        "retries": 5, "timeout": 20, **over})
    return ChatJudge(section, RUBRIC, load_prompt(), store)


def run(judge: ChatJudge, store: VerdictStore, pairs: int = 3, budget: Budget | None = None) -> pa.Table:
    candidates, questions, spans = tables(pairs)
    return judge_candidates(candidates=candidates, questions=questions, spans=spans, judge=judge, store=store,
                            budget=budget or limit(), quiet=True)


def limit(**most: float) -> Budget:
    return Budget.model_validate(most)


@pytest.fixture
def store(tmp_path: Path) -> VerdictStore:
    return VerdictStore(tmp_path / "verdicts.sqlite")


def always(answer: Answer) -> Callable[[int, dict[str, Any]], Answer]:
    return lambda number, body: answer


def test_verdicts_tokens_cost_and_model(store: VerdictStore) -> None:
    with serve(always(Answer(content='{"relevant": true, "quote": "number 0 about fuses"}'))) as stub:
        judge = make(stub.url, store, price_prompt=2.0, price_completion=30.0, seed=5)
        rows = run(judge, store, 2).to_pylist()
    assert [(row["status"], row["relevant"], row["vote"], row["attempt"]) for row in rows] == [("ok", True, 1, 1)] * 2
    # Only the first passage holds the quoted words: a quote made up is not passed on as one.
    assert [row["quote"] for row in rows] == ["number 0 about fuses", None]
    # 90 tokens at 2 a million and 10 at 30 a million: (180 + 300) / 1e6
    assert [row["cost"] for row in rows] == pytest.approx([0.00048] * 2)
    assert rows[0]["model_asked"] == "m"
    assert rows[0]["model_answered"] == "m-2026"
    assert judge.card_info()["models_answered"] == ["m-2026"]
    sent = stub.requests[0]
    assert (sent["model"], sent["temperature"], sent["seed"], sent["max_tokens"]) == ("m", 0.0, 5, 200)
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]


def test_temperature_null_is_not_sent(store: VerdictStore) -> None:
    with serve(always(Answer())) as stub:
        run(make(stub.url, store, temperature=None), store, 1)
    assert "temperature" not in stub.requests[0]
    assert "seed" not in stub.requests[0]


@pytest.mark.parametrize(("answer", "status", "calls"), [
    (Answer(content="Maybe."), "unparsed", 2),  # asked once more, strictly
    (Answer(content=""), "empty", 1),
    (Answer(content=None), "empty", 1),
    (Answer(content='{"relevant": true}', finish="length"), "truncated", 1),
    (Answer(content=None, refusal="I cannot"), "declined", 1),
    (Answer(content=None, finish="content_filter"), "declined", 1),
    (Answer(status=400, error={"message": "filtered", "code": "content_filter"}), "declined", 1),
    (Answer(status=400, error={"message": "too long", "code": "context_length_exceeded"}), "truncated", 1),
    (Answer(status=400, error={"message": "bad", "code": None}), "failed", 1),
    (Answer(raw="<html>Welcome</html>"), "failed", 1),
    (Answer(raw='{"choices": [', headers={"Content-Type": "application/json"}), "failed", 1),
    (Answer(raw='{"choices": []}', headers={"Content-Type": "application/json"}), "failed", 1),
    (Answer(status=500), "failed", 2),  # retries = 1
])
def test_what_is_not_a_verdict_has_a_status_and_no_label(store: VerdictStore, answer: Answer, status: str,
                                                         calls: int) -> None:
    with serve(always(answer)) as stub:
        rows = run(make(stub.url, store, retries=1), store, 1).to_pylist()
    assert len(stub.requests) == calls
    assert [row["status"] for row in rows][-1] == status
    assert all(row["relevant"] is None for row in rows)
    assert rows[-1]["raw"] is not None


def test_unparsed_is_asked_again_with_the_stricter_prompt(store: VerdictStore) -> None:
    with serve(lambda number, body: Answer(content="Hm, partly." if number == 1 else "not relevant")) as stub:
        rows = run(make(stub.url, store), store, 1).to_pylist()
    assert [(row["attempt"], row["status"], row["relevant"], row["raw"]) for row in rows] == [
        (1, "unparsed", None, "Hm, partly."), (2, "ok", False, "not relevant")]
    first, second = (request["messages"][1]["content"] for request in stub.requests)
    assert "exactly one line" in second
    assert "exactly one line" not in first


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


def test_votes_are_separate_calls_with_separate_seeds(store: VerdictStore) -> None:
    with serve(lambda number, body: Answer(content="relevant" if body["seed"] % 2 else "not relevant")) as stub:
        rows = run(make(stub.url, store, votes=3, seed=7), store, 1).to_pylist()
    assert [(row["vote"], row["relevant"]) for row in rows] == [(1, True), (2, False), (3, True)]
    assert sorted(request["seed"] for request in stub.requests) == [7, 8, 9]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured(store: VerdictStore, status: int) -> None:
    with serve(lambda number, body: Answer(status=status, headers={"Retry-After": "1"}) if number == 1
               else Answer(content="relevant")) as stub:
        rows = run(make(stub.url, store, in_flight=1), store, 1).to_pylist()
    assert [row["status"] for row in rows] == ["ok"]
    assert stub.times[1] - stub.times[0] >= 1.0


def test_a_rate_limit_holds_all_workers(store: VerdictStore) -> None:
    with serve(lambda number, body: Answer(status=429, headers={"Retry-After": "1"}) if number == 1
               else Answer(content="relevant", delay=0.3)) as stub:
        run(make(stub.url, store, in_flight=4), store, 12)
    # Four requests were on their way; the other nine (12 pairs, one asked twice) waited for the second to pass.
    assert len(stub.times) == 13
    assert all(later - stub.times[0] >= 1.0 for later in stub.times[4:])


def test_time_out_is_retried(store: VerdictStore) -> None:
    with serve(lambda number, body: Answer(delay=5.0) if number == 1 else Answer(content="relevant")) as stub:
        rows = run(make(stub.url, store, timeout=0.3), store, 1).to_pylist()
    assert [row["status"] for row in rows] == ["ok"]
    assert len(stub.requests) == 2


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_key_stops_at_once_and_names_the_variable(store: VerdictStore, monkeypatch: pytest.MonkeyPatch,
                                                        status: int) -> None:
    monkeypatch.setenv("STUB_JUDGE_KEY", "wrong")
    with serve(always(Answer(status=status))) as stub, pytest.raises(ExternalError, match="STUB_JUDGE_KEY") as caught:
        run(make(stub.url, store, in_flight=1, api_key_env="STUB_JUDGE_KEY"), store, 20)
    assert caught.value.exit_code == 9
    assert len(stub.requests) == 1
    assert stub.requests[0]["_authorization"] == "Bearer wrong"
    assert store.count() == 0


def test_unset_key_is_told_before_any_call(store: VerdictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_JUDGE_KEY", raising=False)
    with serve(always(Answer())) as stub, pytest.raises(ConfigError, match="STUB_JUDGE_KEY is not set"):
        run(make(stub.url, store, api_key_env="STUB_JUDGE_KEY"), store)
    assert stub.requests == []


def test_no_other_key_is_sent(store: VerdictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "somebody's")
    with serve(always(Answer())) as stub:
        run(make(stub.url, store), store, 1)
    assert stub.requests[0]["_authorization"] == "Bearer none"


@pytest.mark.parametrize(("answer", "says"), [
    (Answer(status=404, error={"message": "no model m", "code": "model_not_found"}), "base_url and model"),
    (Answer(status=429, error={"message": "quota", "code": "insufficient_quota"}), "no credit"),
])
def test_errors_that_no_retry_mends_stop_at_once(store: VerdictStore, answer: Answer, says: str) -> None:
    with serve(always(answer)) as stub, pytest.raises(ExternalError, match=says):
        run(make(stub.url, store, in_flight=1), store, 20)
    assert len(stub.requests) == 1


def test_dead_server_ends_the_run_after_ten_pairs(store: VerdictStore) -> None:
    with serve(always(Answer(status=503))) as stub, pytest.raises(ExternalError, match="10 pairs in a row"):
        run(make(stub.url, store, in_flight=1, retries=0), store, 40)
    assert len(stub.requests) == 10


def test_server_that_refuses_every_request_ends_the_run(store: VerdictStore) -> None:
    refusal = Answer(status=400, error={"message": "max_tokens is not supported", "code": None})
    with serve(always(refusal)) as stub, pytest.raises(ExternalError, match="max_tokens is not supported"):
        run(make(stub.url, store, in_flight=1), store, 40)
    assert len(stub.requests) == 10


def test_nobody_listening_is_an_external_error(store: VerdictStore) -> None:
    with pytest.raises(ExternalError, match="no connection"):
        run(make("http://127.0.0.1:9/v1", store, retries=0), store, 12)


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


def test_back_off_doubles_to_a_cap_with_jitter() -> None:
    # 0.5 * 2^n up to 30, times one half to one
    assert [backoff(n, 1.0) for n in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [backoff(n, 0.0) for n in (0, 7)] == [0.25, 15]


def test_retry_after_forms() -> None:
    assert retry_after({"retry-after": "2"}) == 2.0
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0.0
    assert retry_after({}) is None
    assert retry_after({"retry-after": "soon"}) is None


CHILD = """
import sys
from pathlib import Path
from tests.judges.test_openai_judge import make, run
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
    # C42: every third request is refused with 429; 57 answers are given and stored, the rest hangs; SIGKILL.
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
