"""Carry-forward: what people said on one chunking answers the spans of another, and the rest is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.schemas import from_rows
from goldset.spans import sentences

Range = tuple[int, int]
Pair = tuple[str, str]


def carry_decisions(*, pairs: pa.Table, spans: pa.Table, decisions: pa.Table, earlier_spans: pa.Table) -> pa.Table:
    """Pairs on one chunking, decisions on another -> decisions: one row a pair, in its order; ``open`` = ask.

    The rules, in this order:

    1. The same text was decided for the same question: the same answer.
    2. All evidence of an earlier positive lies in the span: yes, with that evidence. A positive without evidence must
       lie in the span whole.
    3. Earlier spans that were refused cover all visible text of the span, and each of its sentences lies whole in one
       of them: no. A sentence that two refused spans share was never read whole, so it is asked.

    Text counts wherever it stands: evidence and refusals are followed into twins of the earlier and of the asked span.
    Spans of different versions of a document are never compared: follow_edits leads a yes to its new place first.

    Args:
        pairs: question_id and span_id of what would be asked (candidates, or any table with both).
        spans: table ``spans`` that the pairs name.
        decisions: table ``decisions`` of the earlier set; only decided rows answer.
        earlier_spans: table ``spans`` that the decisions name.
    """
    earlier = _Earlier(decisions, earlier_spans)
    asked = pairs.select(["question_id", "span_id"]).to_pylist()
    groups = _groups(spans, {row["span_id"] for row in asked})
    return from_rows("decisions", [_answer(row["question_id"], groups[row["span_id"]], earlier) for row in asked])


@dataclass(frozen=True)
class _Place:
    """Where a text stands; ``shift`` leads from the span that was decided, or is asked, to this place."""

    span_id: str
    doc_id: str
    start: int
    end: int
    text: str
    sha256: str | None
    shift: int

    @property
    def fits(self) -> bool:
        return len(self.text) == self.end - self.start

    def agrees(self, other: _Place) -> bool:
        """Whether both speak of the same version of the document, where they overlap."""
        if self.sha256 is not None and other.sha256 is not None:
            return self.sha256 == other.sha256
        low, high = max(self.start, other.start), min(self.end, other.end)
        return self.fits and other.fits and (
            self.text[low - self.start : high - self.start] == other.text[low - other.start : high - other.start])


@dataclass
class _Group:
    """A span that is named in a pair, with the places of all texts equal to its own."""

    span_id: str
    text_hash: str
    places: list[_Place] = field(default_factory=list)


def _groups(spans: pa.Table, wanted: set[str]) -> dict[str, _Group]:
    mine = spans.filter(pc.is_in(spans.column("span_id"), value_set=pa.array(sorted(wanted), pa.string())))
    near = spans.filter(pc.is_in(spans.column("twin_group"), value_set=pc.unique(mine.column("twin_group"))))
    by_text: dict[str, list[dict[str, Any]]] = {}
    rows = near.to_pylist()
    for row in rows:
        by_text.setdefault(row["text_hash"], []).append(row)
    found: dict[str, _Group] = {}
    for row in rows:
        if row["span_id"] not in wanted:
            continue
        group = found[row["span_id"]] = _Group(row["span_id"], row["text_hash"])
        if row["start"] is not None:
            group.places = [
                _Place(twin["span_id"], twin["doc_id"], twin["start"], twin["end"], twin["text"], twin["doc_sha256"],
                       twin["start"] - row["start"])
                for twin in by_text[row["text_hash"]] if twin["start"] is not None]
    return found


@dataclass(frozen=True)
class _Said:
    """A decision at one place of its text."""

    row: dict[str, Any]
    place: _Place

    @property
    def evidence(self) -> list[Range]:
        """Ranges in the document of the place."""
        return [(part["start"] + self.place.shift, part["end"] + self.place.shift) for part in self.row["evidence"]]


class _Earlier:
    """Decisions by question and text, and by question and document."""

    def __init__(self, decisions: pa.Table, spans: pa.Table) -> None:
        rows = [row for row in decisions.to_pylist() if row["status"] == "decided"]
        groups = _groups(spans, {row["span_id"] for row in rows})
        starts = dict(zip(spans.column("span_id").to_pylist(), spans.column("start").to_pylist(), strict=True))
        self.by_text: dict[tuple[str, str], tuple[dict[str, Any], int | None]] = {}
        self.by_document: dict[tuple[str, str], list[_Said]] = {}
        for row in rows:
            group = groups[row["span_id"]]
            self.by_text[row["question_id"], group.text_hash] = row, starts[row["span_id"]]
            for place in group.places:
                self.by_document.setdefault((row["question_id"], place.doc_id), []).append(_Said(row, place))


def _answer(question_id: str, group: _Group, earlier: _Earlier) -> dict[str, Any]:
    own = next((place for place in group.places if place.shift == 0 and place.span_id == group.span_id), None)
    same = earlier.by_text.get((question_id, group.text_hash))
    if same is not None:
        row, start = same
        if not row["evidence"]:
            return {**row, "span_id": group.span_id}
        if own is not None and start is not None:
            return {**row, "span_id": group.span_id, "evidence": [
                {"start": part["start"] - start + own.start, "end": part["end"] - start + own.start}
                for part in row["evidence"]]}
    refused: dict[str, Any] | None = None
    for place in group.places:
        near = [said for said in earlier.by_document.get((question_id, place.doc_id), ())
                if said.place.start < place.end and place.start < said.place.end and said.place.agrees(place)]
        yes = [said for said in near if said.row["relevant"] and _inside(said, place)]
        if yes:
            return _yes(question_id, group.span_id, place, yes)
        no = [said for said in near if not said.row["relevant"]]
        if refused is None and no and _covered(place, [(said.place.start, said.place.end) for said in no]):
            refused = _row(question_id, group.span_id, False, [], None, no)
    return refused or _row(question_id, group.span_id, None, [], None, [])


def evidence_spans(*, spans: pa.Table, decisions: pa.Table, earlier_spans: pa.Table) -> dict[Pair, list[str]]:
    """Positive decisions on one chunking -> the spans of another that hold a part of what each rests on.

    One entry a positive, by question and span; an empty list where its text is in no span of the same version of the
    document (it changed, or left the corpus). Spans go by the first of their twins, in order; text counts wherever it
    stands, as in ``carry_decisions``.
    """
    rows = [row for row in decisions.to_pylist() if row["status"] == "decided" and row["relevant"]]
    groups = _groups(earlier_spans, {row["span_id"] for row in rows})
    by_document: dict[str, list[tuple[_Place, str]]] = {}
    by_text: dict[str, str] = {}
    wanted = {place.doc_id for group in groups.values() for place in group.places}
    names = ["span_id", "doc_id", "start", "end", "text", "doc_sha256", "text_hash", "twin_group"]
    for row in spans.select(names).to_pylist():
        by_text.setdefault(row["text_hash"], row["twin_group"])
        if row["start"] is not None and row["doc_id"] in wanted:
            place = _Place(row["span_id"], row["doc_id"], row["start"], row["end"], row["text"], row["doc_sha256"], 0)
            by_document.setdefault(row["doc_id"], []).append((place, row["twin_group"]))
    found: dict[Pair, list[str]] = {}
    for row in rows:
        group = groups[row["span_id"]]
        held = {by_text[group.text_hash]} if group.text_hash in by_text else set()
        for said in (_Said(row, place) for place in group.places):
            ranges = said.evidence or [(said.place.start, said.place.end)]
            held |= {first for place, first in by_document.get(said.place.doc_id, ()) if place.agrees(said.place)
                       and any(place.start < end and start < place.end for start, end in ranges)}
        found[row["question_id"], row["span_id"]] = sorted(held)
    return found


def _inside(said: _Said, place: _Place) -> bool:
    ranges = said.evidence or [(said.place.start, said.place.end)]
    return all(place.start <= start and end <= place.end for start, end in ranges)


def _yes(question_id: str, span_id: str, place: _Place, yes: list[_Said]) -> dict[str, Any]:
    ranges = sorted({(start - place.shift, end - place.shift) for said in yes for start, end in said.evidence})
    source = next((said.row["evidence_source"] for said in yes if said.row["evidence"]), None)
    return _row(question_id, span_id, True, ranges, source, yes)


def _covered(place: _Place, refused: list[Range]) -> bool:
    """Whether refused spans hold all visible text of the span, and each of its sentences whole in one of them."""
    if any(start <= place.start and place.end <= end for start, end in refused):
        return True
    if not place.fits:
        return False
    at = place.start
    for start, end in sorted(refused):
        if place.text[at - place.start : max(start, at) - place.start].strip():
            return False
        at = max(at, end)
    if place.text[min(at, place.end) - place.start :].strip():
        return False
    return all(any(start <= place.start + low and place.start + high <= end for start, end in refused)
               for low, high in sentences(place.text))


def _row(question_id: str, span_id: str, relevant: bool | None, evidence: Iterable[Range], source: str | None,
         said: list[_Said]) -> dict[str, Any]:
    bases = {one.row["basis"] for one in said}
    return {"question_id": question_id, "span_id": span_id, "relevant": relevant,
            "status": "open" if relevant is None else "decided", "basis": bases.pop() if len(bases) == 1 else "human",
            "evidence": [{"start": start, "end": end} for start, end in evidence], "evidence_source": source,
            "label_ids": sorted({name for one in said for name in one.row["label_ids"]})}
