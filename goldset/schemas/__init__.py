"""What the tables between the stages carry (``tables``), and the check each passes at a border (``border``)."""

from goldset.schemas.border import canonical_hash, conform, empty, from_rows, key_codes, key_of, schema_of
from goldset.schemas.tables import (
    CHECK,
    CHECKS,
    DEEP,
    HEADINGS,
    HOLE,
    OFFSET_STATES,
    ORIGINS,
    RANGE,
    RANK,
    SCHEMAS,
    VERDICT_WORDS,
)

__all__ = [
    "CHECK",
    "CHECKS",
    "DEEP",
    "HEADINGS",
    "HOLE",
    "OFFSET_STATES",
    "ORIGINS",
    "RANGE",
    "RANK",
    "SCHEMAS",
    "VERDICT_WORDS",
    "canonical_hash",
    "conform",
    "empty",
    "from_rows",
    "key_codes",
    "key_of",
    "schema_of",
]
