"""Documents changed: where does the evidence stand now? Kept, moved, moved with similarity, or stale."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import pyarrow as pa

from goldset.spans import restored_texts, sentences
from goldset.text import quote_key, tokenize

CONTEXT = 40
"""Visible characters either side that tell one place of a repeated text from another."""
WIDER = (400, 4000)
"""The same where whole passages repeat."""
ALONE = 20
"""A text at least so long that stands once before and once after is the same text."""
FITS, MARGIN, HOME = 0.5, 0.4, 0.25
"""Where the text alone does not decide: the share of its neighbourhood that must agree, by how much more than that of
any other old place of the same text, and what staying in the same document counts for in that comparison."""
BETWEEN, BESIDE = 0.6, 0.8
"""Least similarity of a changed text with both neighbours in place, and with one."""
_MOST = 1000


@dataclass(frozen=True)
class Anchor:
    """One evidence range, before and after.

    ``similarity`` is 1.0 where the same visible text stands (case, width, white space, composition and kinds of quotes
    and dashes aside), less where it was changed between its old neighbours, null where it is stale.
    """

    question_id: str
    span_id: str
    doc_id: str
    start: int
    end: int
    status: str  # kept | moved | stale
    similarity: float | None
    new_doc_id: str | None
    new_start: int | None
    new_end: int | None
    reason: str


def reanchor(*, gold: pa.Table, spans: pa.Table, documents: pa.Table) -> list[Anchor]:
    """Gold with the spans it was labelled on, documents as they are now -> an Anchor for each evidence range.

    The same version of a document keeps its evidence. Else the exact text is looked for, in its own document and in
    all others (moved, renamed, re-encoded): a text that is long and unique is taken where it stands; a repeated or
    short one only where its old neighbours stand around it, better than around any other old place of it. Else a
    changed text is looked for between, or beside, its old neighbours and taken with its similarity. Else it is stale:
    somebody must look. A gold without evidence is one range, its span.

    Args:
        gold: table ``gold``.
        spans: table ``spans`` of the same version, which holds the old text.
        documents: table ``documents`` as read now.
    """
    searcher = _Searcher(restored_texts(spans), documents)
    names = ["span_id", "doc_id", "start", "end", "doc_sha256"]
    rows = {row["span_id"]: row for row in spans.select(names).to_pylist()}
    anchors: list[Anchor] = []
    for row in gold.select(["question_id", "span_id", "evidence"]).to_pylist():
        span = rows[row["span_id"]]
        ranges = [(part["start"], part["end"]) for part in row["evidence"]] or [(span["start"], span["end"])]
        for start, end in ranges:
            found = searcher.find(span, start, end)
            anchors.append(Anchor(row["question_id"], row["span_id"], span["doc_id"], -1 if start is None else start,
                                  -1 if end is None else end, **found))
    return anchors


def _stale(reason: str) -> dict[str, Any]:
    return {"status": "stale", "similarity": None, "new_doc_id": None, "new_start": None, "new_end": None,
            "reason": reason}


def _found(status: str, similarity: float, doc_id: str, start: int, end: int, reason: str) -> dict[str, Any]:
    return {"status": status, "similarity": similarity, "new_doc_id": doc_id, "new_start": start, "new_end": end,
            "reason": reason}


class _Visible:
    """A text without white space, in quote_key's form and decomposed; each character knows its position."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts: list[str] = []
        self.at: list[int] = []
        for position, char in enumerate(text):
            form = _FORMS.get(char)
            if form is None:
                form = _FORMS[char] = unicodedata.normalize("NFD", quote_key(char)).replace(" ", "")
            if form:
                parts.append(form)
                self.at.extend([position] * len(form))
        self.form = "".join(parts)

    def inside(self, start: int, end: int) -> tuple[int, int]:
        """Range of the text -> range of the form."""
        return bisect_left(self.at, start), bisect_left(self.at, end)

    def outside(self, low: int, high: int) -> tuple[int, int]:
        """Range of the form -> range of the text, marks on its last letter included."""
        end = self.at[high - 1] + 1
        while end < len(self.text) and unicodedata.combining(self.text[end]):
            end += 1
        return self.at[low], end


