"""``goldset spans``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from goldset.cli.common import PATH, json_option, result, result_json
from goldset.errors import UsageError

_WIDTH, _QUOTE = 40, 56


@click.command("spans")
@click.argument("file", type=PATH)
@click.option("--doc", "doc_id", metavar="ID", help="Which document of a JSONL file; default: the first.")
@click.option("--chunks", type=PATH, help="The chunks that are indexed (JSONL); default: cut by --words and --step.")
@click.option("--words", type=click.IntRange(1), default=120, show_default=True, help="Words a chunk.")
@click.option("--step", type=click.IntRange(1), help="Words from one chunk's start to the next; default: --words.")
@click.option("--sentences", is_flag=True, help="Cut only between sentences.")
@json_option
def command(file: Path, doc_id: str | None, chunks: Path | None, words: int, step: int | None, sentences: bool,
            as_json: bool) -> None:
    """What was done to one document: chunks, anchors, spans and cuts."""
    from goldset.config import ChunkerConfig
    from goldset.pipeline.chunking import explain_file

    if chunks is not None and (step is not None or sentences):
        raise UsageError("--chunks brings chunks that are cut already; leave out --step and --sentences")
    chunker = ChunkerConfig.model_validate(
        {"words": words, "step": step, "unit": "sentences" if sentences else "words"})
    shown = explain_file(file, doc_id, chunks, chunker)
    if as_json:
        result_json({"schema": "goldset.spans/1", **shown})
    else:
        result(_text(shown))


def _text(shown: dict[str, Any]) -> str:
    chunks, spans, cuts = shown["chunks"], shown["spans"], shown["cuts"]
    whole = max(shown["length"], 1)
    width = max([len(row["chunk_id"]) for row in chunks] + [8])
    clean = sum(row["kind"] == "sentence" for row in cuts)
    lines = [f"{shown['doc_id']}: {shown['length']:,} code points; {len(chunks)} chunks fold into {len(spans)} spans; "
             f"{len(cuts)} cuts, {clean} between sentences", "", "chunks"]
    lines += [f"  {row['chunk_id']:<{width}}  {row['start']:>8}-{row['end']:<8} {row['role']:<7} {_bar(row, whole)}"
              for row in chunks]
    lines += ["", "spans"]
    for number, row in enumerate(spans):
        name = f"#{row['start']}-{row['end']}"
        lines.append(f"  {name:<{width}}  {row['start']:>8}-{row['end']:<8} {row['words']:>4} w  {_bar(row, whole)}")
        if number < len(cuts):
            cut = cuts[number]
            where = {"sentence": "cut between sentences", "word": "cut through a sentence that no chunk holds whole",
                     "chunk": "one chunk ends, the next begins"}[cut["kind"]]
            lines.append(f"    {where}, at {cut['at']}: …{_one_line(cut['before'])[-_QUOTE:]} | "
                         f"{_one_line(cut['after'])[:_QUOTE]}…")
    return "\n".join(lines)


def _bar(row: dict[str, Any], whole: int) -> str:
    """Where it lies in the document."""
    low = int(row["start"]) * _WIDTH // whole
    high = max(low + 1, -(-int(row["end"]) * _WIDTH // whole))
    return ("." * low + "=" * (high - low)).ljust(_WIDTH, ".")


def _one_line(text: str) -> str:
    return " ".join(text.split())
