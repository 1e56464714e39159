"""Does the gold still stand in the documents as they are now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goldset.audit.verdicts import LIMITS, finding

if TYPE_CHECKING:
    from goldset.audit.context import Context


@dataclass(frozen=True)
class Aged:
    """Gold against the documents as they are now: pairs by what became of their passage, and what they were held to.

    ``moved`` has the same text at another place, ``changed`` another text, ``missing`` neither.
    """

    file: str
    moved: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


def staleness(context: Context) -> list[dict[str, Any]]:
    """Context -> the gold against the documents as they are now; nothing where nobody gave them."""
    aged = context.aged
    if aged is None:
        return []
    n, lost = len(context.labelled.gold), [*aged.missing, *aged.changed]
    counts = (f"{n - len(lost) - len(aged.moved)} of {n} gold passages stand in {aged.file} as they were labelled "
              f"({len(aged.moved)} moved, {len(aged.changed)} changed, {len(aged.missing)} missing")
    first = next(iter(sorted(aged.missing) or sorted(aged.changed) or sorted(aged.moved)), None)
    what = "missing" if aged.missing else "changed" if aged.changed else "moved"
    named = f"; first {what}: question '{first[0]}', passage '{first[1]}'{context.place(*first)}" if first else ""
    share = len(lost) / n
    word = "outdated" if share > LIMITS.stale_fail else "aged" if lost else "moved" if aged.moved else "current"
    effect = {"outdated": ": what a number on this set says of these documents, nobody knows",
              "aged": ": whether these still answer, nobody has read",
              "moved": ": the text is there, at another place", "current": ""}[word]
    return [finding("integrity", "staleness", word, n=n, measured=share, threshold=LIMITS.stale_fail,
                    message=f"{counts}{named}){effect}.")]
