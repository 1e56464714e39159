"""A few questions to each system before anything long starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pyarrow as pa
import pytest

from goldset.config import load_config
from goldset.errors import ExternalError
from goldset.pipeline import rebuild
from goldset.pipeline.preflight import few
from tests.cli.conftest import Goldset, goldset
from tests.pipeline.golden import jsonl
from tests.pipeline.test_pooling import ASKED, IDS, OLD, PRODUCTION, TENANT, project
from tests.retrievers.tables import questions_table
from tests.serving import QuietHandler, serving

__all__ = ["goldset"]

pytest.importorskip("httpx")

CALLS: list[int] = []


def counted(questions: pa.Table, depth: int) -> list[dict[str, Any]]:
    """A function that remembers how many questions each call brought."""
    CALLS.append(len(questions))
    return [{"question_id": questions.column("question_id")[0].as_py(), "chunk_id": "a0"}]


def broken(questions: pa.Table, depth: int) -> list[dict[str, Any]]:
    """A function that cannot work."""
    raise KeyError("index")


class Service(ThreadingHTTPServer):
    daemon_threads = True
    answers: dict[str, Any]
    asked: list[str]

    @property
    def system(self) -> str:
        return (f'[systems.web]\nkind = "http"\nfamily = "web"\nurl = "http://127.0.0.1:{self.server_address[1]}'
                '/s?q={query}"\nids = "ids"\nretries = 0\n')


class Handler(QuietHandler):
    server: Service

    def do_GET(self) -> None:
        query = parse_qs(urlparse(self.path).query)["q"][0]
        self.server.asked.append(query)
        found = self.server.answers.get(query, 500)
        self.send_response(found if isinstance(found, int) else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"ids": found}).encode())


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service(("127.0.0.1", 0), Handler)
    server.answers, server.asked = {}, []
    with serving(server):
        yield server


def test_few_questions_have_different_scopes() -> None:
    """Two of tenant a, one of b, two without: by id within a scope, every scope once before one twice."""
    questions = questions_table(("1", {"t": "a"}), ("2", {"t": "a"}), "3", ("4", {"t": "b"}), "5")
    assert few(questions, 3).column("question_id").to_pylist() == ["q1", "q3", "q4"]
    assert few(questions, 4).column("question_id").to_pylist() == ["q1", "q2", "q3", "q4"]
    assert len(few(questions, 9)) == 5


def test_the_report_counts_what_is_wrong(tmp_path: Path, goldset: Goldset, service: Service) -> None:
    first, second, third = ASKED  # of tenant a, of tenant b, of nobody
    service.answers = {first: ["a0", "b0", "elsewhere"], second: ["b1", "b1"], third: ["a0"]}
    path = project(tmp_path, PRODUCTION + service.system + OLD + '[systems.bm25]\nkind = "bm25"\n[systems.own]\n'
                   'kind = "python"\nfamily = "own"\nentry = "tests.pipeline.test_preflight:counted"\n')
    lines = (tmp_path / "all.run").read_text().splitlines()
    (tmp_path / "all.run").write_text("\n".join(lines[:16]) + "\n")  # eight results each of two questions
    jsonl(tmp_path / "old.json", [{"question": second, "gold_ids": ["b1", "gone"]}])
    done = goldset("systems", "-c", path, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    assert (document["schema"], document["usable"]) == ("goldset.systems/1", True)
    found = {row["system"]: row for row in document["systems"]}
    web = found["web"]
    counts = {key: web[key] for key in ("asked", "answered", "empty", "failed", "missing", "repeated", "short",
                                        "shortest", "results", "unknown", "beyond_scope", "scoped")}
    assert counts == {"asked": 3, "answered": 2, "empty": 0, "failed": 1, "missing": 0, "repeated": 1, "short": 2,
                      "shortest": 1, "results": 4, "unknown": 1, "beyond_scope": 1, "scoped": 2}
    assert 0 < web["seconds_median"] <= web["seconds_max"]
    assert web["notes"] == [
        "1 of 3 questions failed, the first with: chunk 'b1' stands twice in the list",
        "1 of 4 ids are no chunk of this corpus, e.g. 'elsewhere'; they keep their ranks and cannot be pooled",
        "1 of 4 results are beyond their question's scope; they keep their ranks and never enter the pool",
        "no list has 50 results, which is what is asked for: the longest has 3"]
    assert (found["production"]["missing"], found["production"]["shortest"]) == (1, 8)
    assert found["old"]["notes"] == ["1 of its 1 questions are in the sample; 1 of 2 gold passages of these are found "
                                     "in the corpus"]
    assert found["bm25"]["asked"] is None
    assert found["own"]["empty"] == 2
    said = goldset("systems", "-c", path, "--questions", "1").out.splitlines()
    assert said[0].split() == ["system", "kind", "asked", "answered", "empty", "failed", "short", "lists",
                               "shortest", "ids", "unknown", "beyond", "scope", "seconds:", "median", "most"]
    # A run file is looked up whole, whatever --questions says; eight results of it are beyond a scope, or four where
    # one of its two questions has none.
    (line,) = [line for line in said if line.startswith("production  run")]
    assert line.split()[2:] == ["3", "2", "0", "0", "2", "8", "0", str(found["production"]["beyond_scope"]), "-", "-"]
    assert "bm25: built in, nothing to ask" in said


def test_a_system_that_cannot_be_used_ends_with_its_code(tmp_path: Path, goldset: Goldset, service: Service) -> None:
    own = '[systems.own]\nkind = "python"\nfamily = "own"\nentry = "tests.pipeline.test_preflight:broken"\n'
    path = project(tmp_path, PRODUCTION + own + service.system)
    done = goldset("systems", "-c", path)
    assert done.code == 9
    lines = done.out.splitlines()
    assert [line.split(" ")[0] for line in lines if "cannot be used" in line] == ["own", "web"]
    assert "tests.pipeline.test_preflight:broken raised KeyError in " in done.out
    assert "test_preflight.py, line " in done.out
    assert "web cannot be used: [systems.web]: 2 of the first 2 questions failed (of 3), the first with: HTTP 500" in (
        done.out)
    # A run of other questions stands before the service in the file, so the code is its own.
    (tmp_path / "all.run").write_text("other Q0 a0 1 1 t\n")
    path.write_text(path.read_text().replace(own, ""))
    done = goldset("systems", "-c", path)
    assert done.code == 3
    assert "0 of 3 questions are in the run" in done.out


def test_a_rebuild_sends_questions_ahead(tmp_path: Path, service: Service) -> None:
    own = '[systems.own]\nkind = "python"\nfamily = "own"\nentry = "tests.pipeline.test_preflight:counted"\n'
    # The function comes first in the file, and is not called with the whole sample where the service after it is down.
    path = project(tmp_path, own + service.system + PRODUCTION)
    more = [{"text": f"ferry {word} harbour", "time": "2026-03-09T10:00:00Z", "session": word}
            for word in ("deck", "crew", "rail", "seat")]
    with (tmp_path / "log.jsonl").open("a") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in more))
    CALLS.clear()
    with pytest.raises(ExternalError, match=r"\[systems.web\]: 2 of the first 2 questions failed \(of 3\)"):
        rebuild(load_config(path), until="retrieve", quiet=True)
    assert CALLS == [3]
    service.answers = {text: list(TENANT) for text in [*ASKED, *(row["text"] for row in more)]}
    service.asked.clear()
    del service.answers["ferry seat harbour"]
    said: list[str] = []
    artifacts = rebuild(load_config(path), until="retrieve", quiet=True, say=said.append)
    assert CALLS == [3, 3, 4]  # those that were sent ahead are not asked again
    # One of seven fails, which is a failure of that question: said, counted, and no empty list.
    assert "  web: 1 of 7 questions failed, the first with: HTTP 500 (tried 1 times)" in said
    assert artifacts.report("retrieve")["status"]["web"] == {"ok": 6, "failed": 1}
    assert len(service.asked) == 7
    assert len(artifacts.table("questions")) == len(IDS) + 4 == 7


@pytest.mark.parametrize(("line", "again"), [
    ("in_flight = 1\nper_second = 500\ntimeout = 9\nfailed_share = 0.5", False), ('version = "march"', True)])
def test_a_service_is_asked_again_for_a_new_index_and_not_for_new_manners(
        tmp_path: Path, service: Service, line: str, again: bool) -> None:
    service.answers = {text: list(TENANT) for text in ASKED}
    path = project(tmp_path, service.system + PRODUCTION)
    rebuild(load_config(path), until="retrieve", quiet=True)
    service.asked.clear()
    path.write_text(path.read_text().replace("retries = 0", f"retries = 0\n{line}"))
    rebuild(load_config(path), until="retrieve", quiet=True)
    assert len(service.asked) == (3 if again else 0)
