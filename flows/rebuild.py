"""The rebuild flow: from logs and corpus to an open queue. ``python -m flows.rebuild configs/demo.toml``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow

from flows.tasks import note_table, prefect_runner, run_flow, say
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
    say(f"queue: {progress['open']} of {progress['items']} items wait for people")
    return progress


if __name__ == "__main__":
    run_flow(lambda: rebuild_flow(sys.argv[1] if len(sys.argv) > 1 else "configs/demo.toml"))
