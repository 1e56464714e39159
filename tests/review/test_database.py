"""The review database: what is acknowledged is stored, once, and stays."""

from __future__ import annotations

import builtins
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.errors import DataError, ExternalError, MissingExtra
from goldset.review import AnsweredElsewhere, Assignment, ReviewStore
from goldset.schemas import from_rows


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'review.sqlite'}"
        return
    base = request.getfixturevalue("postgres")  # skips where there is none
    import psycopg

    name = f"t{os.getpid()}_{abs(hash(request.node.nodeid))}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    head, _, tail = base.rpartition("/postgres?")
    yield f"{head}/{name}?{tail}"


def queue(n: int = 3) -> pa.Table:
    return from_rows("queue", [
        {"item_id": f"i{i}", "question_id": "q1", "span_id": f"s{i}", "campaign": "rebuild", "wave": 1,
         "reason": "positive", "stratum": "positive", "stratum_size": n, "u": i / 10, "order": i} for i in range(n)])


def test_round_trip_and_idempotence(url: str, make: Any) -> None:
    store = ReviewStore(url)
    assert store.append_queue(queue()) == 3
    assert store.append_queue(queue(4)) == 1  # the three are there already
    assert store.queue() == queue(4).set_column(7, store.queue().schema.field(7), store.queue().column(7))
    row = make.label({"item_id": "i0", "question_id": "q1", "span_id": "s0"}, "ada", True,
                     evidence=[{"start": 3, "end": 9}, {"start": 12, "end": 20}], note="Ångström 😀")
    stored = store.append_label(row, key="k1")
    again = store.append_label({**row, "label_id": "other", "relevant": False}, key="k1")
    assert stored == again == row
    assert store.labels().to_pylist() == [row]
    assert ReviewStore(url).labels().to_pylist() == [row]
    assert ReviewStore(url).secret == store.secret
    store.close()


def test_a_label_without_an_id_gets_one_from_its_key(url: str, make: Any) -> None:
    store = ReviewStore(url)
    row = make.label({"item_id": "i0", "question_id": "q1", "span_id": "s0"}, "ada", False)
    del row["label_id"]
    assert store.append_label(row, key="k1")["label_id"] == store.append_label(row, key="k1")["label_id"]
    assert len(store.labels()) == 1
    store.close()


def test_two_rows_cannot_build_on_the_same_state(url: str, make: Any) -> None:
    store = ReviewStore(url)
    item = {"item_id": "i0", "question_id": "q1", "span_id": "s0"}
    store.append_label(make.label(item, "ada", True), key="k1", claim="i0|ada|0")
    with pytest.raises(AnsweredElsewhere, match=r"another tab or window.*reload the page"):
        store.append_label(make.label(item, "ada", False, n=1), key="k2", claim="i0|ada|0")
    assert len(store.labels()) == 1
    store.close()


def test_several_labels_are_stored_all_or_none(url: str, make: Any) -> None:
    store = ReviewStore(url)
    item = {"item_id": "i0", "question_id": "q1", "span_id": "s0"}
    store.append_label(make.label(item, "ada", True), key="k1", claim="taken")
    rows = [make.label(item, "ben", False, n=n) for n in (1, 2)]
    with pytest.raises(AnsweredElsewhere):
        store.append_labels(rows, keys=["k2", "k3"], claims=["free", "taken"])
    with pytest.raises(DataError, match="'perhaps' is not allowed"):
        store.append_labels([rows[0], rows[1] | {"action": "perhaps"}])
    assert len(store.labels()) == 1
    store.close()


@pytest.mark.parametrize("table", ["queue", "labels", "assignments"])
def test_rows_cannot_be_changed_or_removed(url: str, make: Any, table: str) -> None:
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import DBAPIError

    store = ReviewStore(url)
    store.append_queue(queue())
    store.append_label(make.label({"item_id": "i0", "question_id": "q1", "span_id": "s0"}, "ada", True), key="k")
    store.assign(Assignment("q1", "first", 1, "ada", make.t0))
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    for statement in (f"UPDATE {table} SET question_id = 'x'", f"DELETE FROM {table}"):
        with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(text(statement))
    engine.dispose()
    store.close()


def test_one_turn_of_a_question_has_one_holder(url: str, make: Any) -> None:
    store = ReviewStore(url)
    assert store.assign(Assignment("q1", "first", 1, "ada", make.t0))
    assert not store.assign(Assignment("q1", "first", 1, "ben", make.t0))
    assert store.assign(Assignment("q1", "second", 1, "ben", make.t0))
    held, _ = store.assignments_since(0)
    assert [(a.layer, a.assessor, a.time) for a in held] == [("first", "ada", make.t0), ("second", "ben", make.t0)]
    store.close()


