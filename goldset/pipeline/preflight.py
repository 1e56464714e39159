"""A few questions to each system that is not ours, before anything long starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import pyarrow as pa

from goldset.config import Config, DenseSystem, GoldSetSystem, HttpSystem, PythonSystem, QdrantSystem, RunSystem
from goldset.errors import ExitCode, GoldsetError
from goldset.pipeline.pooling import found_of, known_chunks, open_old_set
from goldset.retrievers import KnownChunks, Retriever, build_retrievers, deepest, unanswered
from goldset.retrievers.base import REPEATS
from goldset.retrievers.scope import beyond_scope
from goldset.store import Workspace

FEW = 3
"""Questions that a rebuild sends ahead."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checked:
    """What one system answered; counts are of questions or of results, null where nothing was asked.

    Attributes:
        asked: questions that were sent; then how many had results, none, failed, or are not in the run.
        repeated: lists with a chunk twice, among the failed.
        short: lists shorter than what was asked for; then results in the shortest and in the longest.
        results: results in all; then those that are no chunk of the corpus, and those beyond the question's scope.
        scoped: questions that had a scope to honour.
        seconds_median: of the questions, new tries included; then the longest.
        problem: why it cannot be used, with the exit code.
    """

    system: str
    kind: str
    family: str
    asked: int | None = None
    answered: int | None = None
    empty: int | None = None
    failed: int | None = None
    missing: int | None = None
    repeated: int | None = None
    short: int | None = None
    shortest: int | None = None
    longest: int | None = None
    results: int | None = None
    unknown: int | None = None
    beyond_scope: int | None = None
    scoped: int | None = None
    seconds_median: float | None = None
    seconds_max: float | None = None
    notes: tuple[str, ...] = ()
    problem: str | None = None
    exit_code: int = int(ExitCode.DONE)


def few(questions: pa.Table, count: int) -> pa.Table:
    """Table questions -> so many of them, one of each scope before a second of any, by question_id."""
    seen: dict[str, int] = {}
    ranked = []
    columns = (questions.column(name).to_pylist() for name in ("question_id", "scope"))
    for question, place, scope in sorted((q, n, s) for n, (q, s) in enumerate(zip(*columns, strict=True))):
        seen[scope] = seen.get(scope, 0) + 1
        ranked.append((seen[scope], question, place))
    return questions.take(pa.array(sorted(place for _, _, place in sorted(ranked)[:count]), pa.int64()))


def check_system(name: str, config: Config, retriever: Retriever, questions: pa.Table, known: KnownChunks, *,
                 depth: int) -> Checked:
    """Ask one system for ``depth`` results -> Checked; raises what its search raises."""
    run, status = retriever.search(questions, depth)
    states, details = status.column("status").to_pylist(), status.column("detail").to_pylist()
    lengths = [length for length in status.column("returned").to_pylist() if length]
    strange = [chunk for chunk in run.column("chunk_id").to_pylist() if chunk not in known]
    seconds = [one for one in getattr(retriever, "seconds", []) if one is not None]
    checked = Checked(
        name, config.systems[name].kind, config.family(name),
        asked=len(questions), answered=states.count("ok"), empty=states.count("empty"),
        failed=states.count("failed"), missing=states.count("missing"),
        repeated=sum(REPEATS in (detail or "") for detail in details),
        short=sum(length < depth for length in lengths), shortest=min(lengths, default=None),
        longest=max(lengths, default=None), results=len(run),
        unknown=len(strange), beyond_scope=int(beyond_scope(run, questions, known).sum()),
        scoped=sum(scope != "{}" for scope in questions.column("scope").to_pylist()),
        seconds_median=median(seconds) if seconds else None, seconds_max=max(seconds, default=None))
    return replace(checked, notes=(*unanswered(status), *_notes(checked, strange, details, depth)))


def _notes(checked: Checked, strange: Sequence[str], details: Sequence[str | None], depth: int) -> tuple[str, ...]:
    """What somebody should look at before the rebuild."""
    from goldset.retrievers.runfile import DISAGREE

    odd = sum(DISAGREE in (detail or "") for detail in details)
    notes = [
        (not checked.results, f"not one result for {checked.asked} questions"),
        (strange, f"{len(strange)} of {checked.results} ids are no chunk of this corpus, e.g. "
                  f"'{min(strange, default='')}'; they keep their ranks and cannot be pooled"),
        (checked.beyond_scope, f"{checked.beyond_scope} of {checked.results} results are beyond their question's "
                               "scope; they keep their ranks and never enter the pool"),
        (odd, f"{DISAGREE} ({odd} questions)"),
        ((checked.longest or depth) < depth,
         f"no list has {depth} results, which is what is asked for: the longest has {checked.longest}"),
    ]
    return tuple(note for applies, note in notes if applies)


