"""[questions]: log files and how they are sampled."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field

from goldset.config.section import Section


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
