"""Chunks get offsets that say how far they can be trusted; everything left out is counted."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.config import ChunkerConfig, CorpusConfig
from goldset.corpus import CorpusTables, build_corpus, cut_document
from goldset.errors import DataError
from goldset.formats.corpora import RawChunk
from goldset.schemas import from_rows
from goldset.text import count_words, text_sha256

CHUNKS = CorpusConfig.model_validate({"chunks": "chunks.jsonl"})
OWN = CorpusConfig.model_validate({"documents": "documents.jsonl", "chunker": {"words": 4, "step": 2}})
TEXT = "Home | About\nThe red pump needs oil every week.\nHome | About\nThe blue pump needs none."


def documents(**texts: str) -> pa.Table:
    return from_rows(
        "documents",
        [
            {"doc_id": doc_id, "text": text, "title": None, "url": None, "sha256": text_sha256(text), "metadata": "{}"}
            for doc_id, text in texts.items()
        ],
    )


def raw(
    chunk_id: str,
    text: str,
    start: int | None = None,
    end: int | None = None,
    *,
    doc: str = "d",
    title: str | None = None,
    line: int = 1,
    metadata: dict[str, Any] | None = None,
) -> RawChunk:
    return RawChunk(line, chunk_id, doc, text, title, start, end, metadata or {})


def build(*chunks: RawChunk, **texts: str) -> CorpusTables:
    return build_corpus(documents=documents(**texts) if texts else None, raw_chunks=chunks, config=CHUNKS)


def places(tables: CorpusTables) -> dict[str, tuple[int | None, int | None, int, str]]:
    return {
        row["chunk_id"]: (row["start"], row["end"], row["body_start"], row["offsets"])
        for row in tables.chunks.to_pylist()
    }


def test_offsets_are_verified_under_any_header() -> None:
    found = build(raw("a", "Pumps > Red\n\n" + TEXT[13:48], 13, 48), raw("b", TEXT[:12], 0, 12), d=TEXT)
    assert places(found) == {"a": (13, 48, 13, "verified"), "b": (0, 12, 0, "verified")}


def test_wrong_offsets_are_located_nearest_to_what_was_declared() -> None:
    # "Home | About" stands at 0 and at 48; declared at 50, so the second. The report names the first that moved.
    found = build(raw("a", "Home | About", 50, 62, line=9), raw("b", TEXT[13:47], 13, 47), d=TEXT)
    assert places(found)["a"] == (48, 60, 0, "located")
    assert found.report["offsets"] == {"verified": 1, "located": 1}
    assert found.report["first"] == {"located": "chunk 'a' of 'd' (offsets 50-62), line 9"}


def test_repeated_text_without_offsets_is_located_in_order() -> None:
    found = build(
        raw("a", "Home | About"), raw("b", TEXT[13:47]), raw("c", "Home | About"), raw("e", TEXT[61:]), d=TEXT
    )
    assert [places(found)[name][:2] for name in "abce"] == [(0, 12), (13, 47), (48, 60), (61, 86)]
    assert found.report["first"] == {}


def test_white_space_that_the_chunker_changed_does_not_matter() -> None:
    found = build(raw("a", "Red\n  The red pump\nneeds   oil every week. Home |", title="Red"), d=TEXT)
    assert places(found) == {"a": (13, TEXT.index("Home", 20) + 6, 6, "located")}


def test_documents_that_do_not_match_are_refused() -> None:
    with pytest.raises(
        DataError,
        match=r"chunks.jsonl, line 4: the text of chunk 'x' is not in its document 'd' "
        r"\(offsets 0-5\), nor are 0 others of 2 chunks",
    ):
        build(raw("a", TEXT[:12], 0, 12), raw("x", "other", 0, 5, line=4), d=TEXT)


def test_a_few_chunks_that_cannot_be_placed_are_counted() -> None:
    good = [raw(f"g{i}", TEXT[i : i + 20], i, i + 20) for i in range(9)]
    found = build(*good, raw("x", "other text", 3, 13, line=4), d=TEXT)
    assert places(found)["x"] == (None, None, 0, "absent")
    assert found.report["offsets"] == {"verified": 9, "absent": 1}
    assert found.report["first"] == {"absent": "chunk 'x' of 'd' (offsets 3-13), line 4"}


def test_document_ids_that_never_match_are_refused() -> None:
    with pytest.raises(
        DataError,
        match=r"0 of 1 document ids of the chunks are among the documents, the first is 'z', "
        r"the documents have ids like 'd'",
    ):
        build(raw("a", "x", doc="z"), d=TEXT)
    found = build(raw("a", "x", doc="z"), raw("b", TEXT[:12]), d=TEXT)
    assert found.report["unknown_documents"] == 1
    assert found.documents.column("doc_id").to_pylist() == ["d", "z"]


def test_the_header_is_what_the_text_has_more_than_its_offsets() -> None:
    # Title line 3; text 13, offsets 10 long: header 3. With offsets 8 long a longer header, 5. With 11, the title's
    # line would be cut: it stays the header, and the offsets are mismatched. Without a title line: text 4 short, 0.
    found = build(
        raw("a", "T.\n" + "a" * 10, 0, 10, title="T."),
        raw("b", "T.\n" + "a" * 10, 20, 28, title="T."),
        raw("c", "T.\n" + "a" * 10, 40, 51, title="T."),
        raw("e", "abc", 60, 67),
    )
    assert places(found) == {
        "a": (0, 10, 3, "declared"),
        "b": (20, 28, 5, "declared"),
        "c": (40, 51, 3, "mismatched"),
        "e": (60, 67, 0, "mismatched"),
    }
    assert found.report["first"] == {"mismatched": "chunk 'c' of 'd' (offsets 40-51), line 1"}


def test_a_body_that_starts_with_a_line_end_has_no_header() -> None:
    # Six code points at [10,16) as declared; the seventh of the other is the line of an empty title.
    found = build(raw("a", "\nabcde", 10, 16), raw("b", "\nabcdef", 20, 26))
    assert places(found) == {"a": (10, 16, 0, "declared"), "b": (20, 26, 1, "declared")}


def test_neighbours_are_stitched_where_they_share_text() -> None:
    # Bodies of 60 code points each; the second starts with the last 25 of the first; the third shares nothing; the
    # fourth and fifth share 30. Places: 0-60, 35-95, absent, then one code point on: 96-156, 126-186.
    rng = random.Random(5)
    text = "".join(rng.choice("abcdefghij ") for _ in range(400))
    parts = [text[0:60], text[35:95], text[100:160], text[200:260], text[230:290]]
    found = build(*(raw(str(i), "T\n" + part, title="T") for i, part in enumerate(parts)))
    assert places(found) == {
        "0": (0, 60, 2, "stitched"),
        "1": (35, 95, 2, "stitched"),
        "2": (None, None, 2, "absent"),
        "3": (96, 156, 2, "stitched"),
        "4": (126, 186, 2, "stitched"),
    }
    assert found.report["overlapping_pairs"] == found.report["pairs_agree"] == 2


def test_overlapping_neighbours_are_compared() -> None:
    text = "".join(chr(97 + i * i % 26) for i in range(100))
    found = build(raw("a", text[:60], 0, 60), raw("b", text[40:], 40, 100), raw("c", "z" * 40, 80, 120))
    assert (found.report["overlapping_pairs"], found.report["pairs_agree"]) == (2, 1)
    assert found.report["first_disagreeing"] == "chunks 'b' and 'c'"


def test_a_chunk_that_is_its_own_document_is_whole() -> None:
    found = build(raw("7", "T\nbody", doc="7", title="T"), raw("8", "x", doc="8"))
    assert places(found) == {"7": (0, 4, 2, "declared"), "8": (0, 1, 0, "declared")}


def test_empty_chunks_are_left_out_and_counted() -> None:
    found = build(raw("a", " \u200b"), raw("b", "T\n \n ", 0, 3, title="T"), raw("c", "x", 5, 6))
    assert places(found) == {"c": (5, 6, 0, "declared")}
    assert (found.report["empty_chunks"], found.report["first_empty_chunk"]) == (2, "a")
    with pytest.raises(DataError, match=r"chunks.jsonl: no chunk with any text in it \(1 empty\); the corpus is empty"):
        build(raw("a", " \u200b"))
    with pytest.raises(DataError, match=r"no chunk with any text in it \(0 empty\)"):
        build()


def test_documents_that_only_chunks_name_carry_what_all_their_chunks_say() -> None:
    found = build(
        raw("a", "x", 0, 1, title="T", metadata={"tenant": "n", "start": 0}),
        raw("b", "y", 1, 2, metadata={"tenant": "n", "start": 1}),
    )
    assert found.documents.to_pylist() == [
        {"doc_id": "d", "text": None, "title": "T", "url": None, "sha256": None, "metadata": '{"tenant":"n"}'}
    ]


def test_row_order_does_not_matter_where_text_is_unique() -> None:
    chunks = [raw("a", TEXT[:20], 0, 20), raw("b", TEXT[13:47]), raw("c", TEXT[61:], 3, 4), raw("e", TEXT[30:61])]
    forward, backward = build(*chunks, d=TEXT), build(*chunks[::-1], d=TEXT)
    assert forward.chunks.equals(backward.chunks)
    assert forward.documents.equals(backward.documents)


def test_own_chunks_step_by_words_and_stop_at_the_end() -> None:
    # Seven words, four by two: words 0-3, 2-5, 4-6.
    found = build_corpus(documents=documents(d="a bb  c d\ne f gg "), raw_chunks=None, config=OWN)
    assert [
        (row["chunk_id"], row["text"]) for row in sorted(found.chunks.to_pylist(), key=lambda row: row["start"])
    ] == [("d:0-9", "a bb  c d"), ("d:6-13", "c d\ne f"), ("d:10-16", "e f gg")]
    assert found.report["offsets"] == {"verified": 3}


def test_own_chunks_of_whole_sentences() -> None:
    # Sentences of 3, 3, 2 and 6 words, up to 6 words: the first two, then the third alone (2 + 6 > 6), then the fourth.
    text = "One two three. Four five six. Seven eight. Nine ten eleven twelve thirteen fourteen."
    config = ChunkerConfig.model_validate({"words": 6, "unit": "sentences"})
    assert [text[start:end] for start, end in cut_document(text, config)] == [
        "One two three. Four five six.",
        "Seven eight.",
        "Nine ten eleven twelve thirteen fourteen.",
    ]
    # With a step of 3 words the second chunk starts at the second sentence.
    stepped = [text[start:end] for start, end in cut_document(text, ChunkerConfig(words=6, step=3, unit="sentences"))]
    assert stepped[:2] == ["One two three. Four five six.", "Four five six. Seven eight."]


def test_a_chunk_inside_the_one_before_is_left_out() -> None:
    # Sentences of 2, 2 and 5 words, up to 4 words by 2: one word group on, only the second sentence fits, and it lies
    # in the first chunk.
    text = "One two. Three four. Five six seven eight nine."
    config = ChunkerConfig(words=4, step=2, unit="sentences")
    assert [text[slice(*part)] for part in cut_document(text, config)] == [
        "One two. Three four.", "Five six seven eight nine."]


def test_scripts_without_spaces_are_cut_by_pairs_of_characters() -> None:
    assert cut_document("床前明月光", ChunkerConfig.model_validate({"words": 2})) == [(0, 4), (4, 5)]


@settings(max_examples=150, deadline=None)
@given(
    st.text(alphabet="ab .\n床", max_size=80),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["words", "sentences"]),
)
def test_own_chunks_cover_the_text(text: str, words: int, step: int, unit: Any) -> None:
    step = min(step, words)
    chunks = cut_document(text, ChunkerConfig(words=words, step=step, unit=unit))
    held = {at for start, end in chunks for at in range(start, end)}
    assert all(at in held or char.isspace() for at, char in enumerate(text))
    starts, ends = [start for start, _ in chunks], [end for _, end in chunks]
    assert starts == sorted(set(starts))
    assert ends == sorted(set(ends))
    if unit == "words":
        assert all(count_words(text[start:end]) <= words + 1 for start, end in chunks)
