"""Pydantic models of configs/*.toml. Unknown keys are refused with the nearest name; paths are relative to the file.

Every field has a description: ``configs/reference.toml`` is generated from these models.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from goldset.config.corpus import ChunkerConfig, ChunkSource, CorpusConfig, DocumentSource
from goldset.config.judge import (
    Budget,
    CrossEncoderJudge,
    Judge,
    JudgeBase,
    OpenAIJudge,
    ReplayJudge,
    RuleJudge,
    SimilarityJudge,
    ThresholdJudge,
)
from goldset.config.questions import LogSource, QuestionsConfig
from goldset.config.section import Section, refuse_password
from goldset.config.systems import (
    BM25System,
    DenseSystem,
    GoldSetSystem,
    HttpSystem,
    HybridSystem,
    PythonSystem,
    QdrantSystem,
    RunSystem,
    Service,
    System,
)
from goldset.errors import ConfigError, nearest
from goldset.explain import explain
from goldset.shards import SHARD

__all__ = [
    "BM25System", "Budget", "ChunkSource", "ChunkerConfig", "Config", "CorpusConfig", "CrossEncoderJudge",
    "DenseSystem", "DocumentSource", "GoldSetSystem", "HttpSystem", "HybridSystem", "Judge", "JudgeBase", "LogSource",
    "OpenAIJudge", "PoolConfig", "ProjectConfig", "PythonSystem", "QdrantSystem", "QuestionsConfig", "ReplayJudge",
    "ReviewConfig", "RuleJudge", "RunSystem", "ScoringConfig", "Section", "Service", "SimilarityJudge",
    "SupersedesConfig", "System", "ThresholdJudge", "load_config",
]


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


class PoolConfig(Section):
    """The pool of what all systems return."""

    depth: int = Field(50, description="top results of each system that enter the pool", ge=1)
    shard_chunks: int = Field(SHARD, description="chunks that bm25 and dense index and search at a time, which "
                              "bounds memory; the results are the same", ge=1)


class ReviewConfig(Section):
    """What people read, and where their labels are kept."""

    profile: Literal["basic", "careful"] = Field("basic", description="how much people read")
    database: str = Field("sqlite", description="sqlite, or a PostgreSQL URL; GOLDSET_REVIEW_URL overrides it")
    rejection_share: float = Field(0.1, description="share of the judge's rejections that people read", gt=0, le=1)
    rejection_min: int = Field(300, description="at least so many, or all", ge=1)
    second_share: float = Field(0.1, ge=0, le=1,
                                description="share within each reason that a second person labels blind")
    carried_share: float = Field(0.03, ge=0, le=1, description="share of the yes and of the no carried from earlier "
                                 "rebuilds that people read again, blind; at least one of each")
    replay: Path | None = Field(None, description="recorded assessors, for demonstrations and tests")
    seconds_base: float = Field(6.0, description="seconds an item, before reading", ge=0)
    words_per_minute: float = Field(230.0, description="reading rate for the plan", gt=0)

    @model_validator(mode="after")
    def _no_password(self) -> ReviewConfig:
        refuse_password(self.database, "give it in the environment variable GOLDSET_REVIEW_URL instead of database")
        return self


class ScoringConfig(Section):
    """What publish scores: the system in production and the cutoffs around it."""

    system: str = Field(description="the system in production")
    served_k: int = Field(description="passages that reach the reader", ge=1)
    retrieved_k: int | None = Field(None, description="passages retrieved before reranking", ge=1)
    evaluated_k: int | None = Field(None, ge=1, description="k of the headline that is quoted so far; a version quotes "
                                    "served_k")


class SupersedesConfig(Section):
    """A labelled set that the version replaces: its report takes the old headline apart, one change a row."""

    set: Path = Field(description="the old set: a BEIR folder, qrels, a file of examples or a published version")
    run: Path = Field(description="the run of [scoring] system that its headline was measured on")
    relevant_from: int | None = Field(None, description="smallest grade of the old set that counts as relevant", ge=1)
    found_within: int | None = Field(None, ge=1, description="its gold was looked for in so many first results of "
                                     "[scoring] system; left out if it was not")


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
    supersedes: SupersedesConfig | None = Field(None, description="a labelled set that the version replaces")
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
                if isinstance(self.systems[part], GoldSetSystem):
                    raise ValueError(f"[systems.{name}] of: '{part}' is an old labelled set and ranks nothing")
            if isinstance(system, HybridSystem) and system.weights and len(system.weights) != len(system.of):
                raise ValueError(f"[systems.{name}] weights: {len(system.weights)} for {len(system.of)} systems")
        if self.scoring.system not in self.systems:
            raise ValueError(f"[scoring] system: no system '{self.scoring.system}'; "
                             f"{nearest(self.scoring.system, self.systems)}")
        if isinstance(self.systems[self.scoring.system], GoldSetSystem):
            raise ValueError(f"[scoring] system: '{self.scoring.system}' is an old labelled set and ranks nothing; "
                             "name the system in production")
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
