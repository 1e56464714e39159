"""The watch flow: is the queue closed? Then publish. ``python -m flows.watch configs/demo.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from prefect import flow

from flows.publish import publish_flow
from flows.tasks import run_flow, show
from goldset.config import load_config
from goldset.pipeline import review_progress


@flow(name="goldset-watch", persist_result=False)
def watch_flow(config: str) -> dict[str, Any]:
    """Add the waves that the labels call for; publish when none is left."""
    progress = review_progress(load_config(Path(config)))
    if progress["open"] or progress["conflicts"]:
        show(f"queue: {progress['open']} of {progress['items']} items wait for people, "
             f"{progress['conflicts']} conflicts for a third")
        return progress
    summary: dict[str, Any] = publish_flow(config)
    return summary


@click.command("python -m flows.watch")
@click.argument("config", default="configs/demo.toml")
def main(config: str) -> None:
    """Publish if nothing in the queue waits for people any more, as a Prefect flow."""
    watch_flow(config)


if __name__ == "__main__":
    run_flow(main)
