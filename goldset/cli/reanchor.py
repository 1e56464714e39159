"""``goldset reanchor``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, chunk_fields, fields_option, json_option, named_fields, result, result_json, say
from goldset.errors import ExitCode, UsageError


@click.command("reanchor")
@click.argument("labelled", metavar="SET", type=PATH)
@click.option("--documents", required=True, type=PATH, help="The documents as they are now: JSONL or a folder.")
@click.option("--to", "target", type=PATH, help="Write the version on the new documents into this new folder.")
@click.option("--chunks", type=PATH, help="With --to: chunks of the new documents; default: cut as the version's were.")
@fields_option
@click.option("--document-fields", metavar="OURS=THEIRS,…", help="Fields of the documents, e.g. id=_id,text=body; "
                                                                "ours: id, text, title, url, metadata.")
@json_option
def command(labelled: Path, documents: Path, target: Path | None, chunks: Path | None, fields: str | None,
            document_fields: str | None, as_json: bool) -> int:
    """Where the evidence stands in documents that have changed.

    Exit code 1 where gold is stale: somebody must look before recall on the new documents means anything.
    """
    from goldset.formats.sets import load_set
    from goldset.pipeline.reanchor import reanchor_version, write_copy

    if chunks is not None and target is None:
        raise UsageError("--chunks says how to cut the copy; name its folder with --to FOLDER")
    names = chunk_fields(fields, chunks=chunks)
    found = reanchor_version(load_set(labelled), documents, named_fields(document_fields, "--document-fields"))
    if target is not None:
        write_copy(found, target, chunks=chunks, fields=names)
        say(f"written: {target}")
    if as_json:
        result_json(found.as_json())
    else:
        result(found.text())
    return int(ExitCode.CHECK_FAILED if found.stale else ExitCode.DONE)