def test_campaigns_are_kept_apart(url: str, make: Any) -> None:
    one, two = ReviewStore(url, campaign="rebuild"), ReviewStore(url, campaign="later")
    one.append_queue(queue())
    one.append_label(make.label({"item_id": "i0", "question_id": "q1", "span_id": "s0"}, "ada", True), key="k")
    assert one.assign(Assignment("q1", "first", 1, "ada", make.t0))
    assert (len(two.queue()), len(two.labels()), two.assignments_since(0)[0]) == (0, 0, [])
    assert two.assign(Assignment("q1", "first", 1, "ben", make.t0))
    assert [len(ReviewStore(url).queue()), len(one.assignments_since(0)[0])] == [3, 1]
    one.close()
    two.close()


def _write(url: str, who: int) -> None:
    from datetime import UTC, datetime

    store = ReviewStore(url)
    for i in range(25):
        store.append_queue(queue(5))
        store.append_label(
            {"item_id": f"i{i}", "question_id": "q1", "span_id": "s0", "span_text_hash": "h",
             "rubric_version": "1.0", "campaign": "rebuild", "assessor": f"p{who}", "action": "label",
             "relevant": True, "reason": None, "evidence": [], "evidence_source": None, "supersedes": None,
             "origin": "page", "note": None, "seconds": None, "time": datetime(2026, 1, 1, tzinfo=UTC)},
            key=f"{who}-{i}")


def test_four_processes_at_once_lose_nothing(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(url, n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    store = ReviewStore(url)
    assert len(store.labels()) == 100
    assert len(store.queue()) == 5
    store.close()


def test_an_acknowledged_label_survives_kill_9(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'review.sqlite'}"
    program = textwrap.dedent("""
        import sys
        from datetime import UTC, datetime
        from goldset.review import ReviewStore
        store = ReviewStore(sys.argv[1])
        n = 0
        while True:
            store.append_label({"item_id": f"i{n}", "question_id": "q", "span_id": "s", "span_text_hash": "h",
                "rubric_version": "1.0", "campaign": "rebuild", "assessor": "ada", "action": "label",
                "relevant": False, "reason": None, "evidence": [], "evidence_source": None, "supersedes": None,
                "origin": "page", "note": None, "seconds": None, "time": datetime(2026, 1, 1, tzinfo=UTC)}, key=str(n))
            print(n, flush=True)
            n += 1
    """)
    with subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(20)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    acknowledged = {f"i{line.strip()}" for line in said if line.endswith("\n")}
    store = ReviewStore(url)
    assert len(acknowledged) >= 20
    assert acknowledged <= set(store.labels().column("item_id").to_pylist())
    store.close()


def test_sqlite_is_durable(tmp_path: Path) -> None:
    from sqlalchemy import text

    store = ReviewStore(f"sqlite:///{tmp_path / 'review.sqlite'}")
    with store._read() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
    store.close()


def test_texts_are_stored_with_their_context(url: str, make: Any) -> None:
    docs = make.documents(d="First sentence here. Second one 😀 answers. Third sentence ends.")
    spans = make.spans(docs, [("d", 0, 21), ("d", 21, 43), ("d", 43, 63)])
    ids = spans.column("span_id").to_pylist()
    questions = make.questions("what?")
    rows = queue(1).to_pylist()[0] | {"question_id": questions.column("question_id")[0].as_py(), "span_id": ids[1]}
    store = ReviewStore(url)
    store.append_queue(from_rows("queue", [rows]))
    assert store.set_passages(questions=questions, spans=spans, documents=docs) == 1
    assert store.set_passages(questions=questions, spans=spans, documents=docs) == 1  # again: replaced
    passage = store.passage(ids[1])
    assert (passage.before, passage.after) == ("First sentence here.", "Third sentence ends.")
    assert passage.text == "Second one 😀 answers. "
    assert passage.sentences == ((0, 21),)
    assert passage.title == "About d"
    assert store.question(rows["question_id"]).text == "what?"
    with pytest.raises(DataError, match="no text for it; store the spans again"):
        store.passage(ids[0])
    with pytest.raises(DataError, match="is in the queue but not in the table 'questions'"):
        store.set_passages(questions=make.questions("other"), spans=spans)
    store.close()


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExternalError, match=r"cannot be opened .*GOLDSET_REVIEW_URL"):
        ReviewStore(f"sqlite:///{tmp_path}/no/such/folder/review.sqlite")
    with pytest.raises(DataError, match=r"cannot be read; allowed: sqlite:///PATH, or postgresql://"):
        ReviewStore("oracle-of-delphi")
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    store = ReviewStore(url)
    with store._write() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '99' WHERE name = 'format'")
    with pytest.raises(DataError, match="format 99, this version reads 1"):
        ReviewStore(url)

    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "sqlalchemy":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"the review database needs the extra 'review'"):
        ReviewStore(url)
