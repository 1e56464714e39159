"""The schedules: what is deployed, that it runs, and how it ends. Prefect's settings and retries."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from goldset.errors import ExitCode
from tests.flows.conftest import Project

pytestmark = [pytest.mark.flows, pytest.mark.slow]
ZONE = "Europe/Berlin"


@pytest.fixture
def project(new_project: Callable[[str], Project]) -> Project:
    """The demo in a zone that is never UTC."""
    made = new_project("deploy")
    text = made.config.read_text()
    assert 'timezone = "UTC"' in text
    made.config.write_text(text.replace('timezone = "UTC"', f'timezone = "{ZONE}"'))
    return made


def test_the_deployments(project: Project) -> None:
    ran = project.run("-c", """
import json, pathlib
from flows.deploy import deployments
print(json.dumps([[d.full_name, d.entrypoint, d.parameters,
                   [[s.schedule.cron, s.schedule.timezone] for s in d.schedules]]
                  for d in deployments(pathlib.Path("configs/demo.toml"), "5 3 * * 1", "*/20 * * * *")]))
""")
    assert ran.code == 0, ran.err
    parameters = {"config": str(project.config)}
    assert json.loads(ran.out) == [
        ["goldset-rebuild/rebuild", "flows.rebuild.rebuild_flow", parameters, [["5 3 * * 1", ZONE]]],
        ["goldset-watch/watch", "flows.watch.watch_flow", parameters, [["*/20 * * * *", ZONE]]]]


@pytest.mark.parametrize(("arguments", "code", "sentence"), [
    (("--watch", "hourly"), ExitCode.USAGE, "goldset: --watch 'hourly': not a cron expression"),
    (("--config", "nowhere.toml"), ExitCode.BAD_INPUT, "goldset: nowhere.toml: no such configuration file"),
])
def test_what_cannot_be_served_is_said_at_once(project: Project, arguments: tuple[str, ...], code: int,
                                               sentence: str) -> None:
    ran = project.run("-m", "flows.deploy", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(sentence)
    assert ran.err.count("\n") == 1


def _ask(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = httpx.get(address + path) if body is None else httpx.post(address + path, json=body)
    return answer.raise_for_status().json()


def _until(ask: Callable[[], Any], seconds: float = 60) -> Any:
    """What ``ask`` returns as soon as it is something."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end, f"nothing in {seconds} s"
        time.sleep(0.2)
    return found


def test_served_on_a_server_of_its_own_until_interrupted(project: Project) -> None:
    with project.started("-m", "flows.deploy", "--rebuild", "5 3 * * 1", "--watch", "7 12 * * *",
                         PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS="1",
                         PREFECT_RUNNER_POLL_FREQUENCY="1") as process:
        process.wait_for("goldset-rebuild/rebuild: ")
        address = process.err.split()[1]
        both = _until(lambda: (found := _ask(address, "/deployments/filter", {})) and len(found) == 2 and found)
        served = {each["name"]: each for each in both}
        assert {name: [(each["schedule"]["cron"], each["schedule"]["timezone"]) for each in one["schedules"]]
                for name, one in served.items()} == {"rebuild": [("5 3 * * 1", ZONE)], "watch": [("7 12 * * *", ZONE)]}

        def scheduled(name: str) -> list[datetime]:
            found = _ask(address, "/flow_runs/filter", {"flow_runs": {
                "state": {"type": {"any_": ["SCHEDULED"]}}, "deployment_id": {"any_": [served[name]["id"]]}}})
            return [datetime.fromisoformat(run["expected_start_time"]).astimezone(ZoneInfo(ZONE)) for run in found]

        # On the wall clock of the zone, whatever the season.
        rebuilds = _until(lambda: scheduled("rebuild"))
        assert {(when.weekday(), when.hour, when.minute) for when in rebuilds} == {(0, 3, 5)}
        assert {(when.hour, when.minute) for when in _until(lambda: scheduled("watch"))} == {(12, 7)}

        # No rebuild was run here, so this run fails, with our sentence as its message: it did run our flow.
        run = _ask(address, f"/deployments/{served['watch']['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        state = _until(lambda: (found := _ask(address, f"/flow_runs/{run['id']}")["state"])["type"] in (
            "COMPLETED", "FAILED", "CRASHED") and found)
        assert state["type"] == "FAILED"
        assert "no finished rebuild (stage 'corpus' is missing)" in state["message"]

        process.send(signal.SIGINT)
        ran = process.ended(60)
        assert process.group() == []
    assert (ran.code, ran.out) == (0, "")
    # On a busy machine Prefect says at the end that it still sends its log; nothing else is added to what we say.
    said = [line for line in ran.err.splitlines() if "Still processing items" not in line]
    assert said == [f"server: {address}", "goldset-rebuild/rebuild: '5 3 * * 1', goldset-watch/watch: '7 12 * * *', "
                    f"in the time zone {ZONE}"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health")


def test_settings_are_defaults_for_a_quiet_local_server(project: Project) -> None:
    code = """
import json, flows, os, prefect.settings as s
print(json.dumps([str(s.PREFECT_HOME.value()), s.PREFECT_API_URL.value(), s.PREFECT_SERVER_ANALYTICS_ENABLED.value(),
                  os.environ["DO_NOT_TRACK"], s.PREFECT_LOGGING_LEVEL.value(), s.PREFECT_SERVER_LOGGING_LEVEL.value()]))
"""
    bare = Project(project.root, {name: value for name, value in project.env.items() if name != "PREFECT_HOME"})
    ran = bare.run("-c", code)
    assert json.loads(ran.out) == [str(project.root / ".prefect"), None, False, "1", "CRITICAL", "CRITICAL"], ran.err
    named = bare.run("-c", code, PREFECT_API_URL="http://127.0.0.1:9/api", PREFECT_LOGGING_LEVEL="INFO")
    assert json.loads(named.out)[1] == "http://127.0.0.1:9/api"
    assert json.loads(named.out)[4] == "INFO"


def test_only_what_a_service_caused_is_retried(project: Project, server: dict[str, str]) -> None:
    """A step that fails twice with an external error ends well at the third call; bad data is read once."""
    ran = project.run("-c", """
import flows.tasks
from prefect import flow
from goldset.errors import DataError, ExternalError

flows.tasks.RETRY_SECONDS = 0.0
calls = {"service": 0, "data": 0}

def service():
    calls["service"] += 1
    if calls["service"] < 3:
        raise ExternalError("the service is away")
    return "here"

def data():
    calls["data"] += 1
    raise DataError("a bad line")

@flow(persist_result=False)
def both():
    found = flows.tasks.prefect_runner("service", service)
    try:
        flows.tasks.prefect_runner("data", data)
    except DataError as error:
        return found, str(error)

print(both(), calls)
""", **server)
    assert ran.out == "('here', 'a bad line') {'service': 3, 'data': 1}\n", ran.err
    assert (ran.code, ran.err) == (0, "")
