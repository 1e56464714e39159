"""Answers of a service: what is asked once, what a later start believes, and a start that was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pyarrow as pa
import pytest

from goldset.config import load_config
from goldset.errors import DataError
from goldset.pipeline import rebuild
from goldset.pipeline.preflight import check_systems
from goldset.retrievers.base import Answer
from goldset.retrievers.kept import Kept
from tests.pipeline.golden import jsonl
from tests.pipeline.test_pooling import TENANT, project
from tests.retrievers.tables import KNOWN, lists
from tests.serving import QuietHandler, serving

ROOT = Path(__file__).resolve().parents[2]
CALLS: list[tuple[int, int]] = []


def _answer(*chunks: str) -> Answer:
    return Answer(list(chunks), [1.0] * len(chunks))


def _ids(answer: Answer | None) -> list[str] | None:
    return None if answer is None else list(answer.chunk_ids)


def test_a_deeper_answer_stands_for_a_shallower_one_and_a_failure_for_none() -> None:
    kept = Kept("s")
    kept.add("q1", 3, _answer("a", "b"))
    kept.add("q2", 3, Answer(status="failed", detail="HTTP 500"))
    kept.add("q3", 3, _answer())
    assert _ids(kept.get("q1", 3)) == ["a", "b"]
    assert _ids(kept.get("q1", 1)) == ["a"]
    assert kept.get("q1", 4) is None
    assert kept.get("q2", 3) is None
    assert _ids(kept.get("q3", 3)) == []  # no result is an answer


def test_an_earlier_start_is_believed_once_an_answer_agrees(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = Kept("s", path)
    for key in ("q1", "q2", "q3"):
        first.add(key, 4, _answer("a", "b", key))
    path.write_bytes(path.read_bytes()[:-20])  # killed within the third line
    second = Kept("s", path)
    assert second.get("q2", 4) is None
    second.add("q1", 4, _answer("b", "q1", "a"))  # the same results; equal scores may change places
    assert _ids(second.get("q2", 4)) == ["a", "b", "q2"]
    assert second.get("q3", 4) is None
    second.add("q3", 4, _answer("c"))
    assert second.reused == {"q2"}
    third = Kept("s", path)
    third.add("q3", 4, _answer("c"))
    assert _ids(third.get("q1", 4)) == ["b", "q1", "a"]
    assert _ids(third.get("q2", 4)) == ["a", "b", "q2"]


def test_a_service_that_answers_otherwise_is_asked_everything_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.jsonl"
    for key in ("q1", "q2"):
        Kept("s", path).add(key, 4, _answer("a"))
    changed = Kept("s", path)
    changed.add("q1", 4, _answer("b"))
    assert changed.get("q2", 4) is None
    assert "[systems.s] answers otherwise than when it was stopped" in caplog.text
    third = Kept("s", path)
    third.add("q1", 4, _answer("b"))
    assert third.get("q2", 4) is None  # the old answer is gone from the file too


@pytest.mark.parametrize(("first", "second", "same"), [
    ([("a", 2.0), ("b", 1.0)], [("a", 2.0), ("b", 1.0)], True),
    ([("a", 1.0), ("b", 1.0)], [("b", 1.0), ("a", 1.0)], True),
    ([("a", 2.0), ("b", 1.0)], [("b", 2.0), ("a", 1.0)], False),
    ([("a", None), ("b", None)], [("b", None), ("a", None)], False),
    ([("a", 2.0), ("b", 1.0)], [("a", 2.0)], False),
    ([], [], True),
])
def test_when_two_lists_are_the_same(
    tmp_path: Path, first: list[tuple[str, float | None]], second: list[tuple[str, float | None]], same: bool
) -> None:
    path = tmp_path / "s.jsonl"
    before, now = (Answer([chunk for chunk, _ in one], [score for _, score in one]) for one in (first, second))
    for key in ("q1", "q2"):
        Kept("s", path).add(key, 4, before)
    kept = Kept("s", path)
    kept.add("q1", 4, now)
    assert (kept.get("q2", 4) is not None) == same


def test_answers_over_another_corpus_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    kept = Kept("s", path)
    kept.add("q1", 4, _answer("elsewhere"))
    with pytest.raises(DataError, match="0 of 1 returned ids resolve"):
        kept.checked([_answer("elsewhere")], KNOWN, ["{}"])
    assert (kept.get("q1", 4), path.exists()) == (None, False)


class Service(ThreadingHTTPServer):
    """Answers every question with all chunks; after ``until`` answers it holds its tongue."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, int]] = []
        self.until = 10**6
        self.silent, self.over, self.lock = threading.Event(), threading.Event(), threading.Lock()

    @property
    def system(self) -> str:
        return (f'[systems.web]\nkind = "http"\nfamily = "web"\nurl = "http://127.0.0.1:{self.server_address[1]}'
                '/s?q={query}&n={depth}"\nids = "ids"\nin_flight = 1\n')


