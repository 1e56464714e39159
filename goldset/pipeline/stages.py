"""The stages in order: name, what it reads, what it writes, the function. The one place that joins the stage packages.

corpus → spans → questions → retrieve → pool → judge → queue. Then people, then publish (pipeline.people).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import (
    BM25System,
    Config,
    CorpusConfig,
    DenseSystem,
    GoldSetSystem,
    QdrantSystem,
    RunSystem,
    SimilarityJudge,
)
from goldset.errors import DataError
from goldset.pipeline.pooling import audit_only, old_set_files, old_set_settings, pool_stage
from goldset.store import Workspace, write_text

if TYPE_CHECKING:
    from goldset.spans import TwinDecision

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Context:
    """What a stage may touch besides its tables: configuration, caches, the progress bar."""

    config: Config
    workspace: Workspace
    quiet: bool = False
    key: str = ""  # of the artifact that the stage is about to write


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline.

    ``settings`` returns what of the configuration can change the result, by the names that a reader knows; ``files``
    the outside files it reads. Both go into the key of the artifact, together with the keys of the tables in
    ``reads``. ``version`` goes up whenever the code changes what the same input gives.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    run: Callable[[Context, Mapping[str, pa.Table]], tuple[Tables, dict[str, Any]]]
    settings: Callable[[Config], Mapping[str, Any]]
    files: Callable[[Config], list[Path]] = lambda config: []
    version: int = 1


def _corpus(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    from goldset.corpus import build_corpus
    from goldset.formats.corpora import read_chunks, read_documents

    section, path = _corpus_section(context.config), context.config.path
    documents = chunks = None
    report: dict[str, Any] = {}
    if section.documents is not None:
        documents, report["documents_file"] = read_documents(
            section.documents, path(section.documents.path), quiet=context.quiet)
    if section.chunks is not None:
        chunks, report["chunks_file"] = read_chunks(section.chunks, path(section.chunks.path), quiet=context.quiet)
    built = build_corpus(documents=documents, raw_chunks=chunks, config=section, quiet=context.quiet)
    return ({"documents": built.documents, "chunks": built.chunks},
            {**report, **built.report, "notes": _corpus_notes(report, built.report)})


def _corpus_notes(read: Mapping[str, Any], report: Mapping[str, Any]) -> list[str]:
    """What was left out, and how far the offsets of the chunks can be trusted."""
    empty = (("documents", read.get("documents_file", {}).get("empty_documents", 0),
              read.get("documents_file", {}).get("first_empty_document")),
             ("chunks", report["empty_chunks"], report["first_empty_chunk"]))
    notes = [f"{count:,} {what} without any text were left out, the first is '{first}'"
             for what, count, first in empty if count]
    offsets = report["offsets"]
    if set(offsets) - {"verified"}:
        first = "; ".join(f"first {state}: {where}" for state, where in report["first"].items())
        notes.append("offsets of the chunks: " + ", ".join(f"{count:,} {state}" for state, count in offsets.items())
                     + (f" ({first})" if first else ""))
    unplaced = offsets.get("mismatched", 0) + offsets.get("absent", 0)
    if unplaced:
        notes.append(f"{unplaced:,} chunks are not known to stand where they say: they can carry no evidence")
    return notes


def _corpus_section(config: Config) -> CorpusConfig:
    """The section, a tokenizer's folder resolved against the configuration."""
    section = config.corpus
    if section.chunker is None or section.chunker.tokenizer is None:
        return section
    from goldset.encoder import located

    found = located(section.chunker.tokenizer, config.base)
    return section.model_copy(update={"chunker": section.chunker.model_copy(update={"tokenizer": found})})


def _corpus_files(config: Config) -> list[Path]:
    sources = (config.corpus.documents, config.corpus.chunks)
    files = [config.path(source.path) for source in sources if source is not None]
    chunker = _corpus_section(config).chunker
    if chunker is not None and chunker.tokenizer is not None:
        from goldset.corpus.tokens import tokenizer_file

        files.append(tokenizer_file(chunker.tokenizer))
    return files


