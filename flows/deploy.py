"""Serve the schedules: rebuild weekly, watch hourly. ``python -m flows.deploy [--config FILE] [--rebuild CRON] …``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from prefect import serve
from prefect.schedules import Cron, Schedule
from prefect.types.entrypoint import EntrypointType

from flows.rebuild import rebuild_flow
from flows.server import scheduling_server
from flows.tasks import run_flow, say
from flows.watch import watch_flow
from goldset.config import load_config
from goldset.errors import UsageError

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment


def deployments(config: Path, rebuild_cron: str, watch_cron: str) -> list[RunnerDeployment]:
    """The two deployments, on crons in the time zone of the configuration.

    Raises:
        ConfigError: the configuration cannot be used; better now than at three in the morning.
        UsageError: a cron expression cannot be read.
    """
    path = config.resolve()
    zone = load_config(config).project.timezone
    return [  # to_deployment is a coroutine only where a loop runs
        cast("RunnerDeployment", flow.to_deployment(
            name, schedule=_cron(cron, zone, f"--{name}"), parameters={"config": str(path)},
            entrypoint_type=EntrypointType.MODULE_PATH))
        for flow, name, cron in ((rebuild_flow, "rebuild", rebuild_cron), (watch_flow, "watch", watch_cron))
    ]


def _cron(expression: str, zone: str, option: str) -> Schedule:
    try:
        return Cron(expression, timezone=zone)
    except ValueError as error:
        raise UsageError(f"{option} '{expression}': not a cron expression; write minute, hour, day, month and weekday, "
                         "e.g. '0 3 * * 1'") from error


@click.command("python -m flows.deploy")
@click.option("--config", default="configs/demo.toml", show_default=True, type=click.Path(path_type=Path))
@click.option("--rebuild", "rebuild_cron", default="0 3 * * 1", show_default=True, help="Cron of the rebuild.")
@click.option("--watch", "watch_cron", default="0 * * * *", show_default=True, help="Cron of the watch.")
def main(config: Path, rebuild_cron: str, watch_cron: str) -> None:
    """Serve the rebuild and the watch in the time zone of the configuration, until interrupted.

    Uses the server that PREFECT_API_URL names; without it, starts one on this machine and stops it at the end.
    """
    served = deployments(config, rebuild_cron, watch_cron)
    with scheduling_server() as address:
        zone = load_config(config).project.timezone
        say(f"server: {address}")
        say(f"goldset-rebuild/rebuild: '{rebuild_cron}', goldset-watch/watch: '{watch_cron}', in the time zone {zone}")
        serve(*served, print_starting_message=False)


if __name__ == "__main__":
    run_flow(main)
