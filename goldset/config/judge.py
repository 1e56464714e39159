"""[judge]: a class a kind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from goldset.config.section import Section
from goldset.text import standing_alone


class Budget(Section):
    """What the judge may spend in one rebuild; it stops before the next call."""

    calls: int | None = Field(None, description="calls", ge=0)
    tokens: int | None = Field(None, description="tokens, sent and received", ge=0)
    cost: float | None = Field(None, description="in the currency of the prices", ge=0)


class JudgeBase(Section):
    """What all judges share."""

    family: str = Field(description="judges and systems that share a model are not independent")
    rubric: Path = Field(description="Markdown file with a version line")
    budget: Budget = Field(Budget(), description="calls, tokens, cost")

    @property
    def files(self) -> tuple[Path, ...]:
        """Files whose content can change a verdict, the rubric's left out."""
        return ()


class ThresholdJudge(JudgeBase):
    """A judge that scores. The threshold is computed from people's labels, never written."""

    model: str = Field(description="model name, folder, or package:<module>")
    calibration: Path = Field(description="JSONL of question, passage, relevant: the threshold comes from it")

    @property
    def files(self) -> tuple[Path, ...]:
        """The labels behind the threshold."""
        return (self.calibration,)


class SimilarityJudge(ThresholdJudge):
    """Cosine of an encoder, declared weak. The threshold is computed from people's labels, never written."""

    kind: Literal["similarity"]
    dtype: Literal["float32", "bfloat16", "auto"] = Field("float32", description="auto: bfloat16 where the CPU has it")


class CrossEncoderJudge(ThresholdJudge):
    """A model that reads question and passage together, on the CPU. The threshold is computed, never written."""

    kind: Literal["cross_encoder"]


class OpenAIJudge(JudgeBase):
    """Any OpenAI-compatible server."""

    kind: Literal["openai"]
    base_url: str = Field(description="address of the API, e.g. http://127.0.0.1:8000/v1")
    model: str = Field(description="model as the server calls it")
    api_key_env: str | None = Field(None, description="environment variable that holds the key")
    votes: int = Field(1, description="answers a pair", ge=1)
    in_flight: int = Field(32, description="calls at the same time", ge=1)
    timeout: float = Field(60.0, description="seconds a call", gt=0)
    retries: int = Field(5, description="tries after the first, on 429, 5xx and time-outs", ge=0)
    temperature: float | None = Field(0.0, description="null leaves it to the server")
    seed: int | None = Field(None, description="sent where the server takes one")
    max_tokens: int = Field(200, description="longest answer", ge=1)
    price_prompt: float = Field(0.0, description="a million tokens sent", ge=0)
    price_completion: float = Field(0.0, description="a million tokens received", ge=0)


class RuleJudge(JudgeBase):
    """Exact values: the same error code, part number or date. Without one, people read the pair."""

    kind: Literal["rule"]
    patterns: dict[str, tuple[str, ...]] = Field(
        min_length=1, description="kind of value -> regular expression, or a list, e.g. {error = 'e-?(\\d{4})'}; its "
                                  "groups, else the whole match, are the value; case does not count")

    @field_validator("patterns", mode="before")
    @classmethod
    def _lists(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {kind: (value,) if isinstance(value, str) else value for kind, value in given.items()}

    @field_validator("patterns")
    @classmethod
    def _usable(cls, patterns: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for kind, texts in patterns.items():
            if not texts:
                raise ValueError(f"'{kind}' has no pattern; write a regular expression, e.g. 'e-?(\\d{{4}})'")
            for text in texts:
                try:
                    matches_nothing = standing_alone(text).search("")
                except re.error as error:
                    raise ValueError(f"'{kind}': {text!r} is no regular expression ({error}); mend it") from error
                if matches_nothing:
                    raise ValueError(f"'{kind}': {text!r} matches the empty text, so every text would have that value; "
                                     "write what a value must hold")
        return patterns


class ReplayJudge(JudgeBase):
    """Recorded verdicts."""

    kind: Literal["replay"]
    path: Path = Field(description="JSONL of question_id, span_id, relevant")

    @property
    def files(self) -> tuple[Path, ...]:
        """The recorded verdicts."""
        return (self.path,)


Judge = Annotated[SimilarityJudge | CrossEncoderJudge | OpenAIJudge | RuleJudge | ReplayJudge,
                  Field(discriminator="kind")]