def _spans(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    from goldset.spans import canonical_spans, decided_pairs, merge_twins, twins_apart
    from goldset.spans.neartwins import LISTED, MOST, near_twins

    built = canonical_spans(documents=tables["documents"], chunks=tables["chunks"], quiet=context.quiet)
    keys = _scope_keys(context.config)
    spans, least = built.spans, context.config.corpus.merge_near_twins
    merge, apart, absent = decided_pairs(spans, _twin_decisions(context.config))
    texts = len(spans) - built.report["twins"]
    report: dict[str, Any] = {"looked_at": 0}
    if least is not None or texts <= MOST:
        pairs = near_twins(spans, threshold=LISTED if least is None else min(LISTED, least), quiet=context.quiet)
        merge += [pair for pair in pairs if least is not None and pair["similarity"] >= least]
        report = {"looked_at": texts, "from": LISTED, "pairs": len(pairs), "most_alike": pairs[:50]}
    joined = merge_twins(spans, merge, apart) if merge else spans
    if keys:
        joined = twins_apart(joined, tables["documents"], keys)
    group = dict(zip(*(joined.column(name).to_pylist() for name in ("span_id", "twin_group")), strict=True))
    alike = report.get("pairs", 0)
    notes = [f"{alike:,} pairs of passages are almost the same: 'goldset twins list'"] if alike else []
    report |= {"merged": sum(group[pair["left"]] == group[pair["right"]] for pair in merge),
               "kept_apart": len(apart), "decided_about_other_texts": absent}
    return {"spans": joined, "span_links": built.links}, {**built.report, "near_twins": report, "notes": notes}


def _twin_decisions(config: Config) -> list[TwinDecision]:
    """What people decided about near twins and nobody took back, in an order that time does not decide."""
    from goldset.spans import TWINS, in_force, read_decisions

    found = in_force(read_decisions(config.workspace / TWINS))
    return [found[texts] for texts in sorted(found)]


def _scope_keys(config: Config) -> list[str]:
    """Names under which questions were asked: what may hide a document from somebody."""
    return sorted({key for source in config.questions.logs for key in source.scope})


def _questions(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    from goldset.formats.logs import read_log
    from goldset.questions import mask, sample_questions
    from goldset.schemas import empty

    config, section = context.config, context.config.questions
    events, lines = [empty("events")], 0
    rejected: list[dict[str, Any]] = []
    for source in section.logs:
        read = read_log(source, config.path(source.path), mask=mask, max_line_bytes=section.max_line_bytes,
                        quiet=context.quiet)
        events.append(read.events)
        lines += read.lines
        rejected += [{"file": str(source.path), "line": bad.line, "reason": bad.reason, "text": bad.text}
                     for bad in read.rejected]
    _quarantine(context, rejected)
    if lines and len(rejected) / lines > section.bad_share:
        first = rejected[0]
        raise DataError(f"{first['file']}, line {first['line']}: {first['reason']}; {len(rejected)} of {lines} log "
                        f"lines cannot be read, [questions] bad_share allows {section.bad_share:g}; all are listed in "
                        "the workspace's quarantine folder")
    sample = sample_questions(events=pa.concat_tables(events), config=section, seed=config.project.seed,
                              timezone=config.project.timezone, frame=_frame(config))
    reasons = {reason: sum(row["reason"] == reason for row in rejected) for reason in
               sorted({row["reason"] for row in rejected})}
    return ({"questions": sample.questions, "drops": sample.drops},
            {**sample.report, "lines": lines, "rejected": len(rejected), "rejected_by_reason": reasons})


def _quarantine(context: Context, rejected: list[dict[str, Any]]) -> None:
    path = context.workspace.root / "quarantine" / "log_lines.jsonl"
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rejected))


