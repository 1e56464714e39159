"""``goldset init``: what it takes files and folders for, beyond the plain ones of test_commands.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from goldset.config import Config, load_config
from goldset.formats.logs import read_log
from tests.cli.conftest import Goldset
from tests.pipeline import golden


def _init(goldset: Goldset, folder: Path) -> Config:
    done = goldset("init", folder)
    assert done.code == 0, done.err
    return load_config(folder / "goldset.toml")


def test_init_knows_the_bulk_file_of_user_behavior_insights_and_a_folder_of_pages(goldset: Goldset,
                                                                                   tmp_path: Path) -> None:
    """Two lines of three are no questions: read as plain lines, the log would be refused."""
    folder = tmp_path / "shop"
    (folder / "pages" / "more").mkdir(parents=True)
    (folder / "drafts").mkdir()
    for name in ("pages/boats.md", "pages/more/tickets.html", "drafts/old.txt"):
        (folder / name).write_text("The harbour office sells tickets.")
    asked = {"query_id": "1", "user_query": "when does the boat leave", "client_id": "c1", "query_attributes": {}}
    golden.jsonl(folder / "ubi.ndjson", [
        {"index": {"_index": "ubi_queries", "_id": "1"}}, {**asked, "timestamp": "2024-12-10T00:01:29.378Z"},
        {"index": {"_index": "ubi_events", "_id": "2"}},
        {"action_name": "click", "query_id": "1", "timestamp": 1733788889378, "message": "looked at a boat"}])
    config = _init(goldset, folder)
    (log,) = config.questions.logs
    assert (log.format, log.text, log.time, log.session) == ("ubi", "user_query", "timestamp", "client_id")
    assert config.corpus.documents is not None
    assert str(config.corpus.documents.path) == "pages", "two files; drafts has one"
    assert config.corpus.chunker is not None
    read = read_log(log, folder / "ubi.ndjson", mask=lambda text: (text, 0), max_line_bytes=10_000)
    assert read.events.column("text").to_pylist() == ["when does the boat leave"]
    assert read.events.column("session").to_pylist() == ["c1"]


def test_init_takes_a_parquet_file_for_a_log_and_never_for_a_corpus(goldset: Goldset, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    start = datetime(2026, 3, 1, tzinfo=UTC)
    pq.write_table(pa.table({"asked": [f"when does boat {i} leave" for i in range(5)],
                             "at": [start + timedelta(hours=i) for i in range(5)],
                             "sid": [f"s{i}" for i in range(5)]}), folder / "log.parquet")
    pq.write_table(pa.table({"id": [f"p{i}" for i in range(5)], "text": ["All about boats. " * 20] * 5}),
                   folder / "a_corpus.parquet")
    golden.jsonl(folder / "pages.jsonl", ({"id": f"p{i}", "text": "All about boats. " * 20} for i in range(3)))
    config = _init(goldset, folder)
    (log,) = config.questions.logs
    assert (str(log.path), log.format, log.text, log.time, log.session) == ("log.parquet", "parquet", "asked", "at",
                                                                            "sid")
    assert config.corpus.documents is not None
    assert str(config.corpus.documents.path) == "pages.jsonl"
    read = read_log(log, folder / "log.parquet", mask=lambda text: (text, 0), max_line_bytes=10_000)
    assert read.events.column("time").to_pylist()[1] == start + timedelta(hours=1)
