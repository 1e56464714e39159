"""What was done to one document: the role of each chunk, the spans, and the sentences at each cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goldset.spans.fold import Interval, Stretch, fold, roles


def explain_document(text: str, chunks: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """A document and its chunks (chunk_id, start, end) -> chunks, spans and cuts, in order of start.

    Chunks carry their role: ``alone`` (overlaps no other), ``anchor``, ``folded`` (shares half or more with an
    anchor), ``inside`` (lies in another), ``parent`` (its children hold all of its text). Cuts carry the kind:
    ``sentence`` (between two sentences), ``word`` (through a sentence that no chunk holds whole) or ``chunk`` (where
    one chunk ends and the next begins), with what stands before and after.
    """
    stretch = Stretch(text, 0)
    ordered = sorted(chunks, key=lambda chunk: (chunk[1], -chunk[2], chunk[0]))
    shown: list[dict[str, Any]] = []
    spans: list[Interval] = []
    cuts: list[dict[str, Any]] = []
    for group in _groups(ordered):
        places = [(start, end) for _, start, end in group]
        role = roles(places, stretch)
        shown += [{"chunk_id": chunk_id, "start": start, "end": end, "role": role[start, end]}
                  for chunk_id, start, end in group]
        pieces = fold(places, stretch).pieces if len(group) > 1 else places
        if spans and pieces:
            cuts.append(_cut(stretch, pieces[0][0], "chunk"))
        cuts += [_cut(stretch, start, None) for start, _ in pieces[1:]]
        spans += pieces
    return {"chunks": shown, "spans": [{"start": start, "end": end} for start, end in spans], "cuts": cuts}


def _groups(ordered: Sequence[tuple[str, int, int]]) -> list[list[tuple[str, int, int]]]:
    """Chunks that overlap, directly or through others."""
    groups: list[list[tuple[str, int, int]]] = []
    reach = -1
    for chunk in ordered:
        if not groups or chunk[1] >= reach:
            groups.append([])
        groups[-1].append(chunk)
        reach = max(reach, chunk[2])
    return groups


def _cut(stretch: Stretch, at: int, kind: str | None) -> dict[str, Any]:
    """Where it is, what it is, and the text either side."""
    text = stretch.text
    low, high = at, at
    while low and text[low - 1].isspace():
        low -= 1
    while high < len(text) and text[high].isspace():
        high += 1
    around = stretch.sentences(low, high)
    broken = next(((start, end) for start, end in around if start < at < end), None)
    if broken:
        return {"at": at, "kind": kind or "word", "before": text[broken[0] : at], "after": text[at : broken[1]]}
    before = [text[start:end] for start, end in around if end <= at]
    after = [text[start:end] for start, end in around if start >= at]
    return {"at": at, "kind": kind or "sentence", "before": before[-1] if before else "",
            "after": after[0] if after else ""}
