from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from goldset.errors import DataError, ExternalError
from goldset.judges import Verdict, VerdictStore

OK = Verdict("q1", "s1", "judge", 1, 1, "ok", True, "key", "prompt", score=0.5, quote="10 A", raw="{}",
             model_asked="m", model_answered="m-1", prompt_tokens=9, completion_tokens=2, cost=0.25)


def test_round_trip_and_first_answer_wins(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verdicts.sqlite"
    store = VerdictStore(path)
    assert store.get("key") is None
    store.append([OK, replace(OK, relevant=False)])
    store.close()
    again = VerdictStore(path)
    assert again.get("key") == OK
    assert [row.relevant for row in again.rows()] == [True, False]
    assert again.rows("other") == []
    assert again.models("judge") == ["m-1"]


def test_cached_is_not_stored(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "v.sqlite")
    store.append([replace(OK, cached=True)])
    assert store.get("key") == OK


def test_failed_call_is_kept_but_never_served(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "v.sqlite")
    failed = replace(OK, status="failed", relevant=None)
    store.append([failed])
    assert store.get("key") is None
    store.append([OK])
    assert store.get("key") == OK
    assert store.rows() == [failed, OK]


@pytest.mark.parametrize("statement", ["UPDATE verdicts SET relevant = 0", "DELETE FROM verdicts"])
def test_append_only_even_from_outside(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "v.sqlite"
    VerdictStore(path).append([OK])
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)


def test_a_status_without_verdict_cannot_carry_one() -> None:
    with pytest.raises(AssertionError):
        replace(OK, status="unparsed")
    with pytest.raises(AssertionError):
        replace(OK, relevant=None)


def test_several_processes_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    code = ("import sys; from pathlib import Path; from goldset.judges import Verdict, VerdictStore\n"
            "store = VerdictStore(Path(sys.argv[1]))\n"
            "for n in range(50): store.append([Verdict('q', 's', 'j', 1, 1, 'ok', True, f'{sys.argv[2]}-{n}', 'p')])")
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    store = VerdictStore(path)
    assert store.count() == 150
    assert all(store.get(f"{name}-{n}") for name in "abc" for n in range(50))


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be read as one\n" * 40)
    with pytest.raises(DataError, match=r"notes\.txt: not a verdict store"):
        VerdictStore(text)
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(DataError, match="format 99, this version reads 1"):
        VerdictStore(newer)
    with pytest.raises(ExternalError, match="cannot be opened"):
        VerdictStore(tmp_path)
