"""Prefect's runner: each step of the pipeline becomes a task. Tasks hand on references, never tables."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from goldset.errors import ExitCode, ExternalError, GoldsetError, UsageError

RETRIES = 2
RETRY_SECONDS = 10.0  # a service that restarts needs longer than the client's own back-off


def _is_external(task_: Any, run: Any, state: Any) -> bool:
    """Retry what a service caused; bad data stays bad."""
    return isinstance(state.result(raise_on_failure=False), ExternalError)


def prefect_runner(name: str, step: Callable[[], Any]) -> Any:
    """Run one step as a task. Our content hashes decide what is skipped, so Prefect's cache is off.

    The step takes no parameters and its result stays in this process: Prefect stores names and states, never a
    table or a question.
    """

    def run_step() -> Any:
        return step()

    return task(name=name, cache_policy=NO_CACHE, persist_result=False, retries=RETRIES,
                retry_delay_seconds=RETRY_SECONDS, retry_condition_fn=_is_external)(run_step)()


def note_table(key: str, rows: list[dict[str, Any]], about: str) -> None:
    """A table on the flow run's page."""
    create_table_artifact(key=key, table=rows, description=about)


def note_text(key: str, text: str, about: str) -> None:
    """A text on the flow run's page."""
    create_markdown_artifact(key=key, markdown=f"```\n{text}\n```", description=about)


def run_files(arguments: tuple[str, ...]) -> dict[str, str]:
    """``NAME=FILE`` arguments -> file by name of the system. UsageError where one is neither."""
    files: dict[str, str] = {}
    for argument in arguments:
        name, _, file = argument.partition("=")
        if not (name and file):
            raise UsageError(f"{argument}: write a run as NAME=FILE, e.g. production=production.run.gz")
        if name in files:
            raise UsageError(f"{argument}: the name '{name}' is used twice")
        files[name] = str(Path(file))
    return files


def _interrupt(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def run_flow(command: click.Command) -> None:
    """Call a flow's command line: one sentence and the documented exit code where it fails."""
    # Prefect ends the process at SIGTERM without its exit handlers, which would leave the embedded server behind.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # The heartbeat thread sleeps a second at the end of each flow run.
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            code = int(command.main(standalone_mode=False) or 0)
    except GoldsetError as error:
        click.echo(f"goldset: {error}", err=True)
        code = int(error.exit_code)
    except click.ClickException as error:
        error.show(sys.stderr)
        code = int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("goldset: interrupted; what was finished is kept, run again to resume", err=True)
        code = int(ExitCode.INTERRUPTED)
    sys.exit(code)


def say(line: str) -> None:
    """A line of progress, on stderr."""
    click.echo(line, err=True)


def show(text: str) -> None:
    """The result, on stdout."""
    click.echo(text.rstrip("\n"))