def send_ahead(config: Config, retrievers: Mapping[str, Retriever], tables: Mapping[str, pa.Table]) -> None:
    """A few questions to each service and function of a rebuild, whose errors stop it before anything long starts.

    Files are read at once anyway. What to look at is said in the log.
    """
    asked = few(tables["questions"], FEW)
    known = known_chunks(tables["documents"], tables["chunks"])
    for name, system in config.systems.items():
        if isinstance(system, HttpSystem | QdrantSystem | PythonSystem):
            checked = check_system(name, config, retrievers[name], asked, known, depth=deepest(name, config))
            for note in checked.notes:
                _log.warning("[systems.%s] %d questions sent ahead: %s", name, len(asked), note)


def check_systems(config: Config, tables: Mapping[str, pa.Table], *, questions: int) -> list[Checked]:
    """Every system of the configuration -> Checked, in the order of the file; asked as deep as a rebuild asks.

    Services and functions get so many questions, run files all of them; of a dense system only the model is loaded;
    bm25 and hybrid need nothing from outside. Of an old labelled set it is said how much of it is found.
    """
    known = known_chunks(tables["documents"], tables["chunks"])
    cache = Workspace(config.workspace).open().cache("embeddings").parent
    found = []
    for name, system in config.systems.items():
        checked = Checked(name, system.kind, config.family(name))
        try:
            if isinstance(system, GoldSetSystem):
                checked = _old_set(checked, config, system, tables)
            elif isinstance(system, RunSystem | HttpSystem | QdrantSystem | PythonSystem | DenseSystem):
                built = build_retrievers(config=config, documents=tables["documents"], chunks=tables["chunks"],
                                         cache=cache, quiet=True, names=[name])
                if not isinstance(system, DenseSystem):
                    count = len(tables["questions"]) if isinstance(system, RunSystem) else questions
                    checked = check_system(name, config, built[name], few(tables["questions"], count), known,
                                           depth=deepest(name, config))
        except GoldsetError as error:
            checked = replace(checked, problem=str(error), exit_code=int(error.exit_code))
        found.append(checked)
    return found


def _old_set(checked: Checked, config: Config, system: GoldSetSystem, tables: Mapping[str, pa.Table]) -> Checked:
    from goldset.retrievers.oldset import old_gold

    told = old_gold(open_old_set(config, system), questions=tables["questions"], chunks=tables["chunks"]).report
    return replace(checked, notes=(found_of(told),))


def exit_code(found: Sequence[Checked]) -> int:
    """The first unusable system's; 0 where all can be used."""
    return next((one.exit_code for one in found if one.problem is not None), int(ExitCode.DONE))


def as_json(found: Sequence[Checked]) -> dict[str, Any]:
    """The document goldset.systems/1."""
    return {"schema": "goldset.systems/1", "usable": exit_code(found) == 0,
            "systems": [asdict(one) | {"notes": list(one.notes)} for one in found]}


def text(found: Sequence[Checked]) -> str:
    """The answer on a terminal: a table of what was asked, then what to look at."""
    head = ("system", "kind", "asked", "answered", "empty", "failed", "short lists", "shortest", "ids unknown",
            "beyond scope", "seconds: median", "most")
    rows = [head, *(_cells(one) for one in found if one.asked is not None)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                       for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    lines = lines if len(rows) > 1 else []
    silent = [one.system for one in found if one.asked is None and one.problem is None and not one.notes]
    lines += [f"{', '.join(silent)}: built in, nothing to ask"] if silent else []
    lines += [f"{one.system}: {note}" for one in found for note in one.notes]
    return "\n".join([*lines, *(f"{one.system} cannot be used: {one.problem}" for one in found if one.problem)])


def _cells(one: Checked) -> tuple[str, ...]:
    counts = (one.asked, one.answered, one.empty, one.failed, one.short, one.shortest, one.unknown,
              one.beyond_scope)
    times = (one.seconds_median, one.seconds_max)
    return (one.system, one.kind, *("-" if count is None else f"{count:,}" for count in counts),
            *("-" if seconds is None else f"{seconds:.3f}" for seconds in times))

