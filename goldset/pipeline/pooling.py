"""The pool stage: what the systems returned within each question's scope, and what old labelled sets hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config, GoldSetSystem
from goldset.errors import DataError
from goldset.retrievers.scope import KnownChunks, Scopes, beyond_scope

if TYPE_CHECKING:
    from goldset.pipeline.stages import Context, Tables


def pool_stage(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    """Tables run, questions, documents, chunks, spans, span_links -> table candidates and the report.

    What whoever asked may not see is left out, whichever system or set returned it, and counted as ``beyond_scope``
    (system -> results). ``old_sets`` says how much of each old labelled set was found.
    """
    from goldset.pool import pool_candidates

    config, questions = context.config, tables["questions"]
    old, old_report = _old_sets(config, questions, tables["chunks"])
    beyond: dict[str, int] = {}
    kept = [tables["run"], old]
    if any(scope != "{}" for scope in questions.column("scope").to_pylist()):
        known = known_chunks(tables["documents"], tables["chunks"])
        kept = [_within(table, questions, known, beyond) for table in kept]
    pooled = pool_candidates(run=kept[0], spans=tables["spans"], links=tables["span_links"], depth=config.pool.depth,
                             audit_only=audit_only(config), chunks=tables["chunks"], unranked=kept[1])
    if not len(pooled.candidates):
        raise DataError("the pool is empty: no system returned a chunk for any sampled question; "
                        "look at run_status in the retrieve artifact and at the corpus")
    notes = [f"{system}: {count:,} results beyond their question's scope were left out"
             for system, count in sorted(beyond.items())]
    notes += [f"{system}: {found_of(told)}" for system, told in old_report.items()]
    return {"candidates": pooled.candidates}, {**pooled.report, "beyond_scope": dict(sorted(beyond.items())),
                                               "old_sets": old_report, "notes": notes}


def known_chunks(documents: pa.Table, chunks: pa.Table) -> KnownChunks:
    """Tables documents, chunks -> what systems that are not ours are checked against."""
    return KnownChunks(chunks.column("chunk_id").to_pylist(), Scopes(documents, chunks.column("doc_id").to_pylist()))


def _within(table: pa.Table, questions: pa.Table, known: KnownChunks, beyond: dict[str, int]) -> pa.Table:
    """The rows within their question's scope; the others are added to ``beyond`` by system."""
    hidden = pa.array(beyond_scope(table, questions, known), pa.bool_())
    for system in table.column("system").filter(hidden).to_pylist():
        beyond[system] = beyond.get(system, 0) + 1
    return table.filter(pc.invert(hidden))


def audit_only(config: Config) -> frozenset[str]:
    """Systems that grade the pool and never feed it."""
    return frozenset(name for name, system in config.systems.items() if system.audit_only)


def _sets(config: Config) -> dict[str, GoldSetSystem]:
    return {name: system for name, system in config.systems.items() if isinstance(system, GoldSetSystem)}


def old_set_files(config: Config) -> list[Path]:
    """The files of the old sets, for the stage's key."""
    return [config.path(path) for system in _sets(config).values()
            for path in (system.path, system.questions, system.corpus) if path is not None]


def old_set_settings(config: Config) -> dict[str, Any]:
    """What of them can change the pool."""
    return {name: [config.family(name), system.model_dump(mode="json")] for name, system in _sets(config).items()}


def _old_sets(config: Config, questions: pa.Table, chunks: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Chunks of the old sets' gold, with system and family, and what was found of each set."""
    from goldset.retrievers.oldset import old_gold

    names = ("system", "family", "question_id", "chunk_id")
    tables = [pa.table({name: pa.array([], pa.string()) for name in names})]
    report: dict[str, Any] = {}
    for name, system in _sets(config).items():
        found = old_gold(open_old_set(config, system), questions=questions, chunks=chunks)
        report[name] = found.report
        count = len(found.pairs)
        tables.append(pa.table({"system": pa.repeat(pa.scalar(name), count),
                                "family": pa.repeat(pa.scalar(config.family(name)), count),
                                **{key: found.pairs.column(key) for key in names[2:]}}))
    return pa.concat_tables(tables), report


def found_of(told: Mapping[str, Any]) -> str:
    """How much of an old set was found, from its report, in words."""
    return (f"{told['in_the_sample']:,} of its {told['questions']:,} questions are in the sample; "
            f"{told['in_the_corpus']:,} of {told['gold']:,} gold passages of these are found in the corpus")


def open_old_set(config: Config, system: GoldSetSystem) -> Any:
    """The labelled set of a system of kind ``gold_set``."""
    from goldset.formats.sets import load_set

    path = config.path(system.path)
    questions, corpus = (None if file is None else config.path(file) for file in (system.questions, system.corpus))
    alone = path.is_file() and (questions is not None or corpus is not None)
    return load_set(None if alone else path, qrels=path if alone else None, questions=questions, corpus=corpus,
                    relevant_from=system.relevant_from)
