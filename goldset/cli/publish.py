"""``goldset publish``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import config_option, json_option, result, result_json, say


@click.command("publish")
@config_option
@click.option("--partial", is_flag=True, help="Publish although the review is not complete; every output says so.")
@json_option
def command(config_path: Path, partial: bool, as_json: bool) -> None:
    """People's labels to a published version, audited and scored."""
    from goldset.config import load_config
    from goldset.pipeline import publish

    published = publish(load_config(config_path), partial=partial, say=say)
    if as_json:
        result_json({"schema": "goldset.publish/1", **published.summary()})
    else:
        result(published.text())
