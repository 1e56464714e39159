"""The openai judge on a stub server, and a run of it over small tables. Not a test itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from goldset.config import Budget, OpenAIJudge
from goldset.judges import VerdictStore, judge_candidates
from goldset.judges.chat import ChatJudge
from goldset.judges.prompt import load_prompt
from goldset.judges.rubric import parse_rubric
from tests.judges.stub import Answer
from tests.judges.tables import tables

RUBRIC = parse_rubric("version: 1.0\nStates part of the answer.", "rubric")


def make(url: str, store: VerdictStore, **over: Any) -> ChatJudge:
    section = OpenAIJudge.model_validate({
        "kind": "openai", "family": "stub", "rubric": "r.md", "base_url": url, "model": "m", "in_flight": 4,
        "retries": 5, "timeout": 20, **over})
    return ChatJudge(section, RUBRIC, load_prompt(), store)


def run(judge: ChatJudge, store: VerdictStore, pairs: int = 3, budget: Budget | None = None) -> pa.Table:
    candidates, questions, spans = tables(pairs)
    return judge_candidates(candidates=candidates, questions=questions, spans=spans, judge=judge, store=store,
                            budget=budget or limit(), quiet=True)


def limit(**most: float) -> Budget:
    return Budget.model_validate(most)


def always(answer: Answer) -> Callable[[int, dict[str, Any]], Answer]:
    return lambda number, body: answer
