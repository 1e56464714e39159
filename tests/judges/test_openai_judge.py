"""The openai judge against a stub server: statuses, votes, retries, keys, servers that are down."""

from __future__ import annotations

import pytest

from goldset.errors import ConfigError, ExternalError
from goldset.judges import VerdictStore
from goldset.judges.call import backoff, retry_after
from tests.judges.chatting import always, make, run
from tests.judges.stub import Answer, serve


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
