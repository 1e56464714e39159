"""The demo's story with Prefect's runner on the embedded server. ``make demo``, or ``python -m flows.demo``."""

from __future__ import annotations

import click
from prefect import flow

from flows.tasks import note_text, prefect_runner, run_flow, say, show
from goldset.pipeline.demo import tell


@flow(name="goldset-demo", persist_result=False)
def demo_flow(keep: str | None = None) -> str:
    """Audit a flattering set, rebuild it, publish, audit and score; returns the content hash of the version."""
    story = tell(keep=keep, runner=prefect_runner, say=say, show=show)
    note_text("before-and-after", story.table, "the headline figure, corrected step by step")
    return story.content_hash


@click.command("python -m flows.demo")
@click.option("--keep", metavar="DIR", help="Work in this folder. Default: workspace/demo.")
def main(keep: str | None) -> None:
    """The story of goldset demo, with rebuild, publish, audit and recall as Prefect tasks."""
    demo_flow(keep)


if __name__ == "__main__":
    run_flow(main)
