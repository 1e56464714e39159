"""The pool stage in a whole rebuild: two tenants, every kind of system, and an old labelled set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset import encoder
from goldset.config import load_config
from goldset.pipeline import Artifacts, rebuild
from goldset.text import question_id
from tests.cli.conftest import Goldset, goldset
from tests.pipeline.golden import jsonl
from tests.retrievers.tables import HashingEncoder
from tests.serving import QuietHandler, serving

__all__ = ["goldset"]

pytest.importorskip("httpx")

WORDS = {"a": "north harbour ferry leaves at seven", "b": "south harbour ferry leaves at nine"}
TENANT = {f"{tenant}{number}": tenant for tenant in WORDS for number in range(4)}
ASKED = {"when does the ferry leave": "a", "ferry times at the harbour": "b", "harbour ferry tickets": None}
IDS = {question_id(text): tenant for text, tenant in ASKED.items()}


class Leaky(QuietHandler):
    """A service that forgets the filter: every chunk for every question."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"ids": list(TENANT)}).encode())


@pytest.fixture
def service() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Leaky)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


def leaky(questions: pa.Table, depth: int) -> list[dict[str, Any]]:
    """A function that forgets it too."""
    return [{"question_id": question, "chunk_id": chunk} for question in questions.column("question_id").to_pylist()
            for chunk in list(TENANT)[:depth]]


def project(folder: Path, systems: str, *, texts: dict[str, str] | None = None) -> Path:
    """A configuration over eight chunks of two tenants and a log of three questions."""
    folder.mkdir(exist_ok=True)
    said = texts or {chunk: f"{WORDS[tenant]} from gate {chunk}" for chunk, tenant in TENANT.items()}
    jsonl(folder / "documents.jsonl", [{"doc_id": chunk, "text": text, "metadata": {"tenant": TENANT.get(chunk)}}
                                       for chunk, text in said.items()])
    jsonl(folder / "chunks.jsonl", [{"chunk_id": chunk, "doc_id": chunk, "text": text} for chunk, text in said.items()])
    jsonl(folder / "log.jsonl", [{"text": text, "time": f"2026-03-0{day}T10:00:00Z", "session": f"s{day}",
                                  "tenant": tenant} for day, (text, tenant) in enumerate(ASKED.items(), 1)])
    (folder / "all.run").write_text("".join(f"{question} Q0 {chunk} {rank} {1 / rank} t\n" for question in IDS
                                            for rank, chunk in enumerate(TENANT, 1)))
    (folder / "r.md").write_text("version: 1.0\n\nRelevant is what answers.\n")
    jsonl(folder / "v.jsonl", [])
    path = folder / "two.toml"
    path.write_text(f"""
[project]
name = "two"
workspace = "work"
[corpus]
documents = "documents.jsonl"
chunks = "chunks.jsonl"
[questions]
logs = [{{path = "log.jsonl", scope = ["tenant"]}}]
window = "all"
languages = []
{systems}
[judge]
kind = "replay"
family = "recorded"
path = "v.jsonl"
rubric = "r.md"
[scoring]
system = "production"
served_k = 2
""")
    return path


def pooled(path: Path) -> Artifacts:
    return rebuild(load_config(path), until="pool", quiet=True)


PRODUCTION = '[systems.production]\nkind = "run"\nfamily = "lexical"\npath = "all.run"\n'


