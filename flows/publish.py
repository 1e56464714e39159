"""The publish flow: labels to a version, audited and scored. ``python -m flows.publish configs/demo.toml``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow

from flows.tasks import note_text, prefect_runner, run_flow, say
from goldset.config import load_config
from goldset.pipeline import publish


@flow(name="goldset-publish", persist_result=False)
def publish_flow(config: str, partial: bool = False) -> dict[str, Any]:
    """Publish, audit and score as tasks; returns the version's summary."""
    published = publish(load_config(Path(config)), partial=partial, runner=prefect_runner, say=say)
    note_text("version", published.text(), "the published version")
    say(published.text())
    return published.summary()


if __name__ == "__main__":
    run_flow(lambda: publish_flow(sys.argv[1] if len(sys.argv) > 1 else "configs/demo.toml"))
