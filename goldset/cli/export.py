"""``goldset export``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, chunk_fields, fields_option, numbers, open_runs, result, run_option
from goldset.errors import DataError, UsageError

FORMATS = ("qrels", "beir", "jsonl", "csv", "ragas", "llamaindex", "langsmith")


@click.command("export")
@click.argument("labelled", metavar="SET", type=PATH)
@click.option("--to", "folder", required=True, type=PATH, help="Folder to write into; weights.tsv and export.json too.")
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS),
              help="What to write, several times for several; default: qrels and beir.")
@click.option("--chunks", type=PATH, help="Another chunking of the same documents (JSONL); default: the version's own.")
@fields_option
@run_option
@click.option("--k", "cutoffs", metavar="N[,N]", help="With --run: from plain recall at N over these files to ours, "
                                                      "step by step; default: the serving k.")
def command(labelled: Path, folder: Path, formats: tuple[str, ...], chunks: Path | None, fields: str | None,
            runs: tuple[str, ...], cutoffs: str | None) -> None:
    """A published version for other tools."""
    from goldset.formats.sets import load_set
    from goldset.gold import export_set
    from goldset.pipeline.reconcile import reconcile, reconciled_text

    names = chunk_fields(fields, chunks=chunks)
    if cutoffs and not runs:
        raise UsageError(f"--k {cutoffs}: cuts the list of a run; give it with --run NAME=FILE")
    gold = load_set(labelled)
    if gold.kind != "published":
        raise DataError(f"{labelled}: not a published version (it is {gold.kind}); only versions are exported")
    chosen, table, name = tuple(dict.fromkeys(formats)), None, "the version's own chunks"
    if chunks is not None:
        from goldset.pipeline.chunking import read_chunking

        table, name = read_chunking(gold, chunks, names), chunks.name
    served = gold.manifest.get("scoring", {}).get("served_k")
    ks = numbers(cutoffs, "--k") or ([int(served)] if served else [])
    if runs and not ks:
        raise UsageError("no cutoff: name the k that production serves, e.g. --k 5")
    steps = {system: [reconcile(gold, run, k=k, chunks=table) for k in ks] for system, run in open_runs(runs).items()}
    counts = export_set(gold, folder, chunks=table, chunking=name, formats=chosen, reconciled=steps)
    result("\n".join([
        f"{counts['pairs']} pairs of {counts['gold']} gold spans to {folder} ({', '.join(counts['formats'])})",
        counts["reconcile"],
        *(reconciled_text(system, found) for system, each in steps.items() for found in each)]))
