"""The watch flow: is the queue closed? Then publish. ``python -m flows.watch configs/demo.toml``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow

from flows.publish import publish_flow
from flows.tasks import run_flow, say
from goldset.config import load_config
from goldset.pipeline import review_progress


@flow(name="goldset-watch", persist_result=False)
def watch_flow(config: str) -> dict[str, Any]:
    """Add the waves that the labels call for; publish when none is left."""
    progress = review_progress(load_config(Path(config)))
    if progress["open"]:
        say(f"queue: {progress['open']} of {progress['items']} items wait for people")
        return progress
    summary: dict[str, Any] = publish_flow(config)
    return summary


if __name__ == "__main__":
    run_flow(lambda: watch_flow(sys.argv[1] if len(sys.argv) > 1 else "configs/demo.toml"))
