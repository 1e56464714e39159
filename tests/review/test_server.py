"""The page's server: assignments, evidence, idempotence, undo, search, later waves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from goldset.review import Passages, resolve
from goldset.schemas import from_rows
from tests.review.house import CUT, FIRST, LAST, TEXT, House, body


def test_an_answer_is_stored_before_the_next_item_comes(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    first = client.get("/api/next").json()
    assert client.get("/api/next").json() == first  # a reload shows the same item
    reply = client.post("/api/answer", json=body(first["item"], "no")).json()
    stored = h.labels()
    assert [row["label_id"] for row in stored] == [reply["stored"]]
    assert (stored[0]["relevant"], stored[0]["assessor"], stored[0]["seconds"], stored[0]["origin"]) == (
        False, "ada", 4.5, "page")
    assert reply["item"]["token"] != first["item"]["token"]
    assert reply["progress"] == {"answered": 1, "total": 4}
    assert client.get("/api/next").json()["item"] == reply["item"]


def test_selected_sentences_become_evidence_in_code_points(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    item = client.get("/api/next").json()["item"]
    assert item["passage"]["sentences"] == [[0, 21], [22, 41]]  # UTF-16: the character beyond U+FFFF counts twice
    client.post("/api/answer", json=body(item, "yes", sentences=[1]))
    row = h.labels()[0]
    assert (row["evidence"], row["evidence_source"]) == ([{"start": 22, "end": 40}], "selected")
    assert TEXT[22:40] == "\U0001F4A9 We open at nine."


def test_yes_without_a_selection_is_the_whole_passage(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    client.post("/api/answer", json=body(client.get("/api/next").json()["item"], "yes"))
    row = h.labels()[0]
    assert (row["evidence"], row["evidence_source"]) == ([{"start": 0, "end": 40}], "whole_span")


@pytest.mark.parametrize(("change", "message"), [
    (lambda sent: sent["sentences"][0].update(text="other words"), "not what is stored at its place"),
    (lambda sent: sent["sentences"][0].update(start=23), "not what is stored at its place"),
    (lambda sent: sent["sentences"][0].update(end=999), "not what is stored at its place"),
    (lambda sent: sent.update(edition="old"), "the passage has changed"),
    (lambda sent: sent.update(answer="no"), "sentences are selected, which means yes"),
    (lambda sent: sent.update(item="nothing"), "not in the queue any more"),
])
def test_what_does_not_match_the_stored_text_is_refused(house: Callable[..., House], change: Any, message: str) -> None:
    h = house()
    client = h.client("ada")
    item = client.get("/api/next").json()["item"]
    sent = body(item, "yes", sentences=[1])
    change(sent)
    reply = client.post("/api/answer", json=sent)
    assert reply.status_code == 409
    assert message in reply.json()["error"]
    assert h.labels() == []


def test_a_resend_is_stored_once_even_by_a_restarted_server(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    sent = body(client.get("/api/next").json()["item"], "yes")
    first = client.post("/api/answer", json=sent).json()
    assert client.post("/api/answer", json=sent).json()["stored"] == first["stored"]
    h.restart()
    assert h.client("ada").post("/api/answer", json=sent).json() == first
    assert len(h.labels()) == 1


def test_a_server_killed_before_the_answer_takes_it_afterwards(house: Callable[..., House]) -> None:
    h = house()
    item = h.client("ada").get("/api/next").json()["item"]
    h.restart()
    assert h.client("ada").post("/api/answer", json=body(item, "no")).status_code == 200
    assert len(h.labels()) == 1


def test_a_second_tab_is_told(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    item = client.get("/api/next").json()["item"]
    client.post("/api/answer", json=body(item, "no"))
    reply = client.post("/api/answer", json=body(item, "yes", key="key-00000002"))
    assert reply.status_code == 409
    assert "reload the page" in reply.json()["error"]
    assert len(h.labels()) == 1


def test_two_servers_on_one_database_follow_each_other(house: Callable[..., House]) -> None:
    h = house()
    one = h.client("ada")
    item = one.get("/api/next").json()["item"]
    h.restart()
    two = h.client("ben")
    other = two.get("/api/next").json()["item"]
    assert other["question"]["text"] != item["question"]["text"]  # one assessor a question
    one.post("/api/answer", json=body(item, "no"))
    assert two.get("/api/next").json()["progress"]["answered"] == 1


def test_undo_appends_a_retraction_and_brings_the_item_back(house: Callable[..., House]) -> None:
    h = house()
    client = h.client("ada")
    item = client.get("/api/next").json()["item"]
    client.post("/api/answer", json=body(item, "no"))
    back = client.post("/api/undo", json={"key": "undo-000001"}).json()
    assert back["item"] == item
    assert client.post("/api/undo", json={"key": "undo-000001"}).json()["stored"] == back["stored"]
    assert [(row["action"], row["supersedes"] is not None) for row in h.labels()] == [
        ("label", False), ("retract", True)]
    assert {row["status"] for row in resolve(queue=h.store.queue(), labels=h.store.labels()).to_pylist()} == {"open"}
    reply = client.post("/api/undo", json={"key": "undo-000002"})
    assert (reply.status_code, reply.json()["error"]) == (409, "there is no answer of yours to take back")
    client.post("/api/answer", json=body(item, "yes", key="key-00000003"))
    assert [row["relevant"] for row in resolve(queue=h.store.queue(), labels=h.store.labels()).to_pylist()
            if row["status"] == "decided"] == [True]


def test_later_comes_back_when_nothing_else_is_left(house: Callable[..., House]) -> None:
    h = house(questions=1)
    client = h.client("ada")
    first = client.get("/api/next").json()["item"]
    other = client.post("/api/answer", json=body(first, "later")).json()
    assert other["item"]["token"] != first["token"]
    assert other["progress"]["answered"] == 0
    back = client.post("/api/answer", json=body(other["item"], "no", key="key-00000002")).json()
    assert back["item"] == first
    done = client.post("/api/answer", json=body(first, "cant_tell", key="key-00000003")).json()
    assert (done["item"], done["progress"]) == (None, {"answered": 2, "total": 2})


def test_second_items_go_to_another_person_and_adjudication_to_a_third(house: Callable[..., House]) -> None:
    h = house(questions=1, reasons=("positive", "rejection", "second", "adjudication"))
    ada, ben = h.client("ada"), h.client("ben")

    def work(client: Any, name: str, answer: str) -> list[str]:
        seen = []
        while item := client.get("/api/next").json()["item"]:
            seen.append(item["passage"]["text"])
            client.post("/api/answer", json=body(item, answer, key=f"{name}-{len(h.labels()):08}"))
        return seen

    assert h.client("zoe").get("/api/next").json()["item"] is not None  # zoe opened the question: first layer
    assert ada.get("/api/next").json()["item"] is not None              # ada: second layer
    assert ben.get("/api/next").json()["item"] is not None              # ben has no part in it: adjudication
    reasons = {row["item_id"]: row["reason"] for row in h.rows}
    work(h.client("zoe"), "zoe", "yes")
    work(ada, "ada", "no")
    work(ben, "ben", "yes")
    by_person: dict[str, set[str]] = {}
    for row in h.labels():
        by_person.setdefault(row["assessor"], set()).add(reasons[row["item_id"]])
    assert by_person == {"zoe": {"positive", "rejection"}, "ada": {"second"}, "ben": {"adjudication"}}


def test_with_two_reviewers_one_of_them_adjudicates(house: Callable[..., House]) -> None:
    h = house(questions=1, reasons=("positive", "rejection", "second", "adjudication"))
    tokens = {"ada": "token-of-ada-1", "ben": "token-of-ben-1"}
    h.restart(tokens)
    for name in ("ada", "ben", "ada", "ben"):
        client = h.client(tokens[name])
        while item := client.get("/api/next").json()["item"]:
            client.post("/api/answer", json=body(item, "no", key=f"{name}-{len(h.labels()):08}"))
    assert client.get("/api/next").json()["progress"] == {"answered": 6, "total": 6}


def test_an_idle_question_goes_to_somebody_else(house: Callable[..., House]) -> None:
    h = house(questions=1)
    held = h.client("ada").get("/api/next").json()["item"]
    ben = h.client("ben")
    assert ben.get("/api/next").json()["item"] is None
    h.now += timedelta(hours=13)
    assert ben.get("/api/next").json()["item"] == held
    reply = h.client("ada").post("/api/answer", json=body(held, "no"))
    assert (reply.status_code, "gone to somebody else" in reply.json()["error"]) == (409, True)


def test_search_finds_what_no_system_found(house: Callable[..., House], make: Any) -> None:
    docs = make.documents(d=TEXT, e="Elsewhere it says ten.", twin="Elsewhere it says ten.")
    spans = make.spans(docs, [("d", 0, CUT), ("d", CUT, len(TEXT)), ("e", 0, 22), ("twin", 0, 22)],
                       {"twin#0-22": "e#0-22"})
    h = house(questions=1, passages=Passages(spans=spans, documents=docs),
              search=lambda words: ["twin#0-22", "e#0-22", FIRST, LAST, "unknown"])
    client = h.client("ada")
    item = client.get("/api/next").json()["item"]
    assert 'data-searchable="yes"' in client.get("/").text
    ask = {"question": item["question"]["token"], "words": "ten"}
    results = client.post("/api/search", json=ask).json()["results"]
    assert [r["passage"]["text"] for r in results] == ["Elsewhere it says ten.", TEXT[:CUT], TEXT[CUT:]]
    assert all(set(r) == set(item) for r in results)
    client.post("/api/answer", json=body(results[0], "yes", key="found-000001", sentences=[0]))
    client.post("/api/answer", json=body(results[1], "no", key="found-000002"))
    assert [(row["item_id"], row["span_id"]) for row in h.labels()] == [
        (None, "e#0-22"), ("positive-0-0", FIRST)]  # a found passage that waits in the queue answers its item
    decisions = resolve(queue=h.store.queue(), labels=h.store.labels())
    bases = {row["span_id"]: row["basis"] for row in decisions.to_pylist()}
    assert bases == {"e#0-22": "searched", FIRST: "human", LAST: "human"}
    again = client.post("/api/search", json=ask).json()["results"]
    assert [r["answer"] for r in again] == ["yes", "no", None]
    assert client.post("/api/answer", json=body(results[0], "no", key="found-000003")).status_code == 409
    assert client.post("/api/search", json={**ask, "words": " "}).json()["results"] == []


def test_a_question_without_a_yes_asks_for_a_search(house: Callable[..., House], make: Any) -> None:
    docs = make.documents(d=TEXT)
    h = house(questions=1, passages=Passages(spans=make.spans(docs, [("d", 0, CUT), ("d", CUT, len(TEXT))])),
              search=lambda words: [])
    client = h.client("ada")
    first = client.get("/api/next").json()["item"]
    one = client.post("/api/answer", json=body(first, "no")).json()
    assert one["unanswered"] is None
    two = client.post("/api/answer", json=body(one["item"], "no", key="key-00000002")).json()
    assert two["unanswered"]["text"] == first["question"]["text"]


def test_the_queue_grows_when_a_reader_has_nothing_left(house: Callable[..., House], make: Any) -> None:
    waves = []

    def grow(queue: pa.Table, labels: pa.Table) -> pa.Table:
        waves.append(len(labels))
        rows = queue.to_pylist()
        return from_rows("queue", [rows[0] | {"item_id": "later-wave", "wave": 2, "reason": "no_gold", "order": 999,
                                              "span_id": LAST}] if len(rows) == 1 else [])

    docs = make.documents(d=TEXT)
    h = house(questions=1, reasons=("positive",), grow=grow,
              passages=Passages(spans=make.spans(docs, [("d", 0, CUT), ("d", CUT, len(TEXT))])))
    client = h.client("ada")
    one = client.post("/api/answer", json=body(client.get("/api/next").json()["item"], "no")).json()
    assert one["item"]["passage"]["text"] == TEXT[CUT:]
    assert one["progress"] == {"answered": 1, "total": 2}
    done = client.post("/api/answer", json=body(one["item"], "no", key="key-00000002")).json()
    assert done["item"] is None
    assert waves == [1, 2]
    assert h.store.passage(LAST).text == TEXT[CUT:]  # stored with its item, for the other servers
