"""Serve the schedules: rebuild weekly, watch hourly. ``python -m flows.deploy [--config FILE] [--rebuild CRON] …``."""

from __future__ import annotations

from pathlib import Path

import click
from prefect import serve
from prefect.schedules import Cron

from flows.rebuild import rebuild_flow
from flows.watch import watch_flow
from goldset.config import load_config


@click.command()
@click.option("--config", default="configs/demo.toml", show_default=True, type=click.Path(exists=True))
@click.option("--rebuild", "rebuild_cron", default="0 3 * * 1", show_default=True, help="Cron of the rebuild.")
@click.option("--watch", "watch_cron", default="0 * * * *", show_default=True, help="Cron of the watch.")
def main(config: str, rebuild_cron: str, watch_cron: str) -> None:
    """Serve the rebuild and the watch in the time zone of the configuration, until interrupted."""
    path = str(Path(config).resolve())
    zone = load_config(Path(path)).project.timezone
    serve(
        rebuild_flow.to_deployment("rebuild", schedule=Cron(rebuild_cron, timezone=zone), parameters={"config": path}),
        watch_flow.to_deployment("watch", schedule=Cron(watch_cron, timezone=zone), parameters={"config": path}),
    )


if __name__ == "__main__":
    main()
