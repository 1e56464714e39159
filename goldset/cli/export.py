"""``goldset export``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, fields_option, named_fields, result
from goldset.errors import DataError

FORMATS = ("qrels", "beir", "jsonl", "csv", "ragas", "llamaindex", "langsmith")


@click.command("export")
@click.argument("labelled", metavar="SET", type=PATH)
@click.option("--to", "folder", required=True, type=PATH, help="Folder to write into; weights.tsv and export.json too.")
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS),
              help="What to write, several times for several; default: qrels and beir.")
@click.option("--chunks", type=PATH, help="Another chunking of the same documents (JSONL); default: the version's own.")
@fields_option
def command(labelled: Path, folder: Path, formats: tuple[str, ...], chunks: Path | None, fields: str | None) -> None:
    """A published version for other tools."""
    from goldset.formats.sets import load_set
    from goldset.gold import export_set

    names = named_fields(fields, chunks=chunks)
    gold = load_set(labelled)
    if gold.kind != "published":
        raise DataError(f"{labelled}: not a published version (it is {gold.kind}); only versions are exported")
    chosen = tuple(dict.fromkeys(formats))
    if chunks is None:
        counts = export_set(gold, folder, formats=chosen)
    else:
        from goldset.pipeline.chunking import read_chunking

        counts = export_set(gold, folder, chunks=read_chunking(gold, chunks, names),
                            chunking=chunks.name, formats=chosen)
    result(f"{counts['pairs']} pairs of {counts['gold']} gold spans to {folder} ({', '.join(counts['formats'])})\n"
           f"{counts['reconcile']}")
