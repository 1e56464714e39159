"""A Qdrant collection as a system, in the client's own local mode."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from goldset.config import QdrantSystem
from goldset.errors import ConfigError, DataError, ExitCode, ExternalError, MissingExtra
from goldset.retrievers.base import Retriever
from goldset.retrievers.qdrant import QdrantRetriever, scope_filter
from goldset.schemas import conform
from tests.retrievers.tables import (
    HashingEncoder,
    chunks_table,
    documents_table,
    lists,
    make_config,
    questions_table,
    states,
)
from tests.retrievers.test_http import known_chunks

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

VECTORS = {"c1": [1.0, 0.0], "c2": [0.8, 0.6], "c3": [0.0, 1.0], "c4": [0.6, 0.8]}
TENANTS: dict[str, Any] = {"c1": "a", "c2": "b", "c3": "a", "c4": 7}
KNOWN = known_chunks(*VECTORS, tenants=TENANTS)


class East:
    """Every question points east."""

    def encode(self, texts: Any, *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
        return np.array([[1.0, 0.0]] * len(texts), np.float32)

    def cut(self, texts: Any, *, prompt: str = "") -> list[bool]:
        return [len(text) > 40 for text in texts]


def fill(client: QdrantClient, *, distance: models.Distance = models.Distance.COSINE, name: str | None = None,
         collection: str = "docs") -> QdrantClient:
    about = models.VectorParams(size=2, distance=distance)
    client.create_collection(collection, vectors_config=about if name is None else {name: about})
    client.upsert(collection, [
        models.PointStruct(id=str(uuid.uuid5(uuid.NAMESPACE_URL, chunk)),
                           vector=vector if name is None else {name: vector},
                           payload={"meta": {"chunk": chunk}, "tenant": TENANTS[chunk]})
        for chunk, vector in VECTORS.items()])
    return client


def system(client: Any, *, known: Any = KNOWN, encoder: Any = None, **changes: Any) -> Retriever:
    settings = {"kind": "qdrant", "url": "http://127.0.0.1:9", "collection": "docs", "model": "m", "id": "meta.chunk",
                "scope": {"tenant": "tenant"}, "failed_share": 1.0, "retries": 1}
    return QdrantRetriever("vectors", "minilm", system=QdrantSystem.model_validate({**settings, **changes}),
                           folder=None, encoder=encoder or East(), known=known, quiet=True, client=client)


def test_the_nearest_come_first_by_the_payloads_id() -> None:
    run, status = system(fill(QdrantClient(":memory:"))).search(questions_table("one", "two"), 3)
    assert conform(run, "run").equals(run)
    assert conform(status, "run_status").equals(status)
    assert lists(run) == {"q1": ["c1", "c2", "c4"], "q2": ["c1", "c2", "c4"]}
    assert run.column("score").to_pylist()[:3] == pytest.approx([1.0, 0.8, 0.6])
    assert set(run.column("family").to_pylist()) == {"minilm"}
    assert states(status) == {"q1": ("ok", None), "q2": ("ok", None)}


def test_a_question_beyond_the_encoders_window_is_said() -> None:
    _, status = system(fill(QdrantClient(":memory:"))).search(questions_table("one", "two " * 11), 3)
    assert states(status) == {"q1": ("ok", None), "q2": ("ok", "the query exceeds the encoder's window and was cut")}


def test_a_distance_is_turned_round() -> None:
    run, _ = system(fill(QdrantClient(":memory:"), distance=models.Distance.EUCLID)).search(questions_table("one"), 2)
    # c1 is there; c2 is (.2, .6) away: sqrt(.04 + .36)
    assert lists(run) == {"q1": ["c1", "c2"]}
    assert run.column("score").to_pylist() == pytest.approx([0.0, -(0.4**0.5)])


def test_a_scope_is_a_filter_and_a_leak_is_counted() -> None:
    client = fill(QdrantClient(":memory:"))
    questions = questions_table(("one", {"tenant": "a"}), ("two", {"tenant": "7"}), ("three", {"tenant": ["a", "b"]}),
                                ("four", {}), ("five", {"tenant": "z"}))
    run, status = system(client).search(questions, 4)
    assert lists(run) == {"q1": ["c1", "c3"], "q2": ["c4"], "q3": ["c1", "c2", "c3"], "q4": ["c1", "c2", "c4", "c3"]}
    assert states(status)["q5"] == ("empty", None)
    # Production that forgets the filter: what it serves keeps its slot, and is counted.
    open_, status = system(client, scope={}).search(questions, 4)
    assert lists(open_)["q1"] == ["c1", "c2", "c4", "c3"]
    assert states(status)["q1"] == ("ok", "2 of 4 ids are beyond the question's scope")


def test_values_of_a_scope_match_as_text_and_as_numbers() -> None:
    def matched(value: Any) -> list[Any]:
        found = scope_filter(f'{{"k": {value}}}', {"k": "meta.k"})
        assert found is not None
        assert isinstance(found.must, list)
        (inner,) = found.must
        assert isinstance(inner, models.Filter)
        assert isinstance(inner.should, list)
        return [one.match.value for one in inner.should
                if isinstance(one, models.FieldCondition) and isinstance(one.match, models.MatchValue)
                and one.key == "meta.k"]

    assert matched('"a"') == ["a"]
    assert matched('"07"') == ["07"]  # 07 is not 7
    assert matched('"-7"') == ["-7", -7]
    assert matched("7") == [7, "7"]
    assert matched("7.0") == [7, "7"]
    assert matched("true") == matched('"true"') == [True, "true"]
    assert matched('["a", 7]') == ["a", 7, "7"]
    assert scope_filter('{"other": 1, "k": null}', {"k": "k"}) is None
    with pytest.raises(DataError, match="question's scope: list where an object was expected"):
        scope_filter("[]", {"k": "k"})


def test_a_named_vector() -> None:
    client = fill(QdrantClient(":memory:"), name="text")
    assert lists(system(client, vector="text").search(questions_table("one"), 1)[0]) == {"q1": ["c1"]}
    with pytest.raises(ConfigError, match=r"\[systems.vectors\] vector: the collection has no vector without a name; "
                                          "it has: 'text'"):
        system(client).search(questions_table("one"), 1)


def test_what_cannot_be_searched_is_named_before_anything_is_asked() -> None:
    client = fill(QdrantClient(":memory:"))
    with pytest.raises(ConfigError, match="collection: no collection 'dosc'; did you mean 'docs'"):
        system(client, collection="dosc").search(questions_table("one"), 1)
    with pytest.raises(ConfigError, match="model: its vectors have 64 dimensions, the collection's 2"):
        system(client, encoder=HashingEncoder()).search(questions_table("one"), 1)
    with pytest.raises(DataError, match="0 of 2 returned ids resolve to a chunk"):
        system(client, known=known_chunks("x")).search(questions_table("one"), 2)


def test_points_without_the_id_and_chunks_that_repeat_fail_their_question() -> None:
    client = fill(QdrantClient(":memory:"))
    with pytest.raises(ExternalError, match="2 of 2 points have no 'chunk_id' in their payload"):
        system(client, id="chunk_id").search(questions_table("one"), 2)
    client.upsert("docs", [models.PointStruct(id=1, vector=[0.99, 0.1], payload={"meta": {"chunk": "c1"}})])
    with pytest.raises(ExternalError, match="chunk 'c1' stands twice in the list"):
        system(client).search(questions_table("one"), 2)


class Stumbling:
    """A client that answers like the real one, but first fails."""

    def __init__(self, *errors: Exception) -> None:
        self.client, self.errors = fill(QdrantClient(":memory:")), list(errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def query_points(self, *arguments: Any, **keywords: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return self.client.query_points(*arguments, **keywords)


def answer(code: int) -> UnexpectedResponse:
    return UnexpectedResponse(code, "x", b"secret question", httpx.Headers({"Retry-After": "0"}))


def test_a_server_that_stumbles_is_asked_again() -> None:
    stumbling = Stumbling(answer(503), ResponseHandlingException(httpx.ConnectError("gone")), answer(400))
    _, status = system(stumbling, in_flight=1).search(questions_table("one", "two", "three"), 1)
    assert states(status) == {"q1": ("failed", "ConnectError (tried 2 times)"), "q2": ("failed", "HTTP 400"),
                              "q3": ("ok", None)}


def test_from_the_configuration_a_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goldset import encoder
    from goldset.retrievers import build_retrievers

    monkeypatch.setattr(encoder, "load_encoder", lambda *arguments, **keywords: HashingEncoder())
    chunks = chunks_table()
    client = QdrantClient(path=str(tmp_path / "store"))
    client.create_collection("docs", vectors_config=models.VectorParams(size=64, distance=models.Distance.DOT))
    texts = chunks.column("text").to_pylist()
    client.upsert("docs", [models.PointStruct(id=place, vector=vector.tolist(), payload={"chunk_id": chunk})
                           for place, (chunk, vector) in enumerate(zip(chunks.column("chunk_id").to_pylist(),
                                                                       HashingEncoder().encode(texts), strict=True))])
    client.close()
    config = make_config(tmp_path, {"q": {"kind": "qdrant", "path": "store", "collection": "docs", "model": "x",
                                          "family": "hash"}})
    built = build_retrievers(config=config, documents=documents_table(), chunks=chunks, cache=tmp_path)
    for _ in range(2):  # the folder is let go after each search
        run, _ = built["q"].search(questions_table(texts[2]), 1)
        assert lists(run) == {"q1": ["c03"]}
    missing = make_config(tmp_path, {"q": {"kind": "qdrant", "path": "nowhere", "collection": "docs", "model": "x"}})
    other = build_retrievers(config=missing, documents=documents_table(), chunks=chunks, cache=tmp_path)
    with pytest.raises(ConfigError, match=r"\[systems.q\] path: no folder .*nowhere"):
        other["q"].search(questions_table("one"), 1)


def test_a_server_that_is_not_there_and_a_key_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExternalError, match=r"\[systems.vectors\] http://127.0.0.1:9: \w*Error; check the address"):
        system(None).search(questions_table("one"), 1)
    monkeypatch.delenv("QDRANT_KEY", raising=False)
    with pytest.raises(ConfigError, match="api_key_env: the environment variable QDRANT_KEY is not set"):
        system(None, api_key_env="QDRANT_KEY").search(questions_table("one"), 1)


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtra, match=r"the qdrant system 'vectors' needs the extra 'qdrant'") as told:
        system(None)
    assert told.value.exit_code == ExitCode.MISSING_EXTRA


@pytest.mark.parametrize(("changes", "said"), [
    ({"url": "http://h", "path": "p"}, "needs url .* or path"), ({}, "needs url .* or path")])
def test_one_place(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_config(tmp_path, {"q": {"kind": "qdrant", "collection": "c", "model": "m", **changes}})
