"""``goldset demo``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, result, say


@click.command("demo")
@click.option("--keep", metavar="DIR", type=PATH, help="Work in this folder. Default: workspace/demo.")
@click.option("--serve", is_flag=True, help="Afterwards show the queue, unanswered, in a browser.")
def command(keep: Path | None, serve: bool) -> None:
    """The story on the embedded data: audit, rebuild, publish, audit again."""
    from goldset.pipeline.demo import tell, unread_config

    tell(keep=keep, say=say, show=result)
    if serve:
        from goldset.cli.review import serve_page

        serve_page(unread_config(keep or Path("workspace") / "demo"), "127.0.0.1", 8765)
