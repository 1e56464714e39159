"""The judge stage: candidates -> verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from goldset.config import Budget, Config, CrossEncoderJudge, OpenAIJudge, RuleJudge, SimilarityJudge
from goldset.errors import DataError
from goldset.judges.base import Desk, Judge, Pair
from goldset.judges.meter import Meter
from goldset.judges.rubric import load_rubric
from goldset.judges.store import VerdictStore
from goldset.judges.verdict import Verdict
from goldset.model_files import located
from goldset.progress import progress
from goldset.schemas import from_rows


def build_judge(*, config: Config, cache: Path, store: VerdictStore) -> Judge:
    """[judge] -> the judge it describes.

    Args:
        config: the whole configuration; paths are relative to its file.
        cache: folder of the encoder's caches.
        store: asked which models answered before, for the judge card.

    Raises:
        ConfigError: the rubric cannot be used.
        DataError: too few labels for a threshold, or a recorded verdict that cannot be read.
        MissingExtra: the encoder's libraries are not installed.
    """
    section = config.judge
    rubric = load_rubric(config.path(section.rubric))
    if isinstance(section, SimilarityJudge):
        from goldset.encoder import load_encoder
        from goldset.judges.similarity import CosineJudge

        encoder = load_encoder(located(section.model, config.base), dtype=section.dtype, cache=cache)
        return CosineJudge(encoder, model=section.model, family=section.family, rubric=rubric,
                           calibration=config.path(section.calibration))
    if isinstance(section, CrossEncoderJudge):
        from goldset.judges import cross_encoder

        return cross_encoder.CrossEncoderJudge(
            cross_encoder.CrossScorer(located(section.model, config.base)), model=section.model, family=section.family,
            rubric=rubric, calibration=config.path(section.calibration))
    if isinstance(section, OpenAIJudge):
        from goldset.judges.chat import ChatJudge
        from goldset.judges.prompt import load_prompt

        return ChatJudge(section, rubric, load_prompt(), store)
    if isinstance(section, RuleJudge):
        from goldset.judges import rules

        return rules.ValueJudge(section.patterns, section.family, rubric)
    from goldset.judges.replay import ReplayJudge

    return ReplayJudge(config.path(section.path), section.family, rubric)


def judge_candidates(*, candidates: pa.Table, questions: pa.Table, spans: pa.Table, judge: Judge, store: VerdictStore,
                     budget: Budget, contexts: Mapping[str, tuple[str, str]] | None = None,
                     quiet: bool = False) -> pa.Table:
    """Candidates -> verdicts: every attempt of every vote, in key order; one row with the last attempt is the vote.

    Pairs with equal texts are judged once. A pair without a verdict keeps its row: status says why, relevant is null.

    Args:
        candidates: question_id, span_id.
        questions: text, context, need of those questions.
        spans: text, heading of those spans.
        judge: who answers.
        store: verdicts that are there are not asked for again; new ones are stored as they come.
        budget: what this run may spend.
        contexts: span_id -> sentence before and after the span; none if left out.
        quiet: no progress bar.

    Raises:
        DataError: a candidate names a question or span that the tables lack.
        BudgetStop: the budget does not cover the next call; what was answered is stored.
        ExternalError: the service refuses all calls; what was answered is stored.
    """
    pairs = _pairs(candidates, questions, spans, contexts or {})
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(judge.fingerprint(pair), []).append(pair)
    first = [same[0] for same in groups.values()]
    with progress("judging", len(first), quiet=quiet) as advance:
        made = judge.judge(first, Desk(store, Meter(budget), advance))
    by_pair: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in made:
        by_pair.setdefault((verdict.question_id, verdict.span_id), []).append(verdict)
    rows = []
    for same in groups.values():
        found = by_pair[same[0].question_id, same[0].span_id]
        rows.extend(found)
        rows.extend(replace(verdict, question_id=twin.question_id, span_id=twin.span_id, cached=True)
                    for twin in same[1:] for verdict in found)
    rows.sort(key=lambda row: (row.question_id, row.span_id, row.judge_id, row.vote, row.attempt))
    return from_rows("verdicts", [asdict(row) for row in rows])


def _pairs(candidates: pa.Table, questions: pa.Table, spans: pa.Table,
           contexts: Mapping[str, tuple[str, str]]) -> list[Pair]:
    asked = {row["question_id"]: row
             for row in questions.select(["question_id", "text", "context", "need"]).to_pylist()}
    keys = sorted(zip(candidates.column("question_id").to_pylist(), candidates.column("span_id").to_pylist(),
                      strict=True))
    wanted = {span_id for _, span_id in keys}
    read = {row["span_id"]: row for row in spans.select(["span_id", "text", "heading"]).to_pylist()
            if row["span_id"] in wanted}
    pairs = []
    for question_id, span_id in keys:
        for value, table, name in ((question_id, asked, "question"), (span_id, read, "span")):
            if value not in table:
                raise DataError(f"table 'candidates': {name} '{value}' is not in the table of {name}s; candidates, "
                                "questions and spans must come from one rebuild")
        question, span = asked[question_id], read[span_id]
        before, after = contexts.get(span_id, ("", ""))
        pairs.append(Pair(
            question_id=question_id, span_id=span_id, question=question["text"], passage=span["text"],
            turns=tuple((turn["role"] or "", turn["text"] or "") for turn in question["context"]),
            need=question["need"], heading=span["heading"], before=before, after=after))
    return pairs
