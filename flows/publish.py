"""The publish flow: labels to a version, audited and scored. ``python -m flows.publish configs/demo.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from prefect import flow

from flows.tasks import note_text, prefect_runner, run_flow, say, show
from goldset.config import load_config
from goldset.pipeline import publish


@flow(name="goldset-publish", persist_result=False)
def publish_flow(config: str, partial: bool = False) -> dict[str, Any]:
    """Publish, audit and score as tasks; returns the version's summary."""
    published = publish(load_config(Path(config)), partial=partial, runner=prefect_runner, say=say)
    note_text("version", published.text(), "the published version")
    show(published.text())
    return published.summary()


@click.command("python -m flows.publish")
@click.argument("config", default="configs/demo.toml")
@click.option("--partial", is_flag=True, help="Publish although the review is not complete; every output says so.")
def main(config: str, partial: bool) -> None:
    """People's labels to a published version, audited and scored, as a Prefect flow."""
    publish_flow(config, partial)


if __name__ == "__main__":
    run_flow(main)
