"""Offsets in documents that people really have: CRLF, combining marks, emoji, right-to-left, repeats, titles."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.config import CorpusConfig
from goldset.corpus import CorpusTables, build_corpus
from goldset.formats.corpora import RawChunk
from goldset.schemas import from_rows
from goldset.spans import canonical_spans
from goldset.text import text_sha256

Range = tuple[int, int]
CONFIG = CorpusConfig.model_validate({"chunks": "chunks.jsonl"})
SENTENCES = [
    "See the notice board. ", "See the notice board. ", "Le cafe\u0301 ferme t\u00f4t.\r\n",
    "\U0001f4a9 reset the router \U0001f6a2.\n",
    "\u0627\u0644\u0645\u0631\u0641\u0623 \u0645\u063a\u0644\u0642 \u0627\u0644\u064a\u0648\u0645. ",
    "\u6e2f\u53e3\u306f\u65e9\u304f\u9589\u307e\u308b\u3002", "| a\t| b |\r\n", "Fee: 3\u00a0crowns. ",
]
TITLE = "Harbour \U0001f6a2 cafe\u0301"


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[Range]]:
    """A text of repeated sentences with a serial number now and then, and windows that start and end anywhere."""
    picks = draw(st.lists(st.integers(0, len(SENTENCES) - 1), min_size=4, max_size=20))
    text = "".join(SENTENCES[pick] + (f"No {at}. " if at % 3 == 0 else "") for at, pick in enumerate(picks))
    size = draw(st.integers(25, 90))
    step = draw(st.integers(10, size))
    return text, [(start, min(start + size, len(text))) for start in range(0, max(len(text) - size + step, 1), step)]


def built(text: str, chunks: list[RawChunk], *, known: bool = True) -> CorpusTables:
    table = from_rows("documents", [{"doc_id": "d", "text": text, "title": TITLE, "url": None,
                                     "sha256": text_sha256(text), "metadata": "{}"}])
    return build_corpus(documents=table if known else None, raw_chunks=chunks, config=CONFIG)


def raw(text: str, places: list[Range], *, offsets: bool, title: bool) -> list[RawChunk]:
    head = TITLE + "\n" if title else ""
    return [RawChunk(line, f"c{line:03d}", "d", head + text[start:end], TITLE if title else None,
                     start if offsets else None, end if offsets else None, {})
            for line, (start, end) in enumerate(places, 1) if text[start:end].strip()]


@settings(max_examples=150, deadline=None)
@given(documents(), st.booleans())
def test_declared_offsets_are_verified_code_point_by_code_point(document: tuple[str, list[Range]], title: bool) -> None:
    text, places = document
    tables = built(text, raw(text, places, offsets=True, title=title))
    rows = tables.chunks.to_pylist()
    assert {row["offsets"] for row in rows} == {"verified"}
    assert [(row["start"], row["end"]) for row in rows] == [place for place in places if text[slice(*place)].strip()]
    assert all(row["text"][row["body_start"] :] == text[row["start"] : row["end"]] for row in rows)
    spans = canonical_spans(documents=tables.documents, chunks=tables.chunks).spans.to_pylist()
    assert all(span["text"] == text[span["start"] : span["end"]] for span in spans)


@settings(max_examples=150, deadline=None)
@given(documents(), st.booleans())
def test_without_offsets_they_are_located_in_order(document: tuple[str, list[Range]], title: bool) -> None:
    text, places = document
    given_chunks = raw(text, places, offsets=False, title=title)
    rows = built(text, given_chunks).chunks.to_pylist()
    assert {row["offsets"] for row in rows} == {"located"}
    assert all(row["text"][row["body_start"] :] == text[row["start"] : row["end"]] for row in rows)
    assert all(left["start"] <= right["start"] for left, right in itertools.pairwise(rows))
    true = [place for place in places if text[slice(*place)].strip()]
    for row, (start, end) in zip(rows, true, strict=True):
        # A text that stands once has one place; str.count would miss places that overlap.
        if sum(text.startswith(text[start:end], at) for at in range(len(text))) == 1:
            assert (row["start"], row["end"]) == (start, end)


@settings(max_examples=100, deadline=None)
@given(st.integers(60, 120), st.integers(25, 50), st.booleans())
def test_without_documents_neighbours_are_stitched(size: int, shared: int, title: bool) -> None:
    # Serial numbers make every stretch of 20 code points unique, so that only the true place agrees.
    text = "".join(f"{i} caf\u0065\u0301 \U0001f6a2 \u0645\u0631\u0641\u0623.\r\n" for i in range(100, 140))
    places = [(start, start + size) for start in range(0, len(text) - size, size - shared)]
    rows = built(text, raw(text, places, offsets=False, title=title), known=False).chunks.to_pylist()
    assert {row["offsets"] for row in rows} == {"stitched"}
    # A line end before the first word counts as a header without a title.
    lead = [row["body_start"] - (len(TITLE) + 1 if title else 0) for row in rows]
    assert all(0 <= before <= 1 for before in lead)
    assert [row["start"] - rows[0]["start"] - before for row, before in zip(rows, lead, strict=True)] == [
        start for start, _ in places]
    assert all(row["end"] - row["start"] == size - before for row, before in zip(rows, lead, strict=True))


def test_what_is_nowhere_is_absent_and_its_span_carries_no_offsets() -> None:
    text = "".join(f"Line {i} of the log.\r\n" for i in range(30))
    chunks = raw(text, [(0, 60), (60, 120), (120, 180), (180, 240), (240, 300)], offsets=True, title=False)
    lost = RawChunk(9, "lost", "d", "Nothing like it stands there.", None, 5, 34, {})
    tables = built(text, [*chunks, lost])
    row = next(row for row in tables.chunks.to_pylist() if row["chunk_id"] == "lost")
    assert (row["offsets"], row["start"], row["end"]) == ("absent", None, None)
    assert tables.report["offsets"] == {"verified": 5, "absent": 1}
    spans = canonical_spans(documents=tables.documents, chunks=tables.chunks).spans.to_pylist()
    assert [(span["span_id"], span["start"]) for span in spans if span["offsets"] == "absent"] == [("d#lost", None)]
