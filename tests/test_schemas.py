"""conform() is the border: names, types, nulls, keys, ranges, enumerations."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.schemas import SCHEMAS, canonical_hash, conform, empty, from_rows, key_of

DROP = {"reason": "greeting", "lines": 3, "example": "hi"}


def test_every_column_is_documented_and_every_key_exists() -> None:
    for name, schema in SCHEMAS.items():
        assert all(field.metadata[b"doc"] for field in schema), name
        assert set(key_of(name)) <= set(schema.names), name
        nullable = [column for column in key_of(name) if schema.field(column).nullable]
        assert nullable == (["k"] if name == "measurements" else []), name


@pytest.mark.parametrize(("change", "message"), [
    ({"reason": None}, "column 'reason': row 0 is null"),
    ({"lines": -1}, "column 'lines': -1 is below 0"),
    ({"lines": "many"}, "Could not convert"),
])
def test_a_bad_row_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_rows("drops", [{**DROP, **change}])


def test_a_repeated_key_is_named() -> None:
    with pytest.raises(DataError, match=r"key \(reason='greeting'\) stands in 2 rows"):
        from_rows("drops", [DROP, DROP])


def test_missing_and_unknown_columns_are_named() -> None:
    table = pa.table({"reason": ["a"], "count": [1]})
    with pytest.raises(DataError, match=r"missing columns \['lines', 'example'\], unknown columns \['count'\]"):
        conform(table, "drops")


def test_enumerations_and_nan_are_refused() -> None:
    finding = {"check": "integrity", "subject": "all", "verdict": "pass", "reason": "ok", "measured": 0.5, "low": None,
               "high": None, "threshold": None, "n": 1, "message": "fine", "remedy": None}
    assert len(from_rows("findings", [finding])) == 1
    with pytest.raises(DataError, match="'perhaps' is not allowed; allowed: pass, warn, fail, insufficient"):
        from_rows("findings", [{**finding, "verdict": "perhaps"}])
    with pytest.raises(DataError, match="NaN is not a value"):
        from_rows("findings", [{**finding, "measured": float("nan")}])


def test_a_frame_passes_the_same_border() -> None:
    frame = pd.DataFrame([DROP])
    assert conform(frame, "drops").equals(from_rows("drops", [DROP]))
    with pytest.raises(DataError, match="unknown columns"):
        conform(frame.assign(extra=1), "drops")


def test_empty_tables_conform() -> None:
    for name in SCHEMAS:
        assert len(conform(empty(name), name)) == 0


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(0, 9)), unique_by=lambda row: row[0], max_size=8),
       st.randoms(use_true_random=False))
def test_the_canonical_hash_ignores_row_order_and_chunking(rows: list[tuple[str, int]], random: Any) -> None:
    table = from_rows("drops", [{"reason": reason, "lines": lines, "example": None} for reason, lines in rows])
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = table.take(pa.array(order, pa.int64()))
    pieces = pa.concat_tables([shuffled.slice(0, 1), shuffled.slice(1)])
    assert canonical_hash(pieces, "drops") == canonical_hash(table, "drops")


def test_the_canonical_hash_sees_every_kept_column_and_no_other() -> None:
    one, other = from_rows("drops", [DROP]), from_rows("drops", [{**DROP, "example": "hello"}])
    assert canonical_hash(one, "drops") != canonical_hash(other, "drops")
    left_out = ("example",)
    assert canonical_hash(one, "drops", leave_out=left_out) == canonical_hash(other, "drops", leave_out=left_out)
