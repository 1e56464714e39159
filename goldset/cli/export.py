"""``goldset export``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, result
from goldset.errors import DataError


@click.command("export")
@click.argument("labelled", metavar="SET", type=PATH)
@click.option("--to", "folder", required=True, type=PATH, help="Folder to write qrels.txt, weights.tsv and beir/ into.")
@click.option("--chunks", type=PATH, help="Another chunking of the same documents (JSONL); default: the version's own.")
def command(labelled: Path, folder: Path, chunks: Path | None) -> None:
    """A published version for other tools."""
    from goldset.formats.sets import load_set
    from goldset.gold import export_set

    gold = load_set(labelled)
    if gold.kind != "published":
        raise DataError(f"{labelled}: not a published version (it is {gold.kind}); only versions are exported")
    if chunks is None:
        counts = export_set(gold, folder)
    else:
        from goldset.pipeline.chunking import read_chunking

        counts = export_set(gold, folder, chunks=read_chunking(gold, chunks), chunking=chunks.name)
    result(f"{counts['pairs']} pairs of {counts['gold']} gold spans to {folder}\n{counts['reconcile']}")
