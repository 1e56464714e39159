"""The http system against a server of our own on the loopback address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

import pyarrow as pa
import pytest

from goldset.config import HttpSystem
from goldset.errors import ConfigError, DataError, ExternalError
from goldset.retrievers.http import HttpRetriever, fill, fill_body, pick, values_of
from goldset.retrievers.scope import KnownChunks, Scopes
from goldset.schemas import from_rows
from tests.retrievers.tables import questions_table
from tests.serving import QuietHandler, serving

pytest.importorskip("httpx")


class Stub(ThreadingHTTPServer):
    """Answers by query; remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(QuietHandler):
    server: Stub

    def do_GET(self) -> None:
        query = parse_qs(urlparse(self.path).query)["q"][0]
        self._answer(query, None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(body["match"]["text"], body)

    def _answer(self, query: str, body: Any) -> None:
        with self.server.lock:
            self.server.seen.append(
                {"query": query, "path": self.path, "body": body, "auth": self.headers.get("Authorization")}
            )
            times = sum(one["query"] == query for one in self.server.seen)
        hits = {"hits": {"hits": [{"_id": "c2", "_score": 3.5}, {"_id": 7, "_score": 1}]}}
        status, content = 200, json.dumps(hits)
        if query == "always 500":
            status = 500
        elif query == "second time":
            status = 503 if times == 1 else 200
        elif query == "forbidden":
            status = 403
        elif query == "no hits key":
            content = "{}"
        elif query == "not json":
            content = "<html>"
        elif query == "repeats":
            content = json.dumps({"hits": {"hits": [{"_id": "c1", "_score": 2}, {"_id": "c1", "_score": 1}]}})
        elif query == "unknown":
            content = json.dumps({"hits": {"hits": [{"_id": "c9", "_score": 2}, {"_id": "c1", "_score": 1}]}})
        elif query == "nothing":
            content = json.dumps({"hits": {"hits": []}})
        elif query == "nan":
            content = '{"hits": {"hits": [{"_id": "c1", "_score": NaN}]}}'
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content.encode())


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving(Stub()) as server:
        yield server


def _questions(*queries: str, scope: dict[str, Any] | None = None) -> pa.Table:
    return questions_table(*((query, scope or {}) for query in queries))


def known_chunks(*chunks: str, tenants: dict[str, str] | None = None) -> KnownChunks:
    """Each chunk is a document of its own; tenants: chunk -> who may see it."""
    documents = from_rows("documents", [
        {"doc_id": chunk, "text": None, "title": None, "url": None, "sha256": None,
         "metadata": json.dumps({"tenant": (tenants or {}).get(chunk)} if tenants else {})} for chunk in chunks])
    return KnownChunks(list(chunks), Scopes(documents, list(chunks)))


KNOWN = known_chunks("c1", "c2", "c3", "7")


def _system(url: str, known: KnownChunks = KNOWN, **changes: Any) -> HttpRetriever:
    settings: dict[str, Any] = {
        "kind": "http",
        "url": url,
        "ids": "hits.hits[*]._id",
        "scores": "hits.hits[*]._score",
        "timeout": 5.0,
        "retries": 2,
        "failed_share": 1.0,
    }
    system = HttpSystem.model_validate({**settings, **changes})
    return HttpRetriever("search", "service", system=system, known=known, quiet=True, pause=0.01)