def test_what_a_tenant_could_not_see_never_enters_the_pool(
        tmp_path: Path, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client import models

    monkeypatch.setattr(encoder, "load_encoder", lambda *arguments, **keywords: HashingEncoder())
    monkeypatch.setattr(encoder, "vectors_key", lambda *arguments, **keywords: "hashing")
    (tmp_path / "old" / "qrels").mkdir(parents=True)
    jsonl(tmp_path / "old" / "queries.jsonl", [{"_id": f"old{n}", "text": text} for n, text in enumerate(ASKED)])
    jsonl(tmp_path / "old" / "corpus.jsonl", [{"_id": chunk, "text": f"{WORDS[tenant]} from gate {chunk}"}
                                              for chunk, tenant in TENANT.items()])
    (tmp_path / "old" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(
        f"old{n}\t{chunk}\t1\n" for n in range(3) for chunk in TENANT))
    path = project(tmp_path, f"""{PRODUCTION}
[systems.bm25]
kind = "bm25"
[systems.own]
kind = "python"
family = "own"
entry = "tests.pipeline.test_pooling:leaky"
[systems.web]
kind = "http"
family = "web"
url = "{service}/s?q={{query}}"
ids = "ids"
[systems.fused]
kind = "hybrid"
of = ["bm25", "own", "web", "production"]
[systems.vectors]
kind = "qdrant"
family = "vectors"
path = "store"
collection = "docs"
model = "m"
[systems.old]
kind = "gold_set"
family = "old"
path = "old"
""")
    client = qdrant_client.QdrantClient(path=str(tmp_path / "store"))
    client.create_collection("docs", vectors_config=models.VectorParams(size=64, distance=models.Distance.DOT))
    client.upsert("docs", [models.PointStruct(id=n, vector=[1.0] * 64, payload={"chunk_id": chunk})
                           for n, chunk in enumerate(TENANT)])
    client.close()
    artifacts = pooled(path)
    found: dict[str, dict[str, set[str]]] = {}
    documents = dict(zip(*(artifacts.table("spans").column(name).to_pylist() for name in ("span_id", "doc_id")),
                         strict=True))
    for row in artifacts.table("candidates").to_pylist():
        for system in row["systems"]:
            found.setdefault(system, {}).setdefault(row["question_id"], set()).add(documents[row["span_id"]])
    assert set(found) == {"production", "bm25", "own", "web", "fused", "vectors", "old"}
    for system, lists in found.items():
        for question, tenant in IDS.items():
            # Who asks without a tenant filters nothing and sees all eight; others their own four.
            visible = {chunk for chunk, owner in TENANT.items() if tenant in (None, owner)}
            assert lists[question] == visible, system
    # Two questions under a tenant, four results each that were not theirs; what is built in returns none.
    assert artifacts.report("pool")["beyond_scope"] == dict.fromkeys(
        ["old", "own", "production", "vectors", "web"], 8)
    # The run keeps what was served, in the slot where it was served, and says so.
    run = artifacts.table("run").to_pylist()
    assert sum(row["system"] == "production" for row in run) == 24
    assert not any(row["system"] == "old" for row in run)
    told = {row["system"]: row["detail"] for row in artifacts.table("run_status").to_pylist()
            if IDS[row["question_id"]] == "a"}
    assert told["production"] == told["web"] == "4 of 8 ids are beyond the question's scope"
    assert told["fused"] is None


def test_a_text_that_two_tenants_have_is_judged_on_the_askers_own_copy(tmp_path: Path) -> None:
    """a0 and b0 say the same, as do a1 and a2: twins only where whoever sees the one sees the other."""
    texts = {chunk: f"{WORDS[tenant]} from gate {chunk}" for chunk, tenant in TENANT.items()}
    texts |= {"a0": "the ferry leaves", "b0": "the ferry leaves", "a1": "no bicycles", "a2": "no bicycles"}
    path = project(tmp_path, PRODUCTION, texts=texts)
    artifacts = pooled(path)
    documents = dict(zip(*(artifacts.table("spans").column(name).to_pylist() for name in ("span_id", "doc_id")),
                         strict=True))
    read: dict[str | None, set[str]] = {}
    for row in artifacts.table("candidates").to_pylist():
        read.setdefault(IDS[row["question_id"]], set()).add(documents[row["span_id"]])
    assert read == {"a": {"a0", "a1", "a3"}, "b": {"b0", "b1", "b2", "b3"},
                    None: {"a0", "a1", "a3", "b0", "b1", "b2", "b3"}}
    # A log without a scope lets everybody see everything: one copy is enough.
    path.write_text(path.read_text().replace(', scope = ["tenant"]', ""))
    everybody = pooled(path)
    assert len(everybody.table("candidates")) == 3 * 6


OLD = '[systems.old]\nkind = "gold_set"\nfamily = "old"\npath = "old.json"\n'


def test_an_old_set_feeds_the_pool_and_is_measured_nowhere(tmp_path: Path) -> None:
    path = project(tmp_path, PRODUCTION + OLD)
    few = "".join(f"{question} Q0 {'a0' if tenant != 'b' else 'b0'} 1 1 t\n" for question, tenant in IDS.items())
    (tmp_path / "all.run").write_text(few)
    (tmp_path / "old.json").write_text(json.dumps([
        {"question": "When does the FERRY leave?", "gold_ids": ["a3", "gone"]},
        {"question": "something nobody asked", "gold_ids": ["a1"]}]))
    artifacts = pooled(path)
    (first,) = [question for question, tenant in IDS.items() if tenant == "a"]
    rows = {(row["question_id"], row["span_id"].partition("#")[0]): row
            for row in artifacts.table("candidates").to_pylist()}
    assert len(rows) == 4
    assert rows[first, "a3"]["systems"] == ["old"]
    assert rows[first, "a3"]["families"] == ["old"]
    assert rows[first, "a3"]["best_ranks"] == []
    report = artifacts.report("pool")
    assert report["old_sets"] == {"old": {
        "set": "old", "questions": 2, "in_the_sample": 1, "gold": 2, "in_the_corpus": 1, "chunks": 1,
        "example_not_in_the_corpus": "gone"}}
    assert report["unique_by_system"]["old"] == {"candidates": 1, "unique": 1}
    # Another old set is another pool and no other retrieval.
    said: list[str] = []
    (tmp_path / "old.json").write_text(json.dumps([{"question": "harbour ferry tickets", "gold_ids": ["b2"]}]))
    again = rebuild(load_config(path), until="pool", quiet=True, say=said.append)
    assert [line.partition(":")[0] for line in said if "reused" in line] == ["corpus", "spans", "questions", "retrieve"]
    assert again.report("pool")["old_sets"]["old"]["in_the_corpus"] == 1


def test_the_plan_says_what_the_pool_holds(tmp_path: Path, goldset: Goldset) -> None:
    """Production grades the pool: it serves b0 and a0 to everybody, each of which one tenant may not see."""
    path = project(tmp_path, PRODUCTION + OLD + '[systems.bm25]\nkind = "bm25"\n')
    path.write_text(path.read_text().replace('family = "lexical"', 'family = "web"\naudit_only = true'))
    (tmp_path / "all.run").write_text("".join(f"{question} Q0 {chunk} {rank} 1 t\n" for question in IDS
                                              for rank, chunk in enumerate(("b0", "a0", "gone"), 1)))
    jsonl(tmp_path / "old.json", [{"question": "harbour ferry tickets", "gold_ids": ["a1", "gone"]}])
    done = goldset("plan", "-c", path)
    assert done.code == 0, done.err
    lines = done.out[done.out.index("pool, "):].splitlines()
    # Four chunks each for the two with a tenant and eight without: 16 of three questions, each nine words of a passage
    # of its own. The old set names one of those.
    assert lines == [
        "pool, to rank 50: 5.3 chunks a question (48 words) are 5.3 passages to judge (48 words); 0 pairs are twins of "
        "others; 0.0 words a question stand in no passage to judge",
        "                  passages  of no other",
        "  system bm25           16           15",
        "  system old             1            0",
        "  family lexical        16           15",
        "  family old             1            0",
        "  held by both  bm25  old",
        "  bm25            16    1",
        "  old              1    1",
        "production (audit_only) would have given 4 passages, of which the pool holds 4",
        "production: 2 results beyond their question's scope were left out",
        "old: 1 of its 1 questions are in the sample; 1 of 2 gold passages of these are found in the corpus"]
    assert f"  {lines[-1]}" in done.err.splitlines()  # the rebuild says so when it pools
    told = json.loads(goldset("plan", "-c", path, "--json").out)["pool"]
    assert told["audit_only"] == {"production": {"candidates": 4, "in_pool": 4}}
    assert told["systems"] == ["bm25", "old"]


@pytest.mark.parametrize(("old", "new", "said"), [
    ('system = "production"', 'system = "old"', "'old' is an old labelled set and ranks nothing"),
    ('kind = "gold_set"', 'kind = "gold_set"\naudit_only = true', "unknown key 'systems.old.audit_only'"),
])
def test_an_old_set_is_no_system(tmp_path: Path, old: str, new: str, said: str) -> None:
    from goldset.errors import ConfigError

    path = project(tmp_path, PRODUCTION + OLD)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=said):
        load_config(path)


def test_what_is_empty_or_has_no_word_is_said(tmp_path: Path) -> None:
    """An empty document, two chunks of blanks, and a question of three emoji; the rest works."""
    path = project(tmp_path, '[systems.production]\nkind = "bm25"\n')
    with (tmp_path / "documents.jsonl").open("a") as documents, (tmp_path / "chunks.jsonl").open("a") as chunks:
        documents.write(json.dumps({"doc_id": "z", "text": " \u200b"}) + "\n")
        for number, text in enumerate(["", " \u200b "]):
            chunks.write(json.dumps({"chunk_id": f"z{number}", "doc_id": "z", "text": text}) + "\n")
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write(json.dumps({"text": "🍟➕🍔", "time": "2026-03-05T10:00:00Z", "session": "s9"}) + "\n")
    said: list[str] = []
    rebuild(load_config(path), until="pool", quiet=True, say=said.append)
    assert "  1 documents without any text were left out, the first is 'z'" in said
    assert "  2 chunks without any text were left out, the first is 'z0'" in said
    assert "  production: 1 of 4 questions have no word to look up, and no list" in said
