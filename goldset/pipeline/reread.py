"""Carried answers and their second reading, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reread_lines(found: Mapping[str, Any] | None) -> list[str]:
    """What ``review.reread`` found -> lines for people; none where nothing was carried or nothing is read again."""
    if not found or not found["asked"]:
        return []
    carried = found["carried"]
    lines = [f"{found['asked']} of {carried['yes'] + carried['no']} carried answers ({carried['yes']} yes, "
             f"{carried['no']} no) are read again, blind" + (f"; {found['open']} open" if found["open"] else "")]
    return [*lines, _agreed(found)] if found["n"] or found["cannot_tell"] else lines


def _agreed(found: Mapping[str, Any]) -> str:
    """How far the two readings agree, with n and interval."""
    if not found["n"]:
        return f"no agreement to tell: {found['cannot_tell']} of them nobody could tell"
    low, high = found["agreement_interval"]
    positive = found["positive_agreement"]
    return (f"the answers agree on {round(found['agreement'] * found['n'])} of {found['n']} (95 % {100 * low:.1f} to "
            f"{100 * high:.1f} %); positive agreement "
            + ("unknown, no yes among them" if positive is None else f"{positive:.3f}")
            + (f"; {found['cannot_tell']} could not be told" if found["cannot_tell"] else "")
            + (f"; {found['same_reader']} by the first reader" if found["same_reader"] else ""))
