"""The review database: queue, labels, assignments (append-only) and the texts that the page shows.

SQLite in WAL mode with synchronous FULL by default, so an acknowledged label survives a killed process and a power
cut; PostgreSQL by URL. Several processes may use it at once. Triggers keep the append-only tables append-only.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from goldset.errors import DataError, ExternalError, MissingExtra
from goldset.schemas import conform, from_rows, schema_of
from goldset.text import content_hash

from .passages import Asked, Passage, Passages, asked, from_plain, to_plain
from .tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

FORMAT = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# PostgreSQL hands out sequence numbers before rows become visible: a reader looks back over this many.
_OVERLAP = 256
_LOCK = 0x676F6C64  # PostgreSQL advisory lock under which the tables are made


class AnsweredElsewhere(DataError):
    """The same person answered the same item in another tab or process in between."""


@dataclass(frozen=True)
class Assignment:
    """One person works one layer (first, second, check, adjudication) of one question."""

    question_id: str
    layer: str
    turn: int  # 1, 2 …: a turn ends when a later one begins
    assessor: str
    time: datetime


class ReviewStore:
    """The review's state, by database URL (``sqlite:///path`` or ``postgresql+psycopg://…``).

    With ``campaign`` only its items and labels are read; without, those of all campaigns.

    Raises:
        MissingExtra: sqlalchemy is not installed.
        ExternalError: the database cannot be reached.
        DataError: another version wrote the database.
    """

    def __init__(self, url: str, *, campaign: str | None = None) -> None:
        self._campaign = campaign
        self._engine = _engine(url)
        self._tables = _tables()
        self._create(url)

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    # queue ------------------------------------------------------------------------------------------------------

    def append_queue(self, rows: pa.Table) -> int:
        """Append queue rows; an item that is there already is left as it is. Returns how many were new."""
        return self._append("queue", conform(rows, "queue").to_pylist(), "item_id")

    def queue(self) -> pa.Table:
        """Table queue, in the order of presentation."""
        rows, _ = self.queue_since(0)
        return from_rows("queue", sorted(rows, key=lambda row: (row["order"], row["item_id"])))

    def queue_since(self, seen: int) -> tuple[list[dict[str, Any]], int]:
        """Queue rows written after ``seen`` (some before it again), and the number to ask with next."""
        return self._since("queue", seen)

    # labels -----------------------------------------------------------------------------------------------------

    def append_label(self, row: Mapping[str, Any], *, key: str, claim: str | None = None) -> dict[str, Any]:
        """Store one label and return it as stored, after the commit.

        ``row`` has the columns of the table labels; ``label_id`` may be missing. ``key`` makes a resend harmless: the
        row first stored under it is returned. ``claim`` is a state that only one row may build on.

        Raises:
            AnsweredElsewhere: another row has taken the same claim.
        """
        return self.append_labels([row], keys=[key], claims=[claim])[0]

    def append_labels(self, rows: Iterable[Mapping[str, Any]], *, keys: Iterable[str] | None = None,
                      claims: Iterable[str | None] | None = None) -> list[dict[str, Any]]:
        """Store several labels, all or none, and return them as stored. Without keys, label_id is the key."""
        plain = [dict(row) for row in rows]
        chosen = list(keys) if keys is not None else [row["label_id"] for row in plain]
        for row, key in zip(plain, chosen, strict=True):
            row.setdefault("label_id", "l" + content_hash("label", key)[:24])
        conform(from_rows("labels", plain), "labels")
        held = list(claims) if claims is not None else [None] * len(plain)
        values = [{**_pack(row), "key": key, "claim": claim}
                  for row, key, claim in zip(plain, chosen, held, strict=True)]
        return self._store_labels(values, chosen)

    def _store_labels(self, values: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
        from sqlalchemy import select
        from sqlalchemy.exc import IntegrityError

        table = self._tables["labels"]
        stored: dict[str, dict[str, Any]] = {}
        try:
            with self._write() as connection:
                for value in values:
                    connection.execute(self._insert(table, "key"), [value])
                for start in range(0, len(keys), 500):
                    found = connection.execute(select(table).where(table.c.key.in_(keys[start : start + 500])))
                    stored |= {row["key"]: _unpack(dict(row)) for row in found.mappings()}
        except IntegrityError as error:
            raise AnsweredElsewhere("this passage was answered in another tab or window meanwhile; "
                                    "reload the page to go on from there") from error
        return [stored[key] for key in keys]

    def labels(self) -> pa.Table:
        """Table labels, in the order of storing."""
        return from_rows("labels", self.labels_since(0)[0])

    def labels_since(self, seen: int) -> tuple[list[dict[str, Any]], int]:
        """Labels written after ``seen`` (some before it again), and the number to ask with next."""
        rows, last = self._since("labels", seen)
        return [_unpack(row) for row in rows], last

    def label_by_key(self, key: str) -> dict[str, Any] | None:
        """The label first stored under an idempotency key."""
        from sqlalchemy import select

        table = self._tables["labels"]
        with self._read() as connection:
            row = connection.execute(select(table).where(table.c.key == key)).mappings().first()
        return _unpack(dict(row)) if row else None

    # assignments ------------------------------------------------------------------------------------------------

    def assign(self, assignment: Assignment) -> bool:
        """Take a question; False if somebody else took this turn of it first."""
        from sqlalchemy.exc import IntegrityError

        row = {"campaign": self._campaign or "",
               "question_id": assignment.question_id, "layer": assignment.layer, "turn": assignment.turn,
               "assessor": assignment.assessor, "time": _micros(assignment.time)}
        try:
            with self._write() as connection:
                connection.execute(self._tables["assignments"].insert(), [row])
        except IntegrityError:
            return False
        return True

    def assignments_since(self, seen: int) -> tuple[list[Assignment], int]:
        """Assignments written after ``seen`` (some before it again), and the number to ask with next."""
        rows, last = self._since("assignments", seen)
        return [Assignment(row["question_id"], row["layer"], row["turn"], row["assessor"], _time(row["time"]))
                for row in rows], last

    # texts ------------------------------------------------------------------------------------------------------

    def set_passages(self, *, questions: pa.Table, spans: pa.Table, documents: pa.Table | None = None,
                     language: str = "en") -> int:
        """Store the questions and the passages of the queue, so that the page needs nothing but the database.

        Context sentences are made here. Call it again after the queue has grown. Returns the number of passages.
        DataError for a queued question or span that the tables lack.
        """
        rows = self.queue_since(0)[0]
        texts, book = asked(questions), Passages(spans=spans, documents=documents, language=language)
        lacking = sorted({row["question_id"] for row in rows} - set(texts))
        if lacking:
            raise DataError(f"question '{lacking[0]}' is in the queue but not in the table 'questions'; "
                            "rebuild the queue from these questions")
        spans_asked = {row["span_id"] for row in rows}
        self._replace("questions", [{"id": key, "body": json.dumps({"text": found.text, "turns": found.turns,
                                                                    "need": found.need})}
                                    for key, found in sorted(texts.items())])
        self.keep_passages(book, spans_asked)
        return len(spans_asked)

    def keep_passages(self, book: Passages, spans: Iterable[str]) -> None:
        """Store the passages of some spans."""
        self._replace("passages", [{"id": span, "body": json.dumps(to_plain(book.passage(span)))}
                                   for span in sorted(set(spans))])

    def passage(self, span_id: str) -> Passage:
        """A stored passage; DataError if there is none."""
        return from_plain(json.loads(self._body("passages", span_id, "spans")))

    def question(self, question_id: str) -> Asked:
        """A stored question; DataError if there is none."""
        body = json.loads(self._body("questions", question_id, "questions"))
        return Asked(question_id, body["text"], tuple((role, text) for role, text in body["turns"]), body["need"])

    @functools.cached_property
    def secret(self) -> bytes:
        """Key of the item tokens; made once for the database, so that a token survives a restart of the server."""
        from sqlalchemy import select

        table = self._tables["meta"]
        with self._write() as connection:
            connection.execute(self._insert(table, "name"), [{"name": "secret", "value": secrets.token_hex(32)}])
            return bytes.fromhex(connection.execute(select(table.c.value).where(table.c.name == "secret")).scalar_one())

    # inside -----------------------------------------------------------------------------------------------------

    def _create(self, url: str) -> None:
        from sqlalchemy import func, select
        from sqlalchemy.exc import OperationalError

        made = metadata()
        try:
            meta = self._tables["meta"]
            with self._write() as connection:
                # One process at a time: SQLite's write lock is held already.
                if self._engine.dialect.name == "postgresql":
                    connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
                made.create_all(connection)
                connection.execute(self._insert(meta, "name"), [{"name": "format", "value": str(FORMAT)}])
                found = connection.execute(select(meta.c.value).where(meta.c.name == "format")).scalar_one()
        except OperationalError as error:
            shown = self._engine.url.render_as_string(hide_password=True)
            raise ExternalError(f"{shown}: the review database cannot be opened ({error.orig}); check [review] "
                                "database and GOLDSET_REVIEW_URL") from error
        if found != str(FORMAT):
            shown = self._engine.url.render_as_string(hide_password=True)
            raise DataError(f"{shown}: review database of format {found}, this version reads {FORMAT}; "
                            "use the version that wrote it")

    def _insert(self, table: Table, key: str) -> Any:
        """INSERT that leaves an existing row with the same key alone."""
        if self._engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as pg_insert

            return pg_insert(table).on_conflict_do_nothing(index_elements=[key])
        from sqlalchemy.dialects.sqlite import insert

        return insert(table).on_conflict_do_nothing(index_elements=[key])

    def _append(self, name: str, rows: list[dict[str, Any]], key: str) -> int:
        if not rows:
            return 0
        from sqlalchemy import func, select

        table = self._tables[name]
        with self._write() as connection:
            before = connection.execute(select(func.count()).select_from(table)).scalar_one()
            connection.execute(self._insert(table, key), rows)
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one()) - int(before)

    def _since(self, name: str, seen: int) -> tuple[list[dict[str, Any]], int]:
        from sqlalchemy import select

        table = self._tables[name]
        wanted = select(table).where(table.c.seq > seen - _OVERLAP).order_by(table.c.seq)
        if self._campaign is not None and "campaign" in table.c:
            wanted = wanted.where(table.c.campaign == self._campaign)
        with self._read() as connection:
            rows = [dict(row) for row in connection.execute(wanted).mappings()]
        return [{column: value for column, value in row.items() if column != "seq"} for row in rows], max(
            [seen, *(row["seq"] for row in rows)])

    def _replace(self, name: str, rows: list[dict[str, Any]]) -> None:
        table = self._tables[name]
        insert = self._insert(table, "id")
        for start in range(0, len(rows), 500):
            with self._write() as connection:
                connection.execute(table.delete().where(table.c.id.in_([r["id"] for r in rows[start : start + 500]])))
                connection.execute(insert, rows[start : start + 500])

    def _body(self, name: str, key: str, source: str) -> str:
        from sqlalchemy import select

        table = self._tables[name]
        with self._read() as connection:
            body: str | None = connection.execute(select(table.c.body).where(table.c.id == key)).scalar_one_or_none()
        if body is None:
            raise DataError(f"'{key}' is in the queue, but the review database has no text for it; "
                            f"store the {source} again with 'goldset rebuild'")
        return body

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "sqlite":
                # Take the write lock at once: a transaction that reads first cannot wait for it later.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection
            connection.rollback()


def _engine(url: str) -> Engine:
    try:
        from sqlalchemy import create_engine, event
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    except ImportError as error:
        raise MissingExtra("the review database", "review") from error
    if url.startswith(("postgresql://", "postgres://")):
        url = "postgresql+psycopg://" + url.split("://", 1)[1]
    try:
        engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    except (ArgumentError, NoSuchModuleError) as error:
        raise DataError("the review database URL cannot be read; allowed: sqlite:///PATH, or "
                        "postgresql://USER@HOST/NAME") from error
    except ImportError as error:
        raise MissingExtra("the review database on PostgreSQL", "review") from error
    if engine.dialect.name == "sqlite":
        @event.listens_for(engine, "connect")
        def _pragmas(connection: Any, _record: Any) -> None:
            connection.isolation_level = None  # transactions begin where we say
            for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}")
    return engine


def _tables() -> Mapping[str, Table]:
    return metadata().tables


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _pack(row: Mapping[str, Any]) -> dict[str, Any]:
    evidence = [[piece["start"], piece["end"]] for piece in row["evidence"]]
    return {**row, "evidence": json.dumps(evidence), "time": _micros(row["time"])}


def _unpack(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: row[name] for name in schema_of("labels").names}, "time": _time(row["time"]),
            "evidence": [{"start": start, "end": end} for start, end in json.loads(row["evidence"])]}