def test_one_question_failing_is_that_question_only(stub: Stub) -> None:
    queries = [
        "fine & good?",
        "always 500",
        "second time",
        "forbidden",
        "no hits key",
        "not json",
        "repeats",
        "unknown",
        "nothing",
        "nan",
    ]
    run, status = _system(stub.url + "/s?q={query}&n={depth}").search(_questions(*queries), 5)
    states = {row["question_id"]: (row["status"], row["returned"], row["detail"]) for row in status.to_pylist()}
    assert states == {
        "q1": ("ok", 2, None),
        "q2": ("failed", 0, "HTTP 500 (tried 3 times)"),
        "q3": ("ok", 2, None),
        "q4": ("failed", 0, "HTTP 403"),
        "q5": ("failed", 0, "the answer cannot be read: no 'hits' of the path 'hits.hits[*]._id' in it"),
        "q6": ("failed", 0, "the answer cannot be read: Expecting value: line 1 column 1 (char 0)"),
        "q7": ("failed", 0, "chunk 'c1' stands twice in the list"),
        "q8": ("ok", 2, "1 of 2 ids are no chunk of this corpus"),
        "q9": ("empty", 0, None),
        "q10": ("failed", 0, "a score in the answer is not a finite number"),
    }
    first = [row for row in run.to_pylist() if row["question_id"] == "q1"]
    assert [(row["rank"], row["chunk_id"], row["score"]) for row in first] == [(1, "c2", 3.5), (2, "7", 1.0)]
    assert {row["family"] for row in first} == {"service"}
    assert sum(one["query"] == "always 500" for one in stub.seen) == 3
    assert "/s?q=fine%20%26%20good%3F&n=5" in {one["path"] for one in stub.seen}


def test_a_body_is_posted_with_headers_from_the_environment(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"match": {"text": "{query}"}, "size": "{depth}", "filter": "{scope}", "note": "top {depth} of {x}"}
    system = _system(stub.url, body=body, headers={"Authorization": "Bearer $SEARCH_KEY"})
    questions = _questions('say "hi" {depth}', scope={"tenant": "a"})
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"\[systems.search\] headers.Authorization: .* SEARCH_KEY is not set"):
        system.search(questions, 4)
    monkeypatch.setenv("SEARCH_KEY", "s3cret")
    run, _ = system.search(questions, 1)
    assert run.column("chunk_id").to_pylist() == ["c2"]  # cut at the depth
    (seen,) = stub.seen
    assert seen["auth"] == "Bearer s3cret"
    # Braces in the question are its own; unknown names in braces stay.
    assert seen["body"] == {
        "match": {"text": 'say "hi" {depth}'},
        "size": 1,
        "filter": {"tenant": "a"},
        "note": "top 1 of {x}",
    }


def test_a_service_that_answers_nobody_stops_the_stage(stub: Stub) -> None:
    url = stub.url
    with pytest.raises(ExternalError, match="none of 2 questions was answered, the first with: HTTP 500"):
        _system(url + "/s?q={query}", retries=0).search(_questions("always 500", "forbidden"), 5)
    with pytest.raises(ExternalError, match="none of 1 questions was answered, the first with: ConnectError"):
        _system("http://127.0.0.1:9/s?q={query}", retries=1).search(_questions("x"), 5)


def test_a_question_without_the_key_that_an_address_needs_fails_alone(stub: Stub) -> None:
    questions = pa.concat_tables([_questions("fine"), _questions("x", "y", scope={"tenant": "a b"}).slice(1)])
    _, status = _system(stub.url + "/s?q={query}&t={scope.tenant}").search(questions, 5)
    assert {row["question_id"]: (row["status"], row["detail"]) for row in status.to_pylist()} == {
        "q1": ("failed", "the question's scope has no 'tenant', which the url or body asks for outside a list"),
        "q2": ("ok", None)}
    assert [one["path"] for one in stub.seen] == ["/s?q=y&t=a%20b"]


