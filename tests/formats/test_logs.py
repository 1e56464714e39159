"""Log readers: every line becomes an event, a rejection with its reason, or a counted line of another kind."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.config import LogSource
from goldset.errors import DataError
from goldset.formats.logs import LogRead, read_log
from goldset.formats.logtimes import parse_time


def hide(text: str) -> tuple[str, int]:
    """A mask of one word, so that these tests do not depend on the real one."""
    return text.replace("secret", "[x]"), text.count("secret")


def read(path: Path, limit: int = 1_000_000, **names: Any) -> LogRead:
    log = read_log(LogSource.model_validate({"path": path.name, **names}), path, mask=hide, max_line_bytes=limit)
    assert log.lines == log.events.num_rows + len(log.rejected) + sum(log.other.values())
    return log


def texts(log: LogRead) -> list[str]:
    return list(log.events.column("text").to_pylist())


def reasons(log: LogRead) -> list[tuple[int, str]]:
    return [(bad.line, bad.reason) for bad in log.rejected]


def test_damaged_lines_are_set_aside_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        for line in (b'{"query": "first"}', b"", b"42", b"[]", b'{"query": "a"', b'{"query": 5}', b"\xff\xfe"):
            file.write(line + b"\n")
        file.write(b'{"query": "secret ' + b"x" * 60_000_000 + b'"}\n')
        file.write(b'{"query": "last"}\n')
    log = read(path, text="query")
    assert texts(log) == ["first", "last"]
    assert log.events.column("line").to_pylist() == [1, 9]
    assert reasons(log) == [
        (2, "empty_line"),
        (3, "not_object"),
        (4, "not_object"),
        (5, "not_json"),
        (6, "not_text"),
        (7, "not_utf8"),
        (8, "overlong"),
    ]
    overlong = log.rejected[-1].text
    assert "secret" not in overlong
    assert len(overlong) <= 201


def test_masking_reaches_every_column_and_the_rejected_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = {
        "text": "my secret",
        "q": "secret q",
        "session": "secret@1",
        "who": "u1",
        "ua": "secret agent",
        "tenant": "secret",
        "shelf": ["secret"],
        "level": 3,
    }
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "text": ["secret"]}) + "\n")
    log = read(path, query="q", user="who", agent="ua", scope=["tenant", "shelf", "level", "absent"])
    (event,) = log.events.to_pylist()
    assert "secret" not in str(event)
    assert "secret" not in log.rejected[0].text
    assert event["text"] == "my [x]"
    assert event["query"] == "[x] q"
    assert event["masked"] == 1
    assert json.loads(event["scope"]) == {"tenant": "[x]", "shelf": '["[x]"]', "level": 3}
    # A session that is itself personal keeps its identity without its name.
    assert event["session"].startswith("h")
    assert event["user"] == "u1"


def test_words_for_missing_values_are_text_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("qid,query\n1,null\n2,NA\n3,None\n4,\n5,nan\n")
    log = read(path, format="csv", text="query")
    assert texts(log) == ["null", "NA", "None", "", "nan"]
    assert log.other == {"header": 1, "continuation": 0}
    assert log.events.column("line").to_pylist() == [2, 3, 4, 5, 6]


def test_csv_survives_quotes_bytes_and_widths(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(
        b'\xef\xbb\xbftext;time\r\n"two\r\nlines; one ""record""";2025-01-01\r\nshort\r\n\r\n\xff;x\r\n'
        b'"never closed;2025-01-02\r\nafter;2025-01-03\r\n5" disk;\r\n"a" b;c\r\n'
    )
    log = read(path, format="csv")
    assert texts(log) == ['two\nlines; one "record"', "after", '5" disk']
    assert log.events.column("line").to_pylist() == [2, 8, 9]
    assert reasons(log) == [(4, "columns"), (5, "empty_line"), (6, "not_utf8"), (7, "quoting"), (10, "quoting")]
    assert log.other == {"header": 1, "continuation": 1}


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r")), st.text("ab,;")),
        min_size=1,
        max_size=8,
    )
)
def test_what_the_csv_module_writes_is_read_back(rows: list[tuple[str, str]]) -> None:
    import tempfile

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["text", "note"])
    writer.writerows(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(buffer.getvalue().encode())
        assert texts(read(path, format="csv")) == [hide(text)[0] for text, _ in rows]


@pytest.mark.parametrize("packed", [False, True])
def test_byte_order_mark_and_gzip(tmp_path: Path, packed: bool) -> None:
    data = '\ufeff{"text": "one"}\r\n{"text": "zwei", "time": 1733788889378}'.encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data) if packed else data)
    log = read(path)
    assert texts(log) == ["one", "zwei"]
    # 1733788889.378 s: 20066 days and 86489.378 s - 86400 s = 0 h 01 min 29.378 s of the next day, 10 Dec 2024.
    assert log.events.column("time").to_pylist() == [None, datetime(2024, 12, 10, 0, 1, 29, 378000, tzinfo=UTC)]


def test_hostile_json_is_rejected_not_raised(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"text": "ok \\ud83d half"}\n' + "[" * 100_000 + "\n" + "1" * 5000 + '\n{"text": NaN}\n{"text": null}\n'
    )
    log = read(path)
    assert texts(log) == ["ok \ufffd half"]
    assert reasons(log) == [(2, "not_json"), (3, "not_json"), (4, "not_json"), (5, "no_text")]


