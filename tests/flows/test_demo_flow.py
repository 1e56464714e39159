"""The demo's story under Prefect's runner, the other flows on the version it publishes, and what Prefect keeps."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goldset.store import read_json
from tests.flows.conftest import CHECKOUT, STAGES, Project, Ran

pytestmark = [pytest.mark.flows, pytest.mark.slow]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
SET = "workspace/demo/gold/demo/v1"
RUN = "production=data/demo/production.run.gz"


@pytest.fixture(scope="module")
def story(new_project: Callable[[str], Project], plain_hash: str) -> tuple[Project, Ran]:
    """``python -m flows.demo`` in an empty folder; plain_hash only fills the cache before."""
    project = new_project("story")
    ran = project.run("-m", "flows.demo")
    assert ran.code == 0, ran.err
    return project, ran


def _neutral(text: str, project: Project) -> str:
    """Without what differs between two right runs: the folder and the seconds."""
    return re.sub(r"in [\d.]+ s$", "in … s", text.replace(str(project.root), "…"), flags=re.MULTILINE)


def test_the_same_story_with_and_without_prefect(story: tuple[Project, Ran], new_project: Callable[[str], Project],
                                                 plain_hash: str) -> None:
    project, flow = story
    other = new_project("told")
    command = other.run("-m", "goldset", "demo")
    assert command.code == 0, command.err
    assert len(flow.out.splitlines()) > 40, "a story, not an empty page"
    assert plain_hash in flow.out
    assert _neutral(flow.out, project) == _neutral(command.out, other)
    assert _neutral(flow.err, project) == _neutral(command.err, other)
    hashes = {read_json(place.root / SET / "manifest.json")["content_hash"] for place in (project, other)}
    assert hashes == {plain_hash}
    shown = re.search(r"<!-- generated: demo -->\n```\n(.*?)\n```\n<!-- end -->", README, re.DOTALL)
    assert shown is not None, "run 'python tests/generate_docs.py --demo'"
    assert command.out.strip() == shown[1]


def test_publishing_and_watching_again_change_nothing(story: tuple[Project, Ran], server: dict[str, str]) -> None:
    project, _ = story
    before = sorted(path.name for path in (project.workspace / "gold" / "demo").iterdir())
    published, watched = (project.run("-m", f"flows.{name}", "configs/demo.toml", **server)
                          for name in ("publish", "watch"))
    assert published == watched, "the watch found nothing open and published"
    assert published == project.run("-m", "goldset", "publish", "-c", "configs/demo.toml")
    assert published.code == 0
    assert published.out.startswith("demo/v1: nothing changed, same version\n")
    assert published.err == f"publish: {project.workspace / 'gold' / 'demo' / 'v1'} (nothing changed)\n"
    assert sorted(path.name for path in (project.workspace / "gold" / "demo").iterdir()) == before == ["v1"]


def test_audit_and_recall_say_what_the_commands_say(story: tuple[Project, Ran], server: dict[str, str]) -> None:
    project, _ = story
    audits = [project.run("-m", "flows.audit", SET, RUN, "--serving-k", "5", **server),
              project.run("-m", "goldset", "audit", SET, "--run", RUN, "--serving-k", "5")]
    assert audits[0] == audits[1]
    assert audits[0].code in (0, 1, 6)
    assert audits[0].err == f"read {SET}: a published version of this project\n"
    recalls = [project.run("-m", "flows.recall", SET, "5", RUN, **server),
               project.run("-m", "goldset", "recall", SET, "--run", RUN, "--k", "5")]
    assert recalls[0] == recalls[1]
    assert recalls[0].code == 0
    assert "production" in recalls[0].out


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("flows.recall", SET), "Missing argument 'K'"),
    (("flows.recall", SET, "0", RUN), "0 is not in the range x>=1"),
    (("flows.audit", SET, "production"), "write a run as NAME=FILE"),
    (("flows.audit", SET, RUN, RUN), "the name 'production' is used twice"),
])
def test_wrong_usage(new_project: Callable[[str], Project], arguments: tuple[str, ...], sentence: str) -> None:
    ran = new_project("usage").run("-m", *arguments)
    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err


def _cells(database: Path) -> Iterator[tuple[str, str]]:
    """Table and text of every cell of Prefect's database."""
    with sqlite3.connect(database) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield from ((table, cell.decode(errors="replace") if isinstance(cell, bytes) else cell)
                            for cell in row if isinstance(cell, str | bytes))


def test_prefect_keeps_names_and_states_only(story: tuple[Project, Ran]) -> None:
    """No result is stored, no table crosses, and no question is in parameters, logs, artifacts or anywhere else."""
    project, _ = story
    home = Path(project.env["PREFECT_HOME"])
    assert not list((home / "storage").rglob("*")), "a task's result was persisted"
    database = home / "prefect.db"
    with sqlite3.connect(database) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM task_run")}
        flow_parameters = [json.loads(value) for (value,) in connection.execute("SELECT parameters FROM flow_run")]
        inputs = [json.loads(value) for (value,) in connection.execute("SELECT task_inputs FROM task_run")]
        artifacts = [value for (value,) in
                     connection.execute("SELECT data FROM artifact WHERE key = 'before-and-after'")]
    assert {name.rpartition("-")[0] for name in names} >= {*STAGES, "audit-old-set", "replay", "publish", "audit"}
    # A sub-flow's parameters are named there; nothing is handed from task to task through Prefect.
    assert all(value == [] for each in inputs for value in each.values())
    assert {key for parameters in flow_parameters for key in parameters} <= {
        "config", "keep", "partial", "labelled", "runs", "k", "relevant_from", "eval_k", "serving_k"}

    log = (CHECKOUT / "data" / "demo" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {text for line in log if '"q"' in line and len(text := _question(line)) > 20}
    assert len(questions) > 50
    assert any("the old headline" in value for value in artifacts), "the search below looks where texts would be"
    leaked = {(table, text) for table, cell in _cells(database) for text in questions
              if text in cell or json.dumps(text)[1:-1] in cell}
    assert leaked == set()


def _question(line: str) -> str:
    """The text of a log line; empty where the line is damaged."""
    try:
        return str(json.loads(line)["q"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return ""