def _frame(config: Config) -> frozenset[str] | None:
    from goldset.formats.lines import json_lines

    if config.questions.frame is None:
        return None
    path = config.path(config.questions.frame)
    found = set()
    for number, row in json_lines(path):
        if not isinstance(row.get("question_id"), str):
            raise DataError(f"{path}, line {number}: no question_id; each line is an object with one, "
                            'e.g. {"question_id": "q0123456789abcdef"}')
        found.add(row["question_id"])
    return frozenset(found)


def _question_files(config: Config) -> list[Path]:
    frame = [config.path(config.questions.frame)] if config.questions.frame else []
    return [config.path(source.path) for source in config.questions.logs] + frame


def _retrieve(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    from goldset.pipeline.preflight import send_ahead
    from goldset.retrievers import build_retrievers, retrieve, reused, unanswered
    from goldset.retrievers.dense import DenseRetriever

    retrievers = build_retrievers(config=context.config, documents=tables["documents"], chunks=tables["chunks"],
                                  cache=context.workspace.cache("embeddings").parent, quiet=context.quiet,
                                  kept=context.workspace.unfinished("retrieve", context.key))
    send_ahead(context.config, retrievers, tables)
    run, status = retrieve(questions=tables["questions"], retrievers=retrievers, depth=context.config.pool.depth)
    counts: dict[str, dict[str, int]] = {}
    for row in status.to_pylist():
        system = counts.setdefault(row["system"], {})
        system[row["status"]] = system.get(row["status"], 0) + 1
    dense = {name: system.report() for name, system in retrievers.items() if isinstance(system, DenseRetriever)}
    notes = [note for report in dense.values() for note in report.pop("notes")] + reused(retrievers)
    notes += [f"{name}: {note}" for name in retrievers
              for note in unanswered(status.filter(pc.equal(status.column("system"), name)))]
    return {"run": run, "run_status": status}, {"status": counts, "dense": dense, "notes": notes}


def _encoder_settings(config: Config, section: DenseSystem | QdrantSystem | SimilarityJudge) -> str:
    """Hash of what of an encoder can change its vectors: the files behind the name, dtype, device, libraries."""
    from goldset.encoder import located, vectors_key

    device = section.device if isinstance(section, DenseSystem) else "auto"
    return vectors_key(located(section.model, config.base), dtype=section.dtype, device=device)


MANNERS = {"timeout", "retries", "in_flight", "per_second", "failed_share"}
"""Keys that say how a service is asked; they do not change what it answers."""


def _system_settings(config: Config) -> dict[str, Any]:
    ranking = {name: system for name, system in config.systems.items() if not isinstance(system, GoldSetSystem)}
    return {"pool.depth": config.pool.depth,
            "systems": {name: system.model_dump(mode="json", exclude=MANNERS) for name, system in ranking.items()},
            "families": {name: config.family(name) for name in ranking},
            "tokenizers": {name: system.tokenizer.version for name, system in config.systems.items()
                           if isinstance(system, BM25System)},
            "encoders": {name: _encoder_settings(config, system) for name, system in config.systems.items()
                         if isinstance(system, DenseSystem | QdrantSystem)},
            # An approximate index is made of each shard; exact search gives the same whatever the shards.
            "pool.shard_chunks": {name: config.pool.shard_chunks for name, system in config.systems.items()
                       if isinstance(system, DenseSystem) and system.index != "exact"}}


def _judge(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    verdicts, report = judged(context, tables, tables["candidates"])
    return {"verdicts": verdicts}, report


def judged(context: Context, tables: Mapping[str, pa.Table], pairs: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Pairs (question_id, span_id) -> table verdicts of the configured judge, and what it says of itself."""
    from goldset.judges import VerdictStore, build_judge, judge_candidates
    from goldset.spans import context as around

    store = VerdictStore(context.workspace.root / "verdicts.sqlite")
    judge = build_judge(config=context.config, cache=context.workspace.cache("embeddings").parent, store=store)
    pooled = set(pairs.column("span_id").to_pylist())
    texts = dict(zip(tables["documents"].column("doc_id").to_pylist(),
                     tables["documents"].column("text").to_pylist(), strict=True))
    contexts = {row["span_id"]: around(row, texts) for row in tables["spans"].to_pylist() if row["span_id"] in pooled}
    verdicts = judge_candidates(
        candidates=pairs, questions=tables["questions"], spans=tables["spans"], contexts=contexts,
        judge=judge, store=store, budget=context.config.judge.budget, quiet=context.quiet)
    states: dict[str, int] = {}
    for status in verdicts.column("status").to_pylist():
        states[status] = states.get(status, 0) + 1
    first = verdicts.filter((pc.field("vote") == 1) & (pc.field("attempt") == 1))
    known = first.column("cached").to_pylist().count(True)
    notes = [f"{len(first) - known:,} pairs judged, {known:,} known from before or of the same text"]
    return verdicts, {"status": states, "judge": judge.card_info(), "judged": len(first) - known, "known": known,
                      "notes": notes}


def _judge_settings(config: Config) -> dict[str, Any]:
    from goldset.judges import instrument_version, model_version

    judge = config.judge
    model = _encoder_settings(config, judge) if isinstance(judge, SimilarityJudge) else model_version(config)
    return {"judge": judge.model_dump(mode="json", exclude={"budget"}), "judge's model": model,
            "judge's instrument": instrument_version()}


def _judge_files(config: Config) -> list[Path]:
    return [config.path(path) for path in (config.judge.rubric, *config.judge.files)]


def _queue(context: Context, tables: Mapping[str, pa.Table]) -> tuple[Tables, dict[str, Any]]:
    from goldset.review import first_wave

    # A rebuild is a campaign of its own: its sampling counts stand for its own pool.
    queue = first_wave(candidates=tables["candidates"], verdicts=tables["verdicts"], spans=tables["spans"],
                       config=context.config.review, seed=context.config.project.seed,
                       campaign=f"rebuild-{context.key[:8]}")
    reasons: dict[str, int] = {}
    for reason in queue.column("reason").to_pylist():
        reasons[reason] = reasons.get(reason, 0) + 1
    return {"queue": queue}, {"items": len(queue), "by_reason": reasons}


STAGES: tuple[Stage, ...] = (
    Stage("corpus", (), ("documents", "chunks"), _corpus,
          lambda config: {"corpus": config.corpus.model_dump(mode="json", exclude={"merge_near_twins"})}, _corpus_files,
          version=2),
    Stage("spans", ("documents", "chunks"), ("spans", "span_links"), _spans,
          lambda config: {"corpus.merge_near_twins": config.corpus.merge_near_twins,
                          "questions.logs.scope": _scope_keys(config),
                          "near twins decided": [[decision.action, *decision.texts]
                                                 for decision in _twin_decisions(config)]}),
    Stage("questions", (), ("questions", "drops"), _questions,
          lambda config: {"questions": config.questions.model_dump(mode="json"), "project.seed": config.project.seed,
                          "project.timezone": config.project.timezone},
          _question_files),
    Stage("retrieve", ("documents", "chunks", "questions"), ("run", "run_status"), _retrieve, _system_settings,
          lambda config: [config.path(system.path) for system in config.systems.values()
                          if isinstance(system, RunSystem)]),
    Stage("pool", ("run", "questions", "documents", "chunks", "spans", "span_links"), ("candidates",), pool_stage,
          lambda config: {"pool.depth": config.pool.depth, "audit_only": sorted(audit_only(config)),
                          "old sets": old_set_settings(config)}, old_set_files),
    Stage("judge", ("candidates", "questions", "spans", "documents"), ("verdicts",), _judge, _judge_settings,
          _judge_files),
    Stage("queue", ("candidates", "verdicts", "spans"), ("queue",), _queue,
          lambda config: {"review": config.review.model_dump(mode="json", include={
              "profile", "rejection_share", "rejection_min", "second_share"}), "project.seed": config.project.seed}),
)

__all__ = ["STAGES", "Context", "Stage", "Tables", "audit_only", "judged"]
