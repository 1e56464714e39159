"""One row of the verdicts table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What a judge said of a pair; the fields are the columns of the schema ``verdicts``."""

    question_id: str
    span_id: str
    judge_id: str
    vote: int
    attempt: int
    status: str
    relevant: bool | None
    cache_key: str
    prompt_hash: str
    score: float | None = None
    quote: str | None = None
    raw: str | None = None
    model_asked: str | None = None
    model_answered: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        # A status other than ok never carries a verdict, and an ok one always does: no parse, no label.
        assert (self.relevant is not None) == (self.status == "ok"), (self.status, self.relevant)
