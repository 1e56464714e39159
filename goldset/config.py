"""Pydantic models of configs/*.toml. Unknown keys are refused with the nearest name; paths are relative to the file.

Every field has a description: ``configs/reference.toml`` is generated from these models.
"""

from __future__ import annotations

import os
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from goldset.errors import ConfigError, nearest
from goldset.explain import explain


class Section(BaseModel):
    """A section of the file: unknown keys are errors, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ProjectConfig(Section):
    """The project: its name, where it works, what its draws derive from."""

    name: str = Field(description="published as <workspace>/gold/<name>/v1", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    workspace: Path = Field(description="folder for artifacts, caches, databases and published sets")
    timezone: str = Field("UTC", description="IANA name; weeks start Monday 00:00 in this zone")
    seed: int = Field(0, description="all draws derive from it")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"'{value}' is not an IANA time zone, e.g. Europe/Berlin") from error
        return value


class DocumentSource(Section):
    """Where documents lie and what their fields are called."""

    path: Path = Field(description="JSONL (gzip too), or a folder of .txt, .md and .html files")
    id: str = Field("doc_id", description="dotted field of the id")
    text: str = Field("text", description="dotted field of the text")
    title: str | None = Field("title", description="dotted field of the title")
    url: str | None = Field("url", description="dotted field of the address")
    metadata: str | None = Field("metadata", description="dotted field of the object that filters read")
    markup: Literal["text", "markdown", "html"] = Field("text", description="how the text field is written")


class ChunkSource(Section):
    """Where the chunks that are indexed lie and what their fields are called."""

    path: Path = Field(description="JSONL, gzip too")
    id: str = Field("chunk_id", description="dotted field of the chunk id")
    doc_id: str = Field("doc_id", description="dotted field of the document id")
    text: str = Field("text", description="dotted field of the text as indexed")
    title: str | None = Field("title", description="dotted field of the title")
    start: str | None = Field("start", description="dotted field of the first code point in the document")
    end: str | None = Field("end", description="dotted field of one past the last")
    metadata: str | None = Field("metadata", description="dotted field of the object that filters read")


class ChunkerConfig(Section):
    """The project's own chunker: words by step, or sentences up to a number of words."""

    words: int = Field(120, description="words a chunk", ge=1)
    step: int | None = Field(None, description="words from one chunk's start to the next; default: words", ge=1)
    unit: Literal["words", "sentences"] = Field("words", description="cut anywhere, or only between sentences")


