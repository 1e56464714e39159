"""What the page's server gives to whom: nothing that biases a reader, nothing to strangers, nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from goldset.errors import ExternalError, UsageError
from goldset.review import read_tokens, serve
from tests.review.house import House, body

BLIND = ("verdict", "quote", "score", "rank", "system", "stratum", "reason", "positive", "rejection", "second",
         "adjudication", "item_id", "span_id")


def test_nothing_that_would_bias_a_reader_reaches_the_browser(house: Callable[..., House]) -> None:
    h = house(reasons=("positive", "rejection", "second", "adjudication"))
    sent = []
    for name in ("ada", "ben", "cleo"):
        client = h.client(name)
        sent.append(client.get("/").text)
        while True:
            reply = client.get("/api/next")
            sent.append(reply.text)
            item = reply.json()["item"]
            if item is None:
                break
            assert (set(item), set(item["question"]), set(item["passage"])) == (
                {"token", "edition", "question", "passage", "answer"}, {"token", "text", "need", "turns"},
                {"title", "heading", "before", "after", "text", "sentences"})
            sent.append(client.post("/api/answer", json=body(item, "no", key=f"{name}-{len(sent):08}")).text)
    everything = " ".join(sent).lower()
    assert [word for word in BLIND if re.search(rf"\b{word}\b", everything)] == []
    assert all(row["item_id"] not in everything for row in h.rows)


def test_a_stranger_gets_nothing(house: Callable[..., House]) -> None:
    from fastapi.testclient import TestClient

    h = house()
    h.restart({"ada": "token-of-ada-1"})
    client = TestClient(h.app, base_url="http://127.0.0.1")
    assert "Your token" in client.get("/").text
    assert client.get("/api/next").status_code == 401
    assert client.post("/api/answer", json={}).status_code in (401, 422)
    assert client.post("/enter", data={"who": "ada"}).status_code == 401
    assert client.post("/enter", data={"who": "token-of-ada-1"}).status_code == 200
    assert client.get("/api/next").status_code == 200
    assert "ada" in client.get("/").text
    client.post("/leave")
    assert client.get("/api/next").status_code == 401
    # A foreign page that points its own name at this machine.
    assert TestClient(h.app, base_url="http://evil.example").get("/").status_code == 403


def test_headers_allow_nothing_from_elsewhere(house: Callable[..., House]) -> None:
    client = house().client("ada")
    reply = client.get("/")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert re.findall(r'(?:src|href)="(?!/static/)', reply.text) == []
    assert client.get("/static/review.js").status_code == 200
    assert "https://" not in client.get("/static/review.js").text + client.get("/static/review.css").text


def test_another_address_demands_tokens(house: Callable[..., House]) -> None:
    with pytest.raises(UsageError, match=r"host '0.0.0.0' .*GOLDSET_REVIEW_TOKENS=name:token"):
        serve(house().store, host="0.0.0.0", port=0)


def test_a_taken_port_is_named(house: Callable[..., House]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ExternalError, match=rf"127.0.0.1:{port}: cannot listen there .*--port"):
            serve(house().store, port=port)


def test_tokens_from_file_and_environment(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("ada: aaaaaaaaaaaa\n\nben:bbbbbbbbbbbb\n", encoding="utf-8")
    assert read_tokens(path) == {"ada": "aaaaaaaaaaaa", "ben": "bbbbbbbbbbbb"}
    assert read_tokens(None, "cleo:cccccccccccc,") == {"cleo": "cccccccccccc"}
    assert read_tokens() == {}
    for text, message in (("ada:short", "line 1: expected name:token with a token of at least 12"),
                          ("ada:aaaaaaaaaaaa\nben:aaaaaaaaaaaa", "line 2: the name 'ben' or its token appears twice")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=message) as caught:
            read_tokens(path)
        assert "aaaaaaaaaaaa" not in str(caught.value)