_FORMS: dict[str, str] = {}
_Place = tuple[str, int]


def _places(texts: Mapping[str, _Visible], quote: str, first: str) -> list[_Place]:
    """Where a form stands, the document ``first`` before the others."""
    order = [first, *(name for name in texts if name != first)] if first in texts else list(texts)
    found: list[_Place] = []
    for name in order:
        found.extend((name, at) for at in _occurrences(texts[name].form, quote))
        if len(found) > _MOST:
            break
    return found


def _occurrences(form: str, quote: str) -> Iterator[int]:
    at = form.find(quote) if quote else -1
    while at >= 0:
        yield at
        at = form.find(quote, at + 1)


class _Searcher:
    """Old texts and new ones."""

    def __init__(self, old: Mapping[str, str], documents: pa.Table) -> None:
        rows = documents.select(["doc_id", "text", "sha256"]).to_pylist()
        self._sha = {row["doc_id"]: row["sha256"] for row in rows}
        self._old = {name: _Visible(text) for name, text in old.items()}
        self._new = {row["doc_id"]: _Visible(row["text"]) for row in rows if row["text"] is not None}

    def find(self, span: Mapping[str, Any], start: int | None, end: int | None) -> dict[str, Any]:
        """Columns of an Anchor from ``status`` on."""
        doc_id = span["doc_id"]
        if start is None or end is None:
            return _stale("the span has no offsets")
        if span["doc_sha256"] is not None and self._sha.get(doc_id) == span["doc_sha256"]:
            return _found("kept", 1.0, doc_id, start, end, "same document")
        old = self._old.get(doc_id)
        if old is None:
            return _stale("the old text is not known")
        low, high = old.inside(start, end)
        quote = old.form[low:high]
        if not quote:
            return _stale("no visible text in the evidence")
        others = [place for place in _places(self._old, quote, doc_id) if place != (doc_id, low)]
        return self._exact(doc_id, low, quote, others) or self._changed(doc_id, low, high, not others) or _stale(
            "the text stands nowhere that its old neighbours confirm")

    # --- the same text ---------------------------------------------------------------------------------------------

    def _exact(self, doc_id: str, low: int, quote: str, others: list[_Place]) -> dict[str, Any] | None:
        places = _places(self._new, quote, doc_id)
        if not places:
            return None
        # Whole passages repeat in reports: where the nearest neighbours are the same too, those further out may differ.
        found = (self._best(places, (doc_id, low), others, len(quote), size) for size in (CONTEXT, *WIDER))
        best = next((one for one in found if one is not None), None)
        unique = not others and len(places) == 1 and len(quote) >= ALONE
        if best is None or not (unique or best[0] >= FITS):
            return None
        name, at = best[1]
        start, end = self._new[name].outside(at, at + len(quote))
        same = name == doc_id and self._old[doc_id].outside(low, low + len(quote)) == (start, end)
        return _found("kept" if same else "moved", 1.0, name, start, end,
                      "same text at the same place" if same else
                      "same text elsewhere in the document" if name == doc_id else "same text in another document")

    def _best(self, places: list[_Place], own: _Place, others: list[_Place], length: int,
              size: int) -> tuple[float, _Place] | None:
        """The place that fits best, of those that fit the old place better than any other old place of the text."""
        best: tuple[float, _Place] | None = None
        for place in places:
            fit = self._fit(place, own, length, size)
            score = fit + HOME * (place[0] == own[0])
            rival = max((self._fit(place, other, length, size) + HOME * (place[0] == other[0]) for other in others),
                        default=-1.0)
            if score >= rival + MARGIN and (best is None or fit > best[0]):
                best = fit, place
        return best

    def _fit(self, new: _Place, old: _Place, length: int, size: int) -> float:
        """Share of the neighbouring characters that agree; where a document ends is a neighbour too."""
        edge = "\n" * size  # a form has no white space, so this is no text
        sides = [(edge + form[max(0, at - size) : at])[-size:][::-1] + (
            form[at + length : at + length + size] + edge)[:size]
            for form, at in ((self._old[old[0]].form, old[1]), (self._new[new[0]].form, new[1]))]
        left, right = (_common(*(side[half] for side in sides)) for half in (slice(size), slice(size, None)))
        return (left + right) / (2 * size)

    # --- a changed text --------------------------------------------------------------------------------------------

    def _changed(self, doc_id: str, low: int, high: int, alone: bool) -> dict[str, Any] | None:
        old = self._old[doc_id]
        text = old.text[slice(*old.outside(low, high))]
        before = self._neighbour(doc_id, *(old.form[max(0, low - size) : low] for size in (CONTEXT, ALONE)))
        after = self._neighbour(doc_id, *(old.form[high : high + size] for size in (CONTEXT, ALONE)))
        best: tuple[float, str, int, int] | None = None
        for least, name, start, end in self._stretches(before, after, high - low, alone):
            similarity = _alike(text, self._new[name].text[start:end])
            # A text that stood elsewhere before is that text, however alike.
            if similarity >= least and (best is None or similarity > best[0]) and not _places(
                    self._old, _Visible(self._new[name].text[start:end]).form, doc_id):
                best = similarity, name, start, end
        if best is None:
            return None
        similarity, name, start, end = best
        return _found("moved", min(similarity, 0.999), name, start, end, "changed text between its old neighbours")

    def _neighbour(self, doc_id: str, *forms: str) -> _Neighbour | None:
        """The place of the first neighbouring text that is long enough and stands once before and once after."""
        for form in forms:
            if len(form) < ALONE or len(_places(self._old, form, doc_id)) > 1:
                continue
            places = _places(self._new, form, doc_id)
            if len(places) == 1:
                return _Neighbour(places[0][0], places[0][1], places[0][1] + len(form))
        return None

    def _stretches(self, before: _Neighbour | None, after: _Neighbour | None, size: int,
                   alone: bool) -> Iterator[tuple[float, str, int, int]]:
        """(least similarity, document, start, end) of what may be the changed text."""
        if before and after and before.name == after.name:
            if 0 < after.low - before.high <= 3 * size + CONTEXT:
                yield BETWEEN, before.name, *self._new[before.name].outside(before.high, after.low)
            return  # both neighbours stand and nothing like it is between them
        if not alone:
            return  # beside one neighbour may be another of the same texts
        for neighbour, reach in ((before, (0, 2 * size)), (after, (-2 * size, 0))):
            if neighbour is None:
                continue
            new, edge = self._new[neighbour.name], neighbour.high if neighbour is before else neighbour.low
            low, high = (min(max(0, edge + step), len(new.form)) for step in reach)
            if low >= high:
                continue
            start, end = new.outside(low, high)
            found = [(start + a, start + b) for a, b in sentences(new.text[start:end])]
            # The changed text touches its neighbour: runs of sentences from there on.
            runs = [(found[0][0], last) for _, last in found] if neighbour is before else \
                [(first, found[-1][1]) for first, _ in found]
            yield from ((BESIDE, neighbour.name, first, last) for first, last in runs)


@dataclass(frozen=True)
class _Neighbour:
    name: str
    low: int
    high: int


def _common(left: str, right: str) -> int:
    """Length of the longest common prefix."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at
    return min(len(left), len(right))


def _alike(left: str, right: str) -> float:
    """Share of the words of both that stand in the same order (difflib's ratio over tokens)."""
    return SequenceMatcher(None, tokenize(left), tokenize(right), autojunk=False).ratio()


def counts_of(anchors: Iterable[Anchor]) -> dict[str, int]:
    """kept, moved (same text), changed (moved with a similarity below 1) and stale ranges."""
    counts = {"ranges": 0, "kept": 0, "moved": 0, "changed": 0, "stale": 0}
    for anchor in anchors:
        counts["ranges"] += 1
        changed = anchor.status == "moved" and anchor.similarity != 1.0
        counts["changed" if changed else anchor.status] += 1
    return counts
