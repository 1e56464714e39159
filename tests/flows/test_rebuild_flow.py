"""The rebuild as a flow: the same version as the command's, whatever happens on the way, and a quiet stderr."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest

from goldset.errors import ExitCode
from goldset.store import Workspace
from tests.flows.conftest import STAGES, Project

pytestmark = [pytest.mark.flows, pytest.mark.slow]
REBUILD = ("-m", "flows.rebuild", "configs/demo.toml")


def _stages(err: str) -> dict[str, str]:
    """Stage -> what was said of it. Any line that is not ours fails: a log record, a traceback, a warning."""
    said: dict[str, str] = {}
    for line in err.splitlines():
        if said and line.startswith("  "):
            continue  # a note on the stage above it
        found = re.fullmatch(r"(\w+): (nothing changed, reused|[\d,]+ \w+(?:, [\d,]+ \w+)* in [\d.]+ s)", line)
        assert found, f"not a line of ours: {line!r}"
        said[found[1]] = "reused" if "reused" in found[2] else "run"
    return said


def test_flow_and_command_end_with_the_same_version(new_project: Callable[[str], Project],
                                                    finish: Callable[[Project], str], plain_hash: str,
                                                    server: dict[str, str]) -> None:
    project = new_project("flow")
    ran = project.run(*REBUILD)
    assert ran.code == 0, ran.err
    assert _stages(ran.err) == dict.fromkeys(STAGES, "run")
    assert re.fullmatch(r"queue: (\d+) of \1 items wait for people\n", ran.out)

    watched = project.run("-m", "flows.watch", "configs/demo.toml", **server)
    assert (watched.code, watched.err) == (0, ""), "an open queue is no failure"
    assert watched.out == ran.out.rstrip("\n") + ", 0 conflicts for a third\n"
    assert not (project.workspace / "gold").exists(), "nothing is published while people read"

    refused = project.run("-m", "flows.publish", "configs/demo.toml", **server)
    assert refused.code == ExitCode.REVIEW_INCOMPLETE
    assert re.fullmatch(r"goldset: (\d+) of \1 items wait for people .*--partial\n", refused.err)

    assert finish(project) == plain_hash


def test_killed_twice_and_started_again(new_project: Callable[[str], Project], finish: Callable[[Project], str],
                                        plain_hash: str) -> None:
    """SIGKILL as retrieve and then as judge begins. The servers that the dead leave behind live on to the end."""
    project = new_project("killed")
    with project.started(*REBUILD) as first:
        first.wait_for("questions: ")
        first.send(signal.SIGKILL)
        assert first.ended().code == -signal.SIGKILL
        done = project.finished_stages()
        assert {"corpus", "spans", "questions"} <= done
        assert "judge" not in done
        assert first.group(), "the embedded server outlives its flow; without that this test shows less than it says"

        with project.started(*REBUILD) as second:
            second.wait_for("pool: ")
            second.send(signal.SIGKILL)
            assert second.ended().code == -signal.SIGKILL
            said = _stages(second.err)
            assert {stage for stage, how in said.items() if how == "reused"} == done
            done = project.finished_stages()
            assert {"retrieve", "pool"} <= done
            assert "queue" not in done

            third = project.run(*REBUILD)
    assert third.code == 0, third.err
    assert _stages(third.err) == {stage: "reused" if stage in done else "run" for stage in STAGES}
    assert finish(project) == plain_hash


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(new_project: Callable[[str], Project], number: signal.Signals) -> None:
    project = new_project("interrupted")
    with project.started(*REBUILD) as process:
        process.wait_for("questions: ")
        process.send(number)
        ran = process.ended(60)
        assert ran.code == ExitCode.INTERRUPTED
        *before, last = ran.err.split("\n\n")[0], ran.err.rstrip("\n").rpartition("\n")[2]
        assert set(_stages("\n".join(before))) <= set(STAGES[:4])
        assert last == "goldset: interrupted; what was finished is kept, run again to resume"
        assert process.group() == [], "the embedded server ends with its flow"


def test_a_bad_configuration_is_one_sentence(new_project: Callable[[str], Project]) -> None:
    """The same sentence and code as the command's, and nothing is made."""
    project = new_project("bad")
    project.config.write_text(project.config.read_text().replace("depth = 50", "dept = 50"))
    flow = project.run(*REBUILD)
    command = project.run("-m", "goldset", "rebuild", "-c", "configs/demo.toml")
    assert flow.code == command.code == ExitCode.BAD_INPUT
    assert flow.out == ""
    assert flow.err == command.err
    assert flow.err.startswith("goldset: configs/demo.toml")
    assert "'depth'" in flow.err, "the nearest key is offered"
    assert flow.err.count("\n") == 1
    assert not project.workspace.exists()


def test_a_locked_workspace_names_its_holder(new_project: Callable[[str], Project], server: dict[str, str]) -> None:
    project = new_project("locked")
    with Workspace(project.workspace).open().lock("rebuild"):
        ran = project.run(*REBUILD, **server)
    assert ran.code == ExitCode.EXTERNAL
    assert re.fullmatch(r"goldset: \S+: the workspace is locked by goldset rebuild \(process \d+\); .*\n", ran.err)
    assert project.finished_stages() == set()