class CorpusConfig(Section):
    """The corpus: documents, chunks, or both."""

    documents: DocumentSource | None = Field(None, description="path, or a table with path and field names")
    chunks: ChunkSource | None = Field(None, description="path, or a table with path and field names")
    chunker: ChunkerConfig | None = Field(None, description="cut the documents ourselves")
    merge_near_twins: float | None = Field(
        None, gt=0.5, le=1, description="similarity (of three-word runs, e.g. 0.95) from which spans are judged as "
        "one; default: near twins are only listed")

    @field_validator("documents", "chunks", mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _enough(self) -> CorpusConfig:
        if self.documents is None and self.chunks is None:
            raise ValueError("needs documents or chunks (a path to a JSONL file)")
        if self.chunks is None and self.chunker is None:
            raise ValueError("documents alone need a chunker, e.g. chunker = {words = 120, step = 50}")
        if self.chunks is not None and self.chunker is not None:
            raise ValueError("chunks and chunker exclude each other: the chunks are cut already")
        return self


class LogSource(Section):
    """One log file and the names of its columns."""

    path: Path = Field(description="log file; gzip too")
    format: Literal["jsonl", "csv", "parquet", "chat", "ubi"] = Field("jsonl", description="how the file is written")
    text: str = Field("text", description="column of the question as typed")
    query: str | None = Field(None, description="column of the string sent to retrieval, if it was rewritten")
    time: str | None = Field("time", description="column of the time (ISO 8601, or epoch seconds or milliseconds)")
    session: str | None = Field("session", description="column of the session; chat: the conversation")
    user: str | None = Field(None, description="column of the user")
    agent: str | None = Field(None, description="column of the user agent; without it bots cannot be ruled out")
    turn: str = Field("turn", description="chat: column of the turn number")
    role: str = Field("role", description="chat: column of the role")
    user_role: str = Field("user", description="chat: value of role for people's turns")
    scope: tuple[str, ...] = Field((), description="columns sent as filters (tenant, locale …)")


class QuestionsConfig(Section):
    """The questions: from log lines to a weighted sample."""

    logs: tuple[LogSource, ...] = Field(description="log files", min_length=1)
    window: str = Field("6w", pattern=r"^(all|[1-9][0-9]*[dw])$",
                        description="rolling sampling window: 6w, 42d, or all")
    until: date | None = Field(None, description="end of the window, exclusive; default: the day after the last line")
    unit: Literal["events", "distinct"] = Field(
        "events", description="what is drawn: log events with multiplicity, or distinct questions uniformly")
    size: int = Field(180, description="draws", ge=1)
    rotate: float = Field(0.2, description="share of the panel that changes with the window", ge=0, le=1)
    followups: Literal["set_aside", "context"] = Field(
        "set_aside", description="follow-ups that cannot stand alone: drop, or keep with their context")
    languages: tuple[str, ...] = Field((), description="ISO 639-1 codes to keep; empty keeps all")
    near_duplicate: float = Field(0.8, gt=0, le=1,
                                  description="Jaccard similarity from which questions share a cluster")
    bad_share: float = Field(0.2, description="stop if more of the log lines than this cannot be read", ge=0, le=1)
    max_line_bytes: int = Field(1_000_000, description="longer lines are quarantined", ge=1)
    per_session_day: int = Field(50, ge=1, description="more events than this of one session (or user, or repeating "
                                 "agent) a day are machine traffic")
    frame: Path | None = Field(None, description="JSONL of question_id: limit the frame to these questions")


class BM25System(Section):
    """Our BM25 over the corpus."""

    kind: Literal["bm25"]
    family: str = Field("lexical", description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k1: float = Field(1.5, description="term saturation", gt=0)
    b: float = Field(0.75, description="length normalisation", ge=0, le=1)


class DenseSystem(Section):
    """A sentence-transformers encoder with exact search."""

    kind: Literal["dense"]
    family: str = Field(description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    model: str = Field(description="model name, folder, or package:<module with get_model_path>")
    dtype: Literal["float32", "bfloat16", "auto"] = Field("float32", description="auto: bfloat16 where the CPU has it")
    query_prompt: str = Field("", description="put before each query")
    passage_prompt: str = Field("", description="put before each passage")


class HybridSystem(Section):
    """Reciprocal rank fusion of other systems; its family is the union of theirs."""

    kind: Literal["hybrid"]
    of: tuple[str, ...] = Field(description="names of the fused systems", min_length=2)
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k: int = Field(60, description="rank constant", ge=1)
    weights: tuple[float, ...] | None = Field(None, description="one weight a fused system; default 1 each")


class RunSystem(Section):
    """A TREC run file, e.g. production's results."""

    kind: Literal["run"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    path: Path = Field(description="TREC run file; gzip too")


class HttpSystem(Section):
    """A search service."""

    kind: Literal["http"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    url: str = Field(description="address; {query} and {depth} are filled in")
    body: dict[str, Any] | None = Field(None, description="JSON to POST; strings may hold {query}, {depth}, {scope}")
    headers: dict[str, str] = Field({}, description="headers; $NAME is read from the environment")
    ids: str = Field(description="path to the ids in the answer, e.g. hits.hits[*]._id")
    scores: str | None = Field(None, description="path to the scores")
    timeout: float = Field(30.0, description="seconds a request", gt=0)
    retries: int = Field(3, description="tries after the first", ge=0)


class PythonSystem(Section):
    """Your own function: ``search(questions, depth)``."""

    kind: Literal["python"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    entry: str = Field(description="package.module:function", pattern=r"^[\w.]+:\w+$")


System = Annotated[
    BM25System | DenseSystem | HybridSystem | RunSystem | HttpSystem | PythonSystem, Field(discriminator="kind")
]


class PoolConfig(Section):
    """The pool of what all systems return."""

    depth: int = Field(50, description="top results of each system that enter the pool", ge=1)


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


class SimilarityJudge(JudgeBase):
    """Cosine of an encoder, declared weak. The threshold is computed from people's labels, never written."""

    kind: Literal["similarity"]
    model: str = Field(description="model name, folder, or package:<module>")
    dtype: Literal["float32", "bfloat16", "auto"] = Field("float32", description="auto: bfloat16 where the CPU has it")
    calibration: Path = Field(description="JSONL of question, passage, relevant: the threshold comes from it")


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


class ReplayJudge(JudgeBase):
    """Recorded verdicts."""

    kind: Literal["replay"]
    path: Path = Field(description="JSONL of question_id, span_id, relevant")


Judge = Annotated[SimilarityJudge | OpenAIJudge | ReplayJudge, Field(discriminator="kind")]


class ReviewConfig(Section):
    """What people read, and where their labels are kept."""

    profile: Literal["basic", "careful"] = Field("basic", description="how much people read")
    database: str = Field("sqlite", description="sqlite, or a PostgreSQL URL; GOLDSET_REVIEW_URL overrides it")
    rejection_share: float = Field(0.1, description="share of the judge's rejections that people read", gt=0, le=1)
    rejection_min: int = Field(300, description="at least so many, or all", ge=1)
    second_share: float = Field(0.1, ge=0, le=1,
                                description="share within each reason that a second person labels blind")
    replay: Path | None = Field(None, description="recorded assessors, for demonstrations and tests")
    seconds_base: float = Field(6.0, description="seconds an item, before reading", ge=0)
    words_per_minute: float = Field(230.0, description="reading rate for the plan", gt=0)


class ScoringConfig(Section):
    """What publish scores: the system in production and the cutoffs around it."""

    system: str = Field(description="the system in production")
    served_k: int = Field(description="passages that reach the reader", ge=1)
    retrieved_k: int | None = Field(None, description="passages retrieved before reranking", ge=1)
    evaluated_k: int | None = Field(None, ge=1, description="k of the headline that is quoted so far; a version quotes "
                                    "served_k")


class Config(Section):
    """A whole configuration file."""

    project: ProjectConfig
    corpus: CorpusConfig
    questions: QuestionsConfig
    pool: PoolConfig = PoolConfig()
    systems: dict[str, System] = Field(min_length=1)
    judge: Judge
    review: ReviewConfig = ReviewConfig()
    scoring: ScoringConfig
    base: Path = Field(Path(), exclude=True)  # folder of the file, set by load_config

    @model_validator(mode="after")
    def _names(self) -> Config:
        for name, system in self.systems.items():
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
                raise ValueError(f"[systems.{name}]: a name has letters, digits, '_', '.' and '-' only")
            for part in system.of if isinstance(system, HybridSystem) else ():
                if part not in self.systems:
                    raise ValueError(f"[systems.{name}] of: no system '{part}'; {nearest(part, self.systems)}")
                if isinstance(self.systems[part], HybridSystem):
                    raise ValueError(f"[systems.{name}] of: '{part}' is a hybrid itself; name its parts")
            if isinstance(system, HybridSystem) and system.weights and len(system.weights) != len(system.of):
                raise ValueError(f"[systems.{name}] weights: {len(system.weights)} for {len(system.of)} systems")
        if self.scoring.system not in self.systems:
            raise ValueError(f"[scoring] system: no system '{self.scoring.system}'; "
                             f"{nearest(self.scoring.system, self.systems)}")
        return self

    def path(self, value: Path) -> Path:
        """A path of the file, made absolute: relative to the file's folder."""
        return (self.base / value).resolve()

    @property
    def workspace(self) -> Path:
        """Folder of the workspace."""
        return self.path(self.project.workspace)

    @property
    def review_url(self) -> str:
        """Database URL of the review: environment, else the config, else SQLite in the workspace."""
        url = os.environ.get("GOLDSET_REVIEW_URL") or self.review.database
        return f"sqlite:///{self.workspace / 'review.sqlite'}" if url == "sqlite" else url

    def family(self, name: str) -> str:
        """Family of a system: its own, its name for a run without one, the union of its parts for a hybrid."""
        system = self.systems[name]
        if isinstance(system, HybridSystem):
            return "+".join(sorted({self.family(part) for part in system.of}))
        return system.family or name

    def resolved(self) -> dict[str, Any]:
        """What the manifest stores: every key with its value, paths as written."""
        return self.model_dump(mode="json")


def load_config(path: Path, **overrides: dict[str, Any]) -> Config:
    """Read a TOML file -> Config; ``overrides`` replace keys of a section (``project={"workspace": …}``).

    Raises:
        ConfigError: names the file, the key, the value and what is allowed.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such configuration file; 'goldset init DIR' writes one") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    for section, values in overrides.items():
        raw[section] = {**raw.get(section, {}), **values}
    try:
        return Config.model_validate({**raw, "base": path.resolve().parent})
    except ValidationError as error:
        raise ConfigError("; ".join(explain(path, item, Config) for item in error.errors()[:3])) from error
