"""Real logs: the mtrag-un chats joined to their questions, and the UBI sample.

Expected counts are computed here a second time, from the raw files and with the standard library only.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from goldset.config import LogSource, QuestionsConfig
from goldset.formats.logs import LogRead, read_log
from goldset.questions import QuestionTables, mask, sample_questions
from goldset.text import question_id

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
CHAT = SHARED / "logs" / "mtrag-un-chat" / "chat.jsonl.gz"
UBI = SHARED / "logs" / "ubi-esci-sample" / "ubi_queries_events.ndjson.gz"
MTRAG = SHARED / "collections" / "mtrag"

pytestmark = [
    pytest.mark.collections,
    pytest.mark.skipif(not CHAT.exists(), reason=f"the real logs are not there: {SHARED}"),
]


def _json(path: Path) -> list[dict[str, Any]]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in raw.decode("utf-8").split("\n") if line]


@cache
def judged() -> list[dict[str, Any]]:
    """The collection's questions that have qrels."""
    lines = (MTRAG / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    with_qrels = {line.split("\t")[0] for line in lines}
    return [row for row in _json(MTRAG / "queries.jsonl") if row["_id"] in with_qrels]


@cache
def frame() -> frozenset[str]:
    """Their question_ids, from masked text as in the log."""
    return frozenset(
        question_id(mask(row["text"])[0], [(t["role"], mask(t["text"])[0]) for t in row["metadata"]["history"]])
        for row in judged()
    )


@cache
def chat() -> LogRead:
    return read_log(
        LogSource.model_validate(
            {"path": CHAT.name, "format": "chat", "session": "conversation", "time": "timestamp", "user": "author"}
        ),
        CHAT,
        mask=mask,
        max_line_bytes=1_000_000,
    )


def sample(**keys: Any) -> QuestionTables:
    config = QuestionsConfig.model_validate(
        {"logs": [{"path": CHAT.name}], "window": "all", "size": 120, "followups": "context", **keys}
    )
    made = sample_questions(events=chat().events, config=config, seed=7, timezone="UTC", frame=frame())
    assert sum(made.drops.column("lines").to_pylist()) == 2191
    return made


def _plain(text: str) -> str:
    """An independent, cruder normal form than question_key; enough to count equal turns in this file."""
    return " ".join(text.lower().split()).strip("?!.,;:… ")


@cache
def joined() -> list[tuple[str, str]]:
    """(conversation, plain text) of every user turn whose text and whole history stand in a judged question."""
    wanted = {
        (_plain(row["text"]), tuple((t["role"], _plain(t["text"])) for t in row["metadata"]["history"]))
        for row in judged()
    }
    talks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _json(CHAT):
        talks[row["conversation"]].append(row)
    found = []
    for name, turns in talks.items():
        turns.sort(key=lambda row: row["turn"])
        said = [(row["role"], _plain(row["text"])) for row in turns]
        for i, (role, text) in enumerate(said):
            if role == "user" and (text, tuple(said[:i])) in wanted:
                found.append((name, text))
    return found


def test_every_line_of_the_chat_log_is_a_turn() -> None:
    log = chat()
    assert (log.lines, log.events.num_rows, log.rejected, log.other) == (3875, 2191, [], {"other_roles": 1684})
    assert log.events.column("time").null_count == 0
    first, last = sorted(log.events.column("time").to_pylist())[::2190]
    assert (first.date().isoformat(), last.date().isoformat()) == ("2024-07-21", "2025-11-27")
    assert len(set(log.events.column("session").to_pylist())) == 507
    assert len(set(log.events.column("user").to_pylist())) == 31
    # Turns from 1 without gaps: the n-th turn of a conversation has n - 1 turns before it.
    turn = {number: row["turn"] for number, row in enumerate(_json(CHAT), 1)}
    for row in log.events.to_pylist():
        assert len(row["context"]) == turn[row["line"]] - 1


def test_questions_with_qrels_are_found_by_text_and_history() -> None:
    made = sample()
    # By text alone 349 turns have qrels; five of them have another history there.
    texts = {row["text"].strip() for row in judged()}
    assert sum(row["role"] == "user" and row["text"].strip() in texts for row in _json(CHAT)) == 349
    assert len(joined()) == 344
    assert made.report["eligible_events"] == 344
    assert made.report["eligible_questions"] == 343
    drops = dict(zip(made.drops.column("reason").to_pylist(), made.drops.column("lines").to_pylist(), strict=True))
    assert drops["kept"] == 120
    assert drops["not_sampled"] == 344 - 120
    assert drops["outside_frame"] + drops["greeting"] == 2191 - 344
    assert set(drops) == {"greeting", "outside_frame", "not_sampled", "kept"}


def test_all_of_the_benchmark_that_was_chatted_is_there_if_all_is_asked_for() -> None:
    made = sample(size=10_000)
    ids = set(made.questions.column("question_id").to_pylist())
    # The 332 judged questions of mtrag-un are the turns of this log; the older benchmark shares eleven first turns.
    un = {row["_id"] for row in judged() if row["metadata"]["benchmark"] == "mtrag-un"}
    assert len(un) == 332
    assert ids <= frame()
    assert (made.questions.num_rows, sum(made.questions.column("draws").to_pylist())) == (343, 344)
    found = {_plain(text) for text in made.questions.column("text").to_pylist()}
    assert found == {_plain(mask(text)[0]) for _, text in joined()}


def test_the_sample_of_120() -> None:
    made = sample()
    table = made.questions.to_pylist()
    assert sum(row["draws"] for row in table) == 120
    assert {row["inclusion_prob"] for row in table} == {120 / 344}
    turns = {row["text"]: row for row in table}
    assert len({row["session_cluster"] for row in table}) > 100
    assert all(row["question_id"] in frame() for row in turns.values())
    # The writers asked in English: the guess may be undetermined, but it must not be another language.
    assert {row["language"] for row in table} <= {"en", "und"}
    assert sum(row["language"] == "en" for row in table) > 80
    assert sample().questions.equals(made.questions)


def test_standalone_rules_on_real_first_turns() -> None:
    config = QuestionsConfig.model_validate({"logs": [{"path": "x"}], "window": "all", "size": 10_000})
    events = chat().events
    first = [not context for context in events.column("context").to_pylist()]
    made = sample_questions(events=events.filter(first), config=config, seed=7, timezone="UTC", frame=None)
    drops = dict(zip(made.drops.column("reason").to_pylist(), made.drops.column("lines").to_pylist(), strict=True))
    # A conversation's first turn stands alone by its place: what the rules drop here, they drop wrongly.
    assert sum(drops.values()) == 507
    assert drops.get("followup", 0) + drops.get("greeting", 0) <= 3


def test_ubi_sample_holds_473_queries() -> None:
    log = read_log(
        LogSource.model_validate({"path": UBI.name, "format": "ubi"}), UBI, mask=mask, max_line_bytes=1_000_000
    )
    assert (log.lines, log.events.num_rows, log.rejected) == (7842, 473, [])
    assert log.other == {"actions": 3921, "ubi_events": 3448}
    raw = [
        row
        for action, row in zip(_json(UBI)[::2], _json(UBI)[1::2], strict=True)
        if action["index"]["_index"] == "ubi_queries"
    ]
    assert log.events.column("text").to_pylist() == [row["user_query"] for row in raw]
    assert log.events.column("time").null_count == 0
    assert len(set(log.events.column("session").to_pylist())) == len({row["client_id"] for row in raw})
