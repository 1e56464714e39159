"""How many passages reached the reader, from the log of what was served."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from goldset.errors import DataError
from goldset.formats.lines import field, json_lines


def read_served(path: Path, name: str = "served") -> dict[int, int]:
    """JSONL, one served answer a line -> number of passages -> answers with so many, smallest first.

    Args:
        path: gzip too.
        name: dotted field that holds the list of passages, or their number.

    Raises:
        DataError: a line whose field is neither a list nor a whole number from 0 (named), or no answer at all.
    """
    counts: Counter[int] = Counter()
    for line, row in json_lines(path):
        value = field(row, name)
        size = len(value) if isinstance(value, list) else value
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise DataError(f"{path}, line {line}: the field '{name}' is {value!r:.40}; it must hold the list of "
                            "served passages or their number; name another with --served-field")
        counts[size] += 1
    if not sum(count for size, count in counts.items() if size):
        raise DataError(f"{path}: no answer with a passage; nothing says at which k production serves")
    return dict(sorted(counts.items()))


def cutoffs_of(counts: dict[int, int]) -> list[int]:
    """The k to score at: the smallest that reached a reader, and the most common one."""
    served = {size: count for size, count in counts.items() if size}
    return sorted({min(served), max(served, key=lambda size: (served[size], -size))})
