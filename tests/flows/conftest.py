"""Projects in tmp folders that hold the demo as it is, and processes that run flows in them.

A killed flow leaves its embedded server behind, with inherited streams: output goes to files, and whole process groups
are ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
STAGES = ["corpus", "spans", "questions", "retrieve", "pool", "judge", "queue"]


@dataclass(frozen=True)
class Ran:
    """How a process ended."""

    code: int
    out: str
    err: str


def _listen_to_interrupts() -> None:
    """A shell's background job inherits an ignored SIGINT, and so would everything that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Process:
    """A process in a group of its own, its streams in files."""

    def __init__(self, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
        logs = cwd / "streams"
        logs.mkdir(exist_ok=True)
        number = len(list(logs.iterdir())) // 2
        self._out, self._err = logs / f"{number:03}.out", logs / f"{number:03}.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            self._process = subprocess.Popen([sys.executable, *arguments], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                             stdout=out, stderr=err, start_new_session=True,
                                             preexec_fn=_listen_to_interrupts)
        self.pid = self._process.pid

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def wait_for(self, line: str, seconds: float = 120) -> None:
        """Until a line that starts so is on stderr."""
        until = time.monotonic() + seconds
        while not any(found.startswith(line) for found in self.err.splitlines()):
            assert self._process.poll() is None, f"ended before '{line}': {self.err}"
            assert time.monotonic() < until, f"no '{line}' in {seconds} s: {self.err}"
            time.sleep(0.02)

    def send(self, number: int) -> None:
        """A signal to this process alone, not to its children."""
        os.kill(self.pid, number)

    def ended(self, seconds: float = 240) -> Ran:
        return Ran(self._process.wait(seconds), self.out, self.err)

    def group(self) -> list[int]:
        """The living processes of its group, e.g. an embedded server that outlived it."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, group = entry.read_text().rpartition(")")[2].split()[:3]
                if int(group) == self.pid and state != "Z":
                    found.append(int(entry.parent.name))
        return found

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


@dataclass(frozen=True)
class Project:
    """A folder with the demo's configuration and data, an empty workspace, and the shared caches."""

    root: Path
    env: dict[str, str]

    @property
    def config(self) -> Path:
        return self.root / "configs" / "demo.toml"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace" / "demo"

    @contextlib.contextmanager
    def started(self, *arguments: str, **env: str) -> Iterator[Process]:
        """``python arguments`` in the project; its whole group is ended with the block."""
        process = Process(list(arguments), self.root, {**self.env, **env})
        try:
            yield process
        finally:
            process.end()

    def run(self, *arguments: str, **env: str) -> Ran:
        with self.started(*arguments, **env) as process:
            return process.ended()

    def finished_stages(self) -> set[str]:
        return {path.parent.parent.name for path in (self.workspace / "artifacts").glob("*/*/manifest.json")
                if not path.parent.name.startswith(".")}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One Prefect home and one cache of embeddings for all; nothing of the caller's Prefect."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PREFECT_", "GOLDSET_")) and name != "DO_NOT_TRACK"}
    cache = os.environ.get("GOLDSET_CACHE") or str(tmp_path_factory.mktemp("cache"))
    return {**env, "PYTHONPATH": str(CHECKOUT), "GOLDSET_CACHE": cache, "PYTHONUNBUFFERED": "1",
            "PREFECT_HOME": str(tmp_path_factory.mktemp("prefect"))}


@pytest.fixture(scope="session")
def new_project(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Callable[[str], Project]:
    """Name -> a project of its own. The configuration is copied, so its relative paths lead to this workspace."""

    def make(name: str) -> Project:
        root = tmp_path_factory.mktemp(name)
        (root / "configs").mkdir()
        shutil.copy(CHECKOUT / "configs" / "demo.toml", root / "configs")
        (root / "configs" / "rubrics").symlink_to(CHECKOUT / "configs" / "rubrics")
        (root / "data").symlink_to(CHECKOUT / "data")
        return Project(root, environment)

    return make


@pytest.fixture(scope="session")
def server(new_project: Callable[[str], Project]) -> Iterator[dict[str, str]]:
    """The environment that names a running server: as at work, and seconds less a flow than an embedded one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    with new_project("server").started("-m", "prefect", "server", "start", "--no-ui", "--port", str(port), **quiet):
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/health").status_code == httpx.codes.OK:
                    break
            assert time.monotonic() < until, "no server"
            time.sleep(0.2)
        yield {"PREFECT_API_URL": url}


@pytest.fixture(scope="session")
def finish() -> Callable[[Project], str]:
    """Let the recorded readers answer, publish, and return the content hash of the version."""

    def run(project: Project) -> str:
        from goldset.config import load_config
        from goldset.pipeline import publish, replay_review

        config = load_config(project.config)
        replay_review(config)
        published = publish(config)
        assert published.new
        content: str = published.manifest["content_hash"]
        return content

    return run


@pytest.fixture(scope="session")
def plain_hash(new_project: Callable[[str], Project], finish: Callable[[Project], str]) -> str:
    """``goldset rebuild`` in an empty workspace, answered and published."""
    project = new_project("plain")
    ran = project.run("-m", "goldset", "rebuild", "-c", "configs/demo.toml")
    assert ran.code == 0, ran.err
    # Notes on a stage are indented under it.
    assert [line.partition(":")[0] for line in ran.err.splitlines() if not line.startswith(" ")] == STAGES
    assert "reused" not in ran.err
    return finish(project)