def test_the_pause_that_a_server_asks_for_is_kept(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its 503 says Retry-After: 0; without that, the first pause is the retriever's own."""
    waited: list[float] = []
    wait = threading.Event.wait

    def noted(event: threading.Event, seconds: float | None = None) -> bool:
        waited.append(seconds or 0.0)
        return wait(event, min(seconds or 0.0, 0.01))

    system = HttpSystem.model_validate({"kind": "http", "url": stub.url + "/s?q={query}", "ids": "hits.hits[*]._id",
                                        "retries": 1, "failed_share": 1.0, "in_flight": 1})
    retriever = HttpRetriever("search", "service", system=system, known=KNOWN, quiet=True, pause=7.0)
    monkeypatch.setattr("goldset.retrievers.asking.threading.Event.wait", noted)
    retriever.search(_questions("second time", "always 500"), 5)
    assert 7.0 in waited
    assert waited.count(7.0) == 1
    assert len(retriever.seconds) == 2


def test_what_is_beyond_a_scope_is_counted_and_keeps_its_rank(stub: Stub) -> None:
    known = known_chunks("c2", "7", tenants={"c2": "a", "7": "b"})
    run, status = _system(stub.url + "/s?q={query}", known).search(_questions("x", scope={"tenant": "b"}), 5)
    assert [(row["rank"], row["chunk_id"]) for row in run.to_pylist()] == [(1, "c2"), (2, "7")]
    assert status.column("detail").to_pylist() == ["1 of 2 ids are beyond the question's scope"]


def test_too_many_failures_stop_the_stage(stub: Stub) -> None:
    queries = ["fine", *["forbidden"] * 3, *["fine"] * 16]
    with pytest.raises(ExternalError, match=r"3 of the first 4 questions failed \(of 20\), the first with: HTTP 403; "
                                            "failed_share = 0.1 allows no more"):
        _system(stub.url + "/s?q={query}", failed_share=0.1).search(_questions(*queries), 5)
    _, status = _system(stub.url + "/s?q={query}", failed_share=0.15).search(_questions(*queries), 5)
    assert status.column("status").to_pylist().count("failed") == 3


def test_a_template_without_the_question_is_refused() -> None:
    with pytest.raises(ValueError, match="neither url nor body holds"):
        _system("http://127.0.0.1:9/s", body={"size": "{depth}"})


def test_a_service_over_another_corpus_is_refused(stub: Stub) -> None:
    with pytest.raises(DataError, match="0 of 2 returned ids resolve"):
        _system(stub.url + "/s?q={query}", known=known_chunks("a")).search(_questions("x"), 5)


def test_paths_into_an_answer() -> None:
    value = {"hits": [{"id": "a", "s": [1, 2]}, {"id": "b", "s": [3, 4]}], "ids": ["x", "y"]}
    assert pick(value, "hits[*].id") == ["a", "b"]
    assert pick(value, "hits[*].s[1]") == [2, 4]
    assert pick(value, "ids") == pick(value, "ids[*]") == ["x", "y"]
    assert pick([{"id": 1}], "[*].id") == [1]
    assert pick({"hits": []}, "hits[*].id") == []
    with pytest.raises(LookupError, match="no 'name' of the path"):
        pick(value, "hits[*].name")
    with pytest.raises(LookupError, match=r"no '\[5\]' of the path"):
        pick(value, "ids[5]")


def test_templates_are_filled_in_one_pass() -> None:
    assert fill("{query}/{depth}/{other}", values_of("{depth}", 5, "{}")) == "{depth}/5/{other}"
    assert fill_body(["{depth}", 3, None, {"k": ["{query}"]}], values_of("q", 2, "{}")) == [2, 3, None, {"k": ["q"]}]


def test_a_filter_falls_away_with_the_key_that_a_scope_does_not_have() -> None:
    body = {"filter": [{"term": {"tenant": "{scope.tenant}"}}, {"term": {"site": "{scope.site}"}}], "top": "{depth}"}
    asked = values_of("q", 3, '{"tenant": [7, "a"], "site": null}')
    assert fill_body(body, asked) == {"filter": [{"term": {"tenant": [7, "a"]}}], "top": 3}
    assert fill_body(body, values_of("q", 3, "{}")) == {"filter": [], "top": 3}
    assert fill_body("for {scope.tenant}", values_of("q", 3, '{"tenant": 7}')) == "for 7"
    with pytest.raises(KeyError, match="site"):  # outside a list nothing can fall away
        fill_body({"site": "{scope.site}"}, asked)
    assert fill("/s?t={scope.tenant}&q={query}", values_of("a&b", 1, '{"tenant": "x/y"}'), quoted=True) == (
        "/s?t=x%2Fy&q=a%26b")
