"""``goldset spans``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from goldset.cli.common import PATH, chunk_fields, fields_option, json_option, result, result_json
from goldset.errors import UsageError

_WIDTH, _QUOTE = 40, 56


@click.command("spans")
@click.argument("file", type=PATH)
@click.option("--doc", "doc_id", metavar="ID", help="Which document of a JSONL file; default: the first.")
@click.option("--chunks", type=PATH, help="The chunks that are indexed (JSONL); default: cut by --words and --step.")
@click.option("--words", type=click.IntRange(1), default=120, show_default=True, help="Words a chunk.")
@click.option("--step", type=click.IntRange(1), help="Words from one chunk's start to the next; default: --words.")
@click.option("--sentences", is_flag=True, help="Cut only between sentences.")
@click.option("--tokens", type=click.IntRange(1), help="Tokens a chunk, instead of --words; --step counts them too.")
@click.option("--tokenizer", metavar="MODEL", help="Whose tokens: package:<module>, a model's folder or name.")
@fields_option
@json_option
def command(file: Path, doc_id: str | None, chunks: Path | None, words: int, step: int | None, sentences: bool,
            tokens: int | None, tokenizer: str | None, fields: str | None, as_json: bool) -> None:
    """What was done to one document: chunks, anchors, spans and cuts."""
    from goldset.config import ChunkerConfig
    from goldset.pipeline.chunking import explain_file

    if chunks is not None and (step or sentences or tokens or tokenizer):
        raise UsageError("--chunks brings chunks that are cut already; leave out --step, --sentences and --tokens")
    names = chunk_fields(fields, chunks=chunks)
    if (tokens is None) != (tokenizer is None) or (tokens and sentences):
        raise UsageError("--tokens N and --tokenizer MODEL go together, and without --sentences")
    chunker = ChunkerConfig.model_validate(
        {"unit": "tokens", "tokens": tokens, "step": step, "tokenizer": tokenizer} if tokens else
        {"words": words, "step": step, "unit": "sentences" if sentences else "words"})
    shown = explain_file(file, doc_id, chunks, chunker, names)
    if as_json:
        result_json({"schema": "goldset.spans/1", **shown})
    else:
        result(_text(shown))


_ROLES = {
    "alone": "overlaps no other chunk: its own span",
    "anchor": "a span of its own, up to the cuts",
    "folded": "shares half or more with an anchor: part of its span",
    "inside": "lies in another chunk: part of its span",
    "parent": "its children hold all of it: judged in their spans",
}


def _text(shown: dict[str, Any]) -> str:
    chunks, spans, cuts = shown["chunks"], shown["spans"], shown["cuts"]
    whole = max(shown["length"], 1)
    width = max([len(row["chunk_id"]) for row in chunks] + [8])
    clean = sum(row["kind"] == "sentence" for row in cuts)
    states = ", ".join(f"{count} {state}" for state, count in shown["offsets"].items())
    lines = [f"{shown['doc_id']}: {shown['length']:,} code points; {_count(chunks, 'chunk')} and "
             f"{_count(spans, 'span')}; {_count(cuts, 'cut')}, {clean} between sentences",
             f"offsets of the chunks: {states}"]
    if shown["without_offsets"]:
        lines.append(f"{shown['without_offsets']} of them have no place in this document; each is its own span and not "
                     "drawn")
    lines += ["", "chunks"]
    lines += [f"  {row['chunk_id']:<{width}}  {row['start']:>8}-{row['end']:<8} {row['role']:<7} {_bar(row, whole)}"
              for row in chunks]
    lines += [f"    {role}: {meaning}" for role, meaning in _ROLES.items() if role in {row["role"] for row in chunks}]
    lines += ["", "spans"]
    for number, row in enumerate(spans):
        name = f"#{row['start']}-{row['end']}"
        lines.append(f"  {name:<{width}}  {row['start']:>8}-{row['end']:<8} {row['words']:>4} w  {_bar(row, whole)}"
                     + (f"  {row['heading']}" if row["heading"] else ""))
        if number < len(cuts):
            cut = cuts[number]
            where = {"sentence": "cut between sentences", "word": "cut through a sentence that no chunk holds whole",
                     "chunk": "one chunk ends, the next begins"}[cut["kind"]]
            lines.append(f"    {where}, at {cut['at']}: …{_one_line(cut['before'])[-_QUOTE:]} | "
                         f"{_one_line(cut['after'])[:_QUOTE]}…")
    return "\n".join(lines)


def _count(rows: list[Any], name: str) -> str:
    return f"{len(rows):,} {name}" + ("" if len(rows) == 1 else "s")


def _bar(row: dict[str, Any], whole: int) -> str:
    """Where it lies in the document."""
    low = int(row["start"]) * _WIDTH // whole
    high = max(low + 1, -(-int(row["end"]) * _WIDTH // whole))
    return ("." * low + "=" * (high - low)).ljust(_WIDTH, ".")


def _one_line(text: str) -> str:
    return " ".join(text.split())
