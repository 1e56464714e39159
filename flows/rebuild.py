"""The rebuild flow: from logs and corpus to an open queue. ``python -m flows.rebuild configs/demo.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from prefect import flow

from flows.tasks import note_table, prefect_runner, run_flow, say, show
from goldset.config import load_config
from goldset.pipeline import open_review, rebuild


@flow(name="goldset-rebuild", persist_result=False)
def rebuild_flow(config: str) -> dict[str, Any]:
    """Run the stages as tasks and open the queue; returns the queue's progress."""
    loaded = load_config(Path(config))
    artifacts = rebuild(loaded, runner=prefect_runner, say=say)
    progress = open_review(loaded, artifacts)
    stages = [{"stage": ref.stage, "key": ref.key, "reused": ref.reused} for ref in artifacts.refs.values()]
    note_table("stages", stages, "what ran and what was reused")
    show(f"queue: {progress['open']} of {progress['items']} items wait for people")
    return progress


@click.command("python -m flows.rebuild")
@click.argument("config", default="configs/demo.toml")
def main(config: str) -> None:
    """From logs and corpus to a queue for people, as a Prefect flow; resumes."""
    rebuild_flow(config)


if __name__ == "__main__":
    run_flow(main)
