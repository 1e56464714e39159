"""The border every table crosses: conform(), and what reads a schema's key and makes its canonical hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError, nearest
from goldset.schemas.tables import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd


def key_of(name: str) -> list[str]:
    """Key columns of a table."""
    return str(schema_of(name).metadata[b"key"].decode()).split(",")


def schema_of(name: str) -> pa.Schema:
    """The schema called ``name``; KeyError-free: an unknown name is our own bug and says what exists."""
    assert name in SCHEMAS, f"no table '{name}'; {nearest(name, SCHEMAS)}"
    return SCHEMAS[name]


def empty(name: str) -> pa.Table:
    """A table without rows."""
    return schema_of(name).empty_table()


def from_rows(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows (dicts with every column) -> a conforming table."""
    try:
        relaxed = pa.schema([field.with_nullable(True) for field in schema_of(name)])
        table = pa.Table.from_pylist(rows, schema=relaxed)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"table '{name}': {error}") from error
    return conform(table, name)


def conform(table: pa.Table | pd.DataFrame, name: str) -> pa.Table:
    """Table or frame -> the same rows under the schema ``name``, or a DataError that names the first offence.

    Checks column names, types (safe casts only), nulls, enumerations, ranges and the uniqueness of the key.
    Extra columns are refused: a border carries what the schema documents and nothing else.
    """
    schema = schema_of(name)
    if not isinstance(table, pa.Table):
        table = _from_pandas(table, schema, name)
    missing = [column for column in schema.names if column not in table.column_names]
    extra = [column for column in table.column_names if column not in schema.names]
    if missing or extra:
        raise DataError(f"table '{name}': missing columns {missing or 'none'}, unknown columns {extra or 'none'}; "
                        f"it must have exactly {schema.names}")
    try:
        relaxed = pa.schema([field.with_nullable(True) for field in schema])
        columns = table.select(schema.names).cast(relaxed).columns
        table = pa.Table.from_arrays(columns, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"table '{name}': {error}") from error
    for field in schema:
        _check_column(table.column(field.name), field, name)
    _check_key(table, name)
    return table


def _from_pandas(frame: pd.DataFrame, schema: pa.Schema, name: str) -> pa.Table:
    known = pa.schema([schema.field(column) for column in frame.columns if column in schema.names])
    extra = [column for column in frame.columns if column not in schema.names]
    if extra:
        raise DataError(f"table '{name}': unknown columns {extra}; it must have exactly {schema.names}")
    try:
        relaxed = pa.schema([field.with_nullable(True) for field in known])
        return pa.Table.from_pandas(frame, schema=relaxed, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"table '{name}': {error}") from error


def _check_column(column: pa.ChunkedArray, field: pa.Field, name: str) -> None:
    where = f"table '{name}', column '{field.name}'"
    if not field.nullable and column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise DataError(f"{where}: row {row} is null; every row needs a value")
    meta = field.metadata
    if b"enum" in meta:
        allowed = meta[b"enum"].decode().split("|")
        bad = column.filter(pc.invert(pc.is_in(column, pa.array([*allowed, None], field.type))))
        if len(bad):
            raise DataError(f"{where}: '{bad[0].as_py()}' is not allowed; allowed: {', '.join(allowed)}")
    if pa.types.is_floating(field.type):
        nan = column.filter(pc.is_nan(column))
        if len(nan):
            raise DataError(f"{where}: NaN is not a value; an unknown is null")
    for bound, outside, phrase in ((b"min", pc.less, "below"), (b"max", pc.greater, "above")):
        if bound in meta:
            limit = float(meta[bound])
            bad = column.filter(outside(column, pa.scalar(limit).cast(field.type)))
            if len(bad):
                raise DataError(f"{where}: {bad[0].as_py()} is {phrase} {limit:g}")


def _check_key(table: pa.Table, name: str) -> None:
    key = key_of(name)
    codes = key_codes(table, key)
    order = np.argsort(codes, kind="stable")
    again = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    if len(again):
        row = int(order[again[0]])
        shown = ", ".join(f"{column}={table.column(column)[row].as_py()!r}" for column in key)
        raise DataError(f"table '{name}': the key ({shown}) stands in {int((codes == codes[row]).sum())} rows; "
                        "keys must be unique")


def key_codes(table: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """One number a row, equal where the rows agree in all the columns (a null equals a null).

    ``Table.group_by`` would do, but it loads pyarrow.dataset and pandas, which takes longer than most commands.
    """
    codes = np.zeros(len(table), np.int64)
    size = 1
    for name in columns:
        column = table.column(name)
        values = pc.unique(column)
        if size * max(len(values), 1) >= 2**62:
            distinct, codes = np.unique(codes, return_inverse=True)
            size = len(distinct)
        codes = codes * len(values) + pc.index_in(column, value_set=values).to_numpy().astype(np.int64)
        size *= max(len(values), 1)
    return codes


def canonical_hash(table: pa.Table, name: str, *, leave_out: tuple[str, ...] = ()) -> str:
    """Hash of the rows in key order, without the columns in ``leave_out``: independent of row order and chunking."""
    from goldset.text import content_hash

    keep = [column for column in schema_of(name).names if column not in leave_out]
    order = [(column, "ascending") for column in key_of(name)]
    ordered = table.sort_by(order).select(keep)
    rows = [list(row.values()) for batch in ordered.to_batches() for row in batch.to_pylist()]
    return content_hash(name, keep, [[_plain(value) for value in row] for row in rows])


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
