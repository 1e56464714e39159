"""What the commands share: options, output, and how runs and sets are named on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from goldset.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from goldset.formats.parts import Source
    from goldset.formats.sets import LabelledSet

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

config_option = click.option("-c", "--config", "config_path", required=True, type=PATH, help="TOML configuration.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
run_option = click.option("--run", "runs", multiple=True, metavar="NAME=FILE",
                          help="A system's run: TREC, JSON, JSONL or Parquet, gzip too; several times for several.")


fields_option = click.option("--fields", metavar="OURS=THEIRS,…", help="Fields of the chunk file, e.g. "
                             "id=_id,doc_id=metadata.document; ours: id, doc_id, text, title, start, end, metadata.")


def chunk_fields(text: str | None, *, chunks: object) -> dict[str, str]:
    """What ``--fields`` says -> names by ours, of the chunk file that ``chunks`` names."""
    if text and not chunks:
        raise UsageError(f"--fields {text}: names the fields of a chunk file; give it with --chunks FILE")
    return named_fields(text, "--fields")


def named_fields(text: str | None, option: str) -> dict[str, str]:
    """``id=_id,text=body`` -> names by ours."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else []:
        ours, equals, theirs = part.strip().partition("=")
        if not (ours and equals and theirs):
            raise UsageError(f"{option} {part}: write it as OURS=THEIRS, e.g. {option} id=_id,text=body")
        found[ours] = theirs
    return found


def set_options(function: F) -> F:
    """SET, or --qrels with --questions and --corpus, and --relevant-from."""
    for option in reversed((
        click.argument("labelled", metavar="SET", required=False, type=PATH),
        click.option("--qrels", type=PATH, help="Qrels instead of SET: TREC, BEIR, JSON or CSV."),
        click.option("--questions", type=PATH, help="Question texts for --qrels (JSONL or TSV)."),
        click.option("--corpus", type=PATH, help="Passage texts for --qrels or a file of gold (JSONL)."),
        click.option("--relevant-from", type=int, metavar="GRADE", help="Smallest grade that counts as relevant."),
    )):
        function = option(function)
    return function


def open_set(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
             relevant_from: int | None, labels: Path | None = None, *, contradictions: bool = False) -> LabelledSet:
    """The set that the options name; see ``load_set`` for ``contradictions``."""
    from goldset.formats.sets import load_set

    if (labelled is None) == (qrels is None):
        raise UsageError("name one labelled set: SET (a published version, a BEIR folder, or a file of questions with "
                         "gold), or --qrels FILE")
    gold = load_set(labelled, qrels=qrels, questions=questions, corpus=corpus, relevant_from=relevant_from,
                    labels=labels, contradictions=contradictions)
    if gold.kind == "examples":
        say_mapping(gold)
    return gold


def say_mapping(gold: LabelledSet) -> None:
    """What was taken for what, on stderr, so that a wrong guess is seen."""
    for line in gold.mapping:
        say(f"read {line}")


def spare_pandas(labelled: Path | None) -> None:
    """Keep pyarrow from importing pandas, which takes as long as all the rest.

    Only for sets whose gold is delivered by id, which need no frame, and only in a process of the command's own: until
    the next ``to_pandas`` (which imports it after all) pyarrow takes a Series for any sequence.
    """
    # Every pa.array and pa.scalar, and so every comparison of a column with a number, asks pyarrow's shim whether the
    # value is a Series; no code can do without them, and the shim has no switch. It imports once, and remembers a
    # failure. None in sys.modules is no failure to it (Cython takes it for the module), a finder that raises is.
    context = click.get_current_context()
    published = labelled is not None and (labelled / "manifest.json").is_file()
    if published or not (context.obj or {}).get("own_process") or "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas())
    try:
        pa.array([0])
    finally:
        del sys.meta_path[0]


class _NoPandas(MetaPathFinder):
    """A finder that says there is no pandas."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        """None for all other modules: the next finder is asked."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def open_runs(runs: tuple[str, ...], option: str = "--run") -> dict[str, pa.Table]:
    """``NAME=FILE`` arguments -> run tables by name."""
    from goldset.formats.runs import read_run

    return {name: read_run(file, system=name) for name, file in named_files(runs, option).items()}


LARGE = 64 << 20
"""Files of more bytes than this are read in parts: all at once they take ten times as many."""
ODD = "some lines or ids need a look at the whole: all is read at once, and memory grows with the files"


def large_files(labelled: Path | None, qrels: Path | None, questions: Path | None, corpus: Path | None,
                runs: tuple[str, ...], *, whole: str | None = None) -> tuple[Source, dict[str, Path]] | None:
    """Set and runs, where they are too large to be held and may come apart; else None.

    ``whole`` is an option that needs them whole.
    """
    from goldset.formats.parts import Source

    source, files = Source.of(labelled, qrels, questions, corpus), named_files(runs, "--run")
    if source is None or source.size(files.values()) <= LARGE:
        return None
    if whole:
        say(f"the files are large, and {whole} needs them whole: memory grows with them")
        return None
    say("the files are large: their questions are read in parts")
    return source, files


def named_files(arguments: tuple[str, ...], option: str) -> dict[str, Path]:
    """``NAME=FILE`` arguments -> files by name."""
    files: dict[str, Path] = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not (name and equals and file):
            raise UsageError(f"{option} {argument}: write it as NAME=FILE, e.g. {option} production=production.run.gz")
        if name in files:
            raise UsageError(f"{option} {argument}: the name '{name}' is used twice")
        files[name] = Path(file)
    return files


def numbers(text: str | None, option: str) -> list[int]:
    """``5,10`` -> [5, 10]."""
    if text is None:
        return []
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"{option} {text}: whole numbers, separated by commas, e.g. {option} 5,10") from error
    if any(value < 1 for value in values):
        raise UsageError(f"{option} {text}: cutoffs start at 1")
    return sorted(set(values))


def say(line: str) -> None:
    """A line of progress, on stderr."""
    click.echo(line, err=True)


def result(text: str) -> None:
    """The result, on stdout."""
    click.echo(text.rstrip("\n"))


def result_json(value: Any) -> None:
    """One JSON document on stdout; NaN is our own bug and refused."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))