def test_parquet_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    when = pa.array([datetime(2025, 1, 1, tzinfo=UTC), None, None, None], pa.timestamp("ns", tz="UTC"))
    pq.write_table(pa.table({"q": ["NA", None, "long " * 10, "secret"], "t": when, "s": [7, 7, 8, None]}), path)
    log = read(path, 40, format="parquet", text="q", time="t", session="s")
    assert texts(log) == ["NA", "[x]"]
    assert log.events.column("session").to_pylist() == ["7", None]
    assert log.events.column("time").to_pylist() == [datetime(2025, 1, 1, tzinfo=UTC), None]
    assert reasons(log) == [(2, "no_text"), (3, "overlong")]


def test_chat_turns_become_questions_with_their_context(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    rows = [
        {"c": "b", "n": 1, "role": "human", "t": "vpn?"},
        {"c": "a", "n": "2", "role": "bot", "t": "call secret"},
        {"c": "a", "n": 1, "role": "human", "t": "hello secret"},
        {"c": "a", "n": 3.0, "role": "human", "t": "and now?"},
        {"c": "a", "role": "human", "t": "no number"},
        {"n": 1, "role": "human", "t": "nowhere"},
        {"c": "a", "n": 4, "role": "", "t": "nobody"},
        {"c": "a", "n": 4, "role": "bot", "t": None},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    log = read(path, format="chat", session="c", turn="n", text="t", user_role="human", time=None)
    assert [
        (row["line"], row["text"], row["masked"], [tuple(t.values()) for t in row["context"]])
        for row in log.events.to_pylist()
    ] == [
        (1, "vpn?", 0, []),
        (3, "hello [x]", 1, []),
        (4, "and now?", 2, [("human", "hello [x]"), ("bot", "call [x]")]),
    ]
    assert log.other == {"other_roles": 1}
    assert reasons(log) == [(5, "no_turn"), (6, "no_conversation"), (7, "no_role"), (8, "no_text")]


def test_ubi_bulk_takes_queries_only(tmp_path: Path) -> None:
    path = tmp_path / "ubi.ndjson"
    lines = [
        {"index": {"_index": "ubi_queries", "_id": "1"}},
        {"user_query": "tv", "client_id": "c1", "timestamp": "2025-03-03T16:47:48.835+0000", "query": "{}"},
        {"create": {"_index": "ubi_events"}},
        {"user_query": "tv", "action_name": "click", "timestamp": 1733788889378},
        {"index": {"_index": "ubi_queries"}},
        {"client_id": "c2"},
        {"user_query": "no action line before", "timestamp": "2025-03-03T16:47:48Z"},
        {"_index": "ubi_queries", "_source": {"user_query": "an exported hit", "timestamp": 1733788889378}},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    log = read(path, format="ubi")
    assert texts(log) == ["tv", "no action line before", "an exported hit"]
    assert log.events.column("session").to_pylist() == ["c1", None, None]
    assert log.events.column("query").to_pylist() == [None, None, None]
    assert log.events.column("time").to_pylist()[0] == datetime(2025, 3, 3, 16, 47, 48, 835000, tzinfo=UTC)
    assert log.other == {"actions": 3, "ubi_events": 1}
    assert reasons(log) == [(6, "no_text")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-03-03T16:47:48Z", datetime(2025, 3, 3, 16, 47, 48, tzinfo=UTC)),
        ("2025-03-03 17:47:48+01:00", datetime(2025, 3, 3, 16, 47, 48, tzinfo=UTC)),
        ("2025-03-03T16:47:48", datetime(2025, 3, 3, 16, 47, 48, tzinfo=UTC)),
        ("20250303", datetime(2025, 3, 3, tzinfo=UTC)),
        # 1e9 s is the well-known 2001-09-09 01:46:40.
        (1_000_000_000, datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)),
        ("1000000000000", datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)),
        (1_000_000_000_000_000_000, datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)),
        (1_000_000_000.5, datetime(2001, 9, 9, 1, 46, 40, 500000, tzinfo=UTC)),
        (True, None),
        (5, None),
        (float("inf"), None),
        (-1, None),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        (None, None),
    ],
)
def test_times(value: Any, expected: datetime | None) -> None:
    assert parse_time(value) == expected


def test_unreadable_times_cost_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"text": "a", "time": "soon"}\n{"text": "b"}\n')
    log = read(path)
    assert texts(log) == ["a", "b"]
    assert log.notes == {"unreadable_times": 1}


@pytest.mark.parametrize(
    ("name", "content", "names", "message"),
    [
        ("a.jsonl", b'{"q": "x", "ts": 1}\n', {}, "no column 'text'; columns found: q, ts; name the right one as text"),
        ("a.csv", b"q,ts\nx,1\n", {"format": "csv"}, "no column 'text'; columns found: q, ts"),
        ("a.jsonl", b'{"text": "x"}\n', {"format": "chat", "session": "talk"}, "no column 'talk'.*as session"),
        ("a.parquet", b"PAR1 no", {"format": "parquet"}, "not a Parquet file"),
        ("a.jsonl", b'\xff\xfe{\x00"\x00', {}, "UTF-16"),
        ("a.gz", gzip.compress(b'{"text": "x"}\n' * 1000)[:30], {}, "gzip file is damaged"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, name: str, content: bytes, names: dict[str, Any], message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path, **names)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "chat", "ubi"])
def test_missing_file(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DataError, match=r"none\.log: no such file"):
        read(tmp_path / "none.log", format=kind)


def test_empty_file_has_no_event(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"")
    log = read(path)
    assert (log.events.num_rows, log.lines, log.rejected) == (0, 0, [])


def test_many_lines_pass_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"text": "question {i}"}}\n' for i in range(45_001)))
    log = read(path)
    assert log.events.num_rows == 45_001
    assert log.events.column("text").to_pylist()[::15_000] == [f"question {i}" for i in (0, 15_000, 30_000, 45_000)]
    assert log.events.column("line").to_pylist()[-1] == 45_001