class Handler(QuietHandler):
    server: Service

    def do_GET(self) -> None:
        sent = parse_qs(urlparse(self.path).query)
        with self.server.lock:
            self.server.asked.append((sent["q"][0], int(sent["n"][0])))
            late = len(self.server.asked) > self.server.until
        if late:
            self.server.silent.set()
            self.server.over.wait(60)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"ids": list(TENANT)}).encode())


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server
        server.over.set()


def counted(questions: pa.Table, depth: int) -> list[dict[str, Any]]:
    """A function that remembers what it was called with."""
    CALLS.append((len(questions), depth))
    return [{"question_id": question, "chunk_id": chunk} for question in questions.column("question_id").to_pylist()
            for chunk in list(TENANT)[:depth]]


def _adjust(path: Path, count: int) -> None:
    """So many questions, none with a scope; the service is what is scored."""
    path.write_text(path.read_text().replace('system = "production"', 'system = "web"'))
    jsonl(path.parent / "log.jsonl", [{"text": f"ferry {number} from the harbour", "time": "2026-03-09T10:00:00Z",
                                  "session": str(number)} for number in range(count)])


def test_the_parts_of_a_hybrid_are_asked_once(tmp_path: Path, service: Service) -> None:
    """Four times the depth, of which the part's own list is the head: 12 for a pool of depth 3."""
    own = '[systems.own]\nkind = "python"\nfamily = "own"\nentry = "tests.retrievers.test_kept:counted"\n'
    path = project(tmp_path, service.system + own + '[systems.both]\nkind = "hybrid"\nof = ["web", "own"]\n'
                   "[pool]\ndepth = 3\n")
    _adjust(path, 5)
    CALLS.clear()
    artifacts = rebuild(load_config(path), until="retrieve", quiet=True)
    assert len(service.asked) == len({query for query, _ in service.asked}) == 5
    assert {depth for _, depth in service.asked} == {12}
    assert CALLS == [(3, 12), (2, 12)]  # those sent ahead, then the rest
    run = artifacts.table("run")
    for system in ("web", "own", "both"):
        mine = run.filter(pa.array([name == system for name in run.column("system").to_pylist()]))
        assert {tuple(found) for found in lists(mine).values()} == {("a0", "a1", "a2")}
    assert not (tmp_path / "work" / "unfinished").exists()
    service.asked.clear()
    tables = {name: artifacts.table(name) for name in ("documents", "chunks", "questions")}
    checked = {one.system: one for one in check_systems(load_config(path), tables, questions=2)}
    assert {depth for _, depth in service.asked} == {12}  # what a rebuild will ask for
    # Eight chunks are all there are.
    web = checked["web"]
    assert (web.asked, web.short, web.longest, checked["own"].short, checked["both"].asked) == (2, 2, 8, 2, None)


def test_a_killed_stage_asks_only_the_rest(tmp_path: Path, service: Service) -> None:
    path = project(tmp_path, service.system)
    _adjust(path, 12)
    command = [sys.executable, "-m", "goldset", "rebuild", "-c", str(path), "--until", "retrieve"]
    service.until = 8
    with (tmp_path / "said.txt").open("w") as said:
        child = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said,
                                 env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        assert service.silent.wait(60), (tmp_path / "said.txt").read_text()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    answered = {query for query, _ in service.asked[:8]}
    assert len(answered) == 8
    service.until, service.asked = 10**6, []
    told: list[str] = []
    rebuild(load_config(path), until="retrieve", quiet=True, say=told.append)
    again = [query for query, _ in service.asked]
    # The first one sent ahead is asked again, to see that the service is what it was; then the four that are left.
    assert len(again) == 1 + 4
    assert again[0] in answered
    assert not set(again[1:]) & answered
    assert "  web: 7 questions had been answered before the stage was stopped, and were not asked again" in told
