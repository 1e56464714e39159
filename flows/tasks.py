"""Prefect's runner: each step of the pipeline becomes a task. Tasks hand on references, never tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from goldset.errors import ExternalError, GoldsetError


def _is_external(task_: Any, run: Any, state: Any) -> bool:
    """Retry what a service caused; bad data stays bad."""
    return isinstance(state.result(raise_on_failure=False), ExternalError)


def prefect_runner(name: str, step: Callable[[], Any]) -> Any:
    """Run one step as a task. Our content hashes decide what is skipped, so Prefect's cache is off."""

    def run_step() -> Any:
        return step()

    return task(run_step, name=name, cache_policy=NO_CACHE, persist_result=False, retries=2, retry_delay_seconds=10,
                retry_condition_fn=_is_external)()


def note_table(key: str, rows: list[dict[str, Any]], about: str) -> None:
    """A table on the flow run's page."""
    create_table_artifact(key=key, table=rows, description=about)


def note_text(key: str, text: str, about: str) -> None:
    """A text on the flow run's page."""
    create_markdown_artifact(key=key, markdown=f"```\n{text}\n```", description=about)


def run_flow(run: Callable[[], Any]) -> None:
    """Call a flow from the command line: one sentence and the documented exit code where it fails."""
    try:
        # The heartbeat thread sleeps a second at the end of each flow run.
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            run()
    except GoldsetError as error:
        click.echo(f"goldset: {error}", err=True)
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        click.echo("goldset: interrupted; what was finished is kept, run again to resume", err=True)
        sys.exit(130)


def say(line: str) -> None:
    """A line of progress, on stderr."""
    click.echo(line, err=True)
