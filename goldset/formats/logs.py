"""Question logs -> events: JSONL, CSV, Parquet, chat logs, OpenSearch UBI. Bad lines are set aside, not lost.

Files are streamed line by line with a cap on the length of a line. Personal data is masked here, before a text
reaches any table, quarantine file or message.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.config import LogSource
from goldset.errors import DataError
from goldset.formats.csvlog import csv_records
from goldset.formats.lines import field as dotted
from goldset.formats.lines import numbered_bytes, opaque_id, storable
from goldset.formats.logtimes import parse_time
from goldset.schemas import conform, empty, from_rows
from goldset.text import canonical_json, content_hash

Mask = Callable[[str], tuple[str, int]]

_BATCH = 20_000
_EXCERPT = 200
_EXCERPT_READ = 4_000
_LONGEST_CONTEXT = 200  # turns; a longer conversation is a machine's


@dataclass(frozen=True)
class Rejected:
    """A line that holds no readable question: number from 1, reason, masked beginning of its text."""

    line: int
    reason: str
    text: str


@dataclass(frozen=True)
class LogRead:
    """What a log file held: ``lines == events.num_rows + len(rejected) + sum(other.values())``.

    ``events`` follows the schema "events". ``other`` counts lines that are no questions by their kind (header,
    continuation of a CSV record, turns of other roles, UBI actions and events); ``notes`` counts oddities that cost
    no line: unreadable times, times without a zone, repeated turns, contexts cut.
    """

    events: pa.Table
    rejected: list[Rejected]
    lines: int
    other: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)


class _Bad(Exception):
    """This line is rejected, for this reason."""


def read_log(source: LogSource, path: Path, *, mask: Mask, max_line_bytes: int, quiet: bool = True) -> LogRead:
    """A log file -> events, rejected lines and counts.

    ``path`` is the file to open, ``source`` gives its format and column names. Text must be a string: a number, list
    or null is rejected, and words such as ``null`` or ``NA`` in a CSV file are text. Reasons: ``empty_line``,
    ``not_utf8``, ``overlong``, ``not_json``, ``not_object``, ``no_text``, ``not_text``, ``columns``, ``quoting``,
    ``no_conversation``, ``no_turn``, ``no_role``. Unless ``quiet``, a bar shows how far the file is read.

    Raises:
        DataError: the file cannot be opened or decompressed, is not of its format, or has no column of that name.
    """
    reader = _Reader(source, mask, max_line_bytes, quiet)
    {"jsonl": reader.jsonl, "csv": reader.csv, "parquet": reader.parquet, "chat": reader.chat, "ubi": reader.ubi}[
        source.format
    ](path)
    return reader.result(path)


class _Reader:
    """State of one reading: rows waiting for their batch, tables so far, counts."""

    def __init__(self, source: LogSource, mask: Mask, limit: int, quiet: bool) -> None:
        self.source, self.mask, self.limit, self.quiet = source, mask, limit, quiet
        self.rows: list[dict[str, Any]] = []
        self.tables: list[pa.Table] = []
        self.rejected: list[Rejected] = []
        self.other: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.lines = 0
        self.keys: set[str] = set()

    def result(self, path: Path) -> LogRead:
        self._flush()
        events = pa.concat_tables(self.tables) if self.tables else empty("events")
        reasons = Counter(bad.reason for bad in self.rejected)
        if not events.num_rows and reasons:
            missing = {"no_text": "text", "no_conversation": "session", "no_turn": "turn", "no_role": "role"}
            key = missing.get(reasons.most_common(1)[0][0])
            if key:
                raise self._no_column(path, key, sorted(self.keys))
        return LogRead(conform(events, "events"), self.rejected, self.lines, dict(self.other), dict(self.notes))

    def _no_column(self, path: Path, key: str, names: list[str]) -> DataError:
        return DataError(
            f"{path}: no column '{getattr(self.source, key)}'; columns found: "
            f"{', '.join(names[:20]) or 'none'}; name the right one as {key} in [questions] logs"
        )

    # --- formats -----------------------------------------------------------------------------------------------

    def jsonl(self, path: Path) -> None:
        for number, row, raw in self._objects(path):
            self._event(number, row, raw)

    def csv(self, path: Path) -> None:
        names: list[str] | None = None
        for record in csv_records(path, self.limit, quiet=self.quiet):
            self.lines += record.lines
            self.other["continuation"] += record.lines - 1
            if record.reason:
                self._reject(record.line, record.reason, record.raw)
            elif names is None:
                names = record.values
                self.keys.update(names)
                self.other["header"] += 1
                if self.source.text not in names:
                    raise self._no_column(path, "text", names)
            elif len(record.values) != len(names):
                self._reject(record.line, "columns", record.raw)
            else:
                self._event(record.line, dict(zip(names, record.values, strict=True)), record.raw)

    def parquet(self, path: Path) -> None:
        import pyarrow.parquet as pq

        try:
            stream = pq.ParquetFile(path)
        except FileNotFoundError as error:
            raise DataError(f"{path}: no such file") from error
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{path}: not a Parquet file ({error})") from error
        names = stream.schema_arrow.names
        wanted = [
            self.source.text,
            self.source.query,
            self.source.time,
            self.source.session,
            self.source.user,
            self.source.agent,
            *self.source.scope,
        ]
        columns = [
            name for name in names if any(want == name or (want or "").startswith(f"{name}.") for want in wanted)
        ]
        if not any(self.source.text == name or self.source.text.startswith(f"{name}.") for name in columns):
            raise self._no_column(path, "text", names)
        for batch in stream.iter_batches(batch_size=8192, columns=columns):
            for row in batch.to_pylist():
                self.lines += 1
                value = dotted(row, self.source.text)
                if isinstance(value, str) and len(value.encode("utf-8", "replace")) > self.limit:
                    self._reject(self.lines, "overlong", value)
                else:
                    self._event(self.lines, row, str(value))

    def chat(self, path: Path) -> None:
        """Conversations may interleave, so turns wait until the file ends; text is masked on arrival."""
        talks: dict[str, list[tuple[int, int, str, str, dict[str, Any]]]] = {}
        for number, row, raw in self._objects(path):
            try:
                talk = opaque_id(dotted(row, self.source.session or "conversation"))
                if talk is None:
                    raise _Bad("no_conversation")
                turn = _whole(dotted(row, self.source.turn))
                if turn is None:
                    raise _Bad("no_turn")
                role = dotted(row, self.source.role)
                if not isinstance(role, str) or not role:
                    raise _Bad("no_role")
                event = self._fields(number, row)
            except _Bad as bad:
                self._reject(number, str(bad), raw)
                continue
            if role != self.source.user_role:
                self.other["other_roles"] += 1
            talks.setdefault(talk, []).append((turn, number, storable(role), event["text"], event))
        order: list[dict[str, Any]] = []
        for turns in talks.values():
            turns.sort(key=lambda item: item[:2])
            self.notes["repeated_turns"] += len(turns) - len({turn for turn, *_ in turns})
            context: list[dict[str, str]] = []
            masked = 0
            for _, _, role, text, event in turns:
                own = event["masked"]
                if role == self.source.user_role:
                    if len(context) > _LONGEST_CONTEXT:
                        self.notes["contexts_cut"] += 1
                    event["context"] = context[-_LONGEST_CONTEXT:]
                    event["masked"] = own + masked
                    order.append(event)
                context.append({"role": role, "text": text})
                masked += own
        for event in sorted(order, key=lambda event: event["line"]):
            self._add(event)

    def ubi(self, path: Path) -> None:
        """OpenSearch bulk lines (action, document), plain documents, or hits with ``_source``."""
        source, index = self.source, None
        renamed = {"text": "user_query", "time": "timestamp", "session": "client_id", "user": "client_id"}
        defaults = LogSource.model_validate({"path": source.path})
        self.source = source.model_copy(
            update={key: name for key, name in renamed.items() if getattr(source, key) == getattr(defaults, key)}
        )
        for number, row, raw in self._objects(path):
            action = next(
                (row[verb] for verb in ("index", "create") if len(row) == 1 and isinstance(row.get(verb), dict)), None
            )
            if action is not None:
                index = str(action.get("_index", ""))
                self.other["actions"] += 1
                continue
            if isinstance(row.get("_source"), dict):
                index, row = str(row.get("_index", "")), row["_source"]
            is_query = "ubi_queries" in index if index else "action_name" not in row
            index = None
            if is_query:
                self._event(number, row, raw)
            else:
                self.other["ubi_events"] += 1

    # --- lines and rows ----------------------------------------------------------------------------------------

    def _objects(self, path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
        for number, line in numbered_bytes(path, limit=self.limit, quiet=self.quiet):
            self.lines += 1
            raw = line[:_EXCERPT_READ].decode("utf-8", "replace")
            try:
                if len(line) > self.limit:
                    raise _Bad("overlong")
                row = _json_object(line)
            except _Bad as bad:
                self._reject(number, str(bad), raw)
                continue
            if len(self.keys) < 200:
                self.keys.update(row)
            yield number, row, raw

    def _event(self, number: int, row: dict[str, Any], raw: str) -> None:
        try:
            self._add(self._fields(number, row))
        except _Bad as bad:
            self._reject(number, str(bad), raw)

    def _fields(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        source = self.source
        text = dotted(row, source.text)
        if text is None:
            raise _Bad("no_text")
        if not isinstance(text, str):
            raise _Bad("not_text")
        text, masked = self._masked(text)
        query = dotted(row, source.query) if source.query else None
        scope = {name: self._scope(dotted(row, name)) for name in source.scope}
        value = dotted(row, source.time) if source.time else None
        time = parse_time(value)
        if time is None and value not in (None, ""):
            self.notes["unreadable_times"] += 1
        return {
            "source": str(source.path),
            "line": number,
            "text": text,
            "query": self._masked(query)[0] if isinstance(query, str) and query else None,
            "context": [],
            "session": self._person(row, source.session),
            "user": self._person(row, source.user),
            "agent": self._agent(row),
            "time": time,
            "scope": canonical_json({name: value for name, value in scope.items() if value is not None}),
            "masked": masked,
        }

    def _masked(self, text: str) -> tuple[str, int]:
        return self.mask(storable(text))

    def _scope(self, value: Any) -> Any:
        return (
            self._masked(value)[0]
            if isinstance(value, str)
            else value
            if isinstance(value, bool | int)
            else (None if value is None else self._masked(json.dumps(value, sort_keys=True, default=str))[0])
        )

    def _person(self, row: dict[str, Any], column: str | None) -> str | None:
        """An id; one that is an address or a number of a person is replaced by its hash."""
        name = opaque_id(dotted(row, column)) if column else None
        if not name:
            return None
        return "h" + content_hash("person", name)[:16] if self._masked(name)[1] else storable(name)

    def _agent(self, row: dict[str, Any]) -> str | None:
        value = dotted(row, self.source.agent) if self.source.agent else None
        return self._masked(value)[0] if isinstance(value, str) and value else None

    def _add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if len(self.rows) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if self.rows:
            self.tables.append(from_rows("events", self.rows))
            self.rows = []

    def _reject(self, number: int, reason: str, raw: str) -> None:
        head = raw[:_EXCERPT_READ]
        if len(raw) >= _EXCERPT_READ:
            # The cut may halve an address, which the mask would then miss: leave the last word out.
            head = head.rsplit(None, 1)[0] if len(head.split()) > 1 else head[:_EXCERPT]
        text = self._masked(head)[0]
        self.rejected.append(Rejected(number, reason, text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"))


def _json_object(line: bytes) -> dict[str, Any]:
    if not line.strip():
        raise _Bad("empty_line")
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _Bad("not_utf8") from error
    except (ValueError, RecursionError) as error:  # ValueError: also integers of thousands of digits
        raise _Bad("not_json") from error
    if not isinstance(row, dict):
        raise _Bad("not_object")
    return row


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole(value: Any) -> int | None:
    """A turn number: a whole JSON number or its digits."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
