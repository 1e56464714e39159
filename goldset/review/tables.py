"""Tables of the review database and the triggers that keep them append-only."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from goldset.schemas import schema_of

if TYPE_CHECKING:
    from sqlalchemy import MetaData, Table


@functools.cache
def metadata() -> MetaData:
    """Tables of the database; the columns of queue and labels are those of their Arrow schemas."""
    import sqlalchemy as sa

    made = sa.MetaData()
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers only INTEGER keys itself

    def kind(field: pa.Field) -> Any:
        if pa.types.is_boolean(field.type):
            return sa.Boolean()
        if pa.types.is_floating(field.type):
            return sa.Double()
        return sa.BigInteger() if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type) else sa.Text()

    def columns(name: str, key: str) -> list[Any]:
        return [sa.Column("seq", number, primary_key=True, autoincrement=True),
                *(sa.Column(field.name, kind(field), nullable=field.nullable, unique=field.name == key)
                  for field in schema_of(name))]

    sa.Table("meta", made, sa.Column("name", sa.Text(), primary_key=True), sa.Column("value", sa.Text()))
    kept = [
        sa.Table("queue", made, *columns("queue", "item_id"), sqlite_autoincrement=True),
        sa.Table("labels", made, *columns("labels", "label_id"),
                 sa.Column("key", sa.Text(), nullable=False, unique=True),
                 sa.Column("claim", sa.Text(), unique=True), sqlite_autoincrement=True),
        sa.Table("assignments", made, sa.Column("seq", number, primary_key=True, autoincrement=True),
                 sa.Column("campaign", sa.Text(), nullable=False),
                 sa.Column("question_id", sa.Text(), nullable=False), sa.Column("layer", sa.Text(), nullable=False),
                 sa.Column("turn", sa.Integer(), nullable=False), sa.Column("assessor", sa.Text(), nullable=False),
                 sa.Column("time", sa.BigInteger(), nullable=False),
                 sa.UniqueConstraint("campaign", "question_id", "layer", "turn"), sqlite_autoincrement=True),
    ]
    for name in ("questions", "passages"):
        sa.Table(name, made, sa.Column("id", sa.Text(), primary_key=True), sa.Column("body", sa.Text()))
    for table in kept:
        _protect(table)
    return made


def _protect(table: Table) -> None:
    """Triggers that refuse to change or remove a row."""
    import sqlalchemy as sa

    ddl: Any = sa.DDL  # untyped in the library
    for verb in ("UPDATE", "DELETE"):
        sa.event.listen(table, "after_create", ddl(
            f"CREATE TRIGGER {table.name}_no_{verb.lower()} BEFORE {verb} ON {table.name} "
            f"BEGIN SELECT RAISE(ABORT, '{table.name} is append-only'); END").execute_if(dialect="sqlite"))
    sa.event.listen(table, "after_create", ddl(
        "CREATE OR REPLACE FUNCTION goldset_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this table is append-only'; END $$").execute_if(dialect="postgresql"))
    sa.event.listen(table, "after_create", ddl(
        f"CREATE TRIGGER {table.name}_append_only BEFORE UPDATE OR DELETE ON {table.name} "
        "FOR EACH ROW EXECUTE FUNCTION goldset_append_only()").execute_if(dialect="postgresql"))
