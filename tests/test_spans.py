"""Canonical spans: the rule on cases worked out by hand, and its promises as properties."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.errors import DataError
from goldset.schemas import from_rows
from goldset.spans import canonical_spans, context, is_table_row, main_span, sentences, shared_length
from goldset.spans.fold import Stretch, fold
from goldset.spans.sentences import ink_counts, line_end, line_start
from goldset.text import text_sha256

Range = tuple[int, int]


def prose(*lengths: int) -> str:
    """Sentences of these lengths (at least 3) with one space between, in words of nine letters."""
    return " ".join(
        "W" + "".join(" " if i % 10 == 9 and i < length - 8 else "a" for i in range(length - 3)) + "a."
        for length in lengths
    )


def documents(**texts: str) -> pa.Table:
    return from_rows(
        "documents",
        [
            {"doc_id": doc_id, "text": text, "title": None, "url": None, "sha256": text_sha256(text), "metadata": "{}"}
            for doc_id, text in texts.items()
        ],
    )


def chunk(
    doc_id: str, start: int, end: int, text: str, *, body_start: int = 0, name: str = "", offsets: str = "verified"
) -> dict[str, Any]:
    return {
        "chunk_id": name or f"{doc_id}:{start}-{end}",
        "doc_id": doc_id,
        "start": start,
        "end": end,
        "text": text,
        "body_start": body_start,
        "offsets": offsets,
    }


def chunks_of(doc_id: str, text: str, *ranges: Range) -> list[dict[str, Any]]:
    return [chunk(doc_id, start, end, text[start:end]) for start, end in ranges]


def ranges_of(text: str, *chunks: Range) -> list[Range]:
    """The pieces of a document cut into these chunks."""
    table = canonical_spans(documents=documents(d=text), chunks=from_rows("chunks", chunks_of("d", text, *chunks)))
    return [(row["start"], row["end"]) for row in table.spans.to_pylist()]


# --- sentences ---------------------------------------------------------------------------------------------------


def test_sentences_end_at_marks_line_ends_rows_and_headings() -> None:
    text = "First one. Second one?\r\n# Head. Line\n| a. b | c. D |\nlast"
    assert [text[start:end] for start, end in sentences(text)] == [
        "First one.",
        "Second one?",
        "# Head. Line",
        "| a. b | c. D |",
        "last",
    ]


def test_offsets_count_code_points_of_the_text_as_stored() -> None:
    # An astral character is one code point; "\r\n" stays two; a combining accent is one more than the composed.
    assert sentences("\U0001f4a9 reset the router") == [(0, 18)]
    assert "\U0001f4a9 reset the router"[2:7] == "reset"
    assert sentences("a\r\nb\r\nfee") == [(0, 1), (3, 4), (6, 9)]
    assert "cafe\u0301 hours.".index("hours") == 6
    assert "caf\u00e9 hours.".index("hours") == 5


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    text = "Dr. Smith paid 1.5 million. He left."
    assert [text[start:end] for start, end in sentences(text)] == ["Dr. Smith paid 1.5 million.", "He left."]


def test_a_long_quotation_is_cut_after_its_closing_marks() -> None:
    # sentencex leaves what stands in quotes whole; 40 sentences of 40 code points would be one of 1,640.
    text = "'" + " ".join(prose(40) for _ in range(40)) + "'"
    found = sentences(text)
    assert len(found) == 40
    assert max(end - start for start, end in found) <= 42


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("| a | b |", True),
        ("a\tb", True),
        ("a b", False),
        ("|", False),
        ("1.\tFirst. Second.", False),
        ("-\tpoint", False),
        ("\tindented", False),
    ],
)
def test_table_rows(line: str, expected: bool) -> None:
    assert is_table_row(line) is expected


@given(st.text(alphabet=st.sampled_from("aB. ?!\n\r\t|#\u3002\u00a0\"'\U0001f4a9"), max_size=80))
def test_sentences_are_disjoint_and_hold_every_visible_code_point(text: str) -> None:
    found = sentences(text)
    assert all(low[1] <= high[0] for low, high in itertools.pairwise(found))
    held = {at for start, end in found for at in range(start, end)}
    assert all(at in held or char.isspace() for at, char in enumerate(text))
    assert all(not text[start].isspace() and not text[end - 1].isspace() for start, end in found)


@given(st.text(alphabet="ab \n\u00a0\u3000\u30000\U0001f4a9", max_size=40))
def test_ink_counts_what_is_not_white_space(text: str) -> None:
    assert ink_counts(text).tolist() == [sum(not c.isspace() for c in text[:i]) for i in range(len(text) + 1)]


@given(st.text(alphabet="ab\n\r", max_size=30), st.integers(0, 30))
def test_lines_around_a_position(text: str, at: int) -> None:
    at = min(at, len(text))
    before = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at))
    assert line_start(text, at) == before + 1
    assert line_end(text, at) == min([i for i in range(at, len(text)) if text[i] in "\n\r"], default=len(text))


# --- the rule ----------------------------------------------------------------------------------------------------


def test_disjoint_chunks_are_their_own_spans() -> None:
    assert ranges_of(prose(49, 49), (0, 30), (30, 60), (70, 99)) == [(0, 30), (30, 60), (70, 99)]


def test_an_overlap_is_cut_at_the_sentence_nearest_its_middle() -> None:
    # Sentences [0,83) [84,98) [99,180); overlap [80,100), middle 90: starts at 84 (6 away) and 99 (9 away).
    assert ranges_of(prose(83, 14, 81), (0, 100), (80, 180)) == [(0, 84), (84, 180)]
    # Sentences [0,94) [95,105) [106,180): only 95 lies in the overlap; [95,105) is whole in the second chunk.
    assert ranges_of(prose(94, 10, 74), (0, 100), (80, 180)) == [(0, 95), (95, 180)]


def test_a_sentence_that_no_chunk_holds_is_cut_at_a_word() -> None:
    # Sentences [0,69) [70,120) [121,180): [70,120) is whole in neither. Words of nine letters and a space from 70 on:
    # spaces at 80 ("W" and nine more), 90 ...; nearest position after a space to the middle, 90, is 91.
    text = prose(69, 50, 59)
    assert ranges_of(text, (0, 100), (80, 180)) == [(0, 91), (91, 180)]
    assert text[90] == " "


def test_a_sentence_that_a_folded_chunk_holds_is_not_cut() -> None:
    # As before, but [60,130) holds [70,120): it shares 40 of its 70 with the first chunk and folds; the cut goes to
    # the end of the sentence nearest the middle 90: 70 is 20 away, 120 is 30 away.
    assert ranges_of(prose(69, 50, 59), (0, 100), (80, 180), (60, 130)) == [(0, 70), (70, 180)]


def test_a_folded_chunk_that_bridges_two_anchors_saves_their_sentence() -> None:
    # Sentences [0,89) [90,110) [111,200). [50,150) shares half of itself with [0,100): folds. [100,200) is the next
    # anchor; both break [90,110), which the folded chunk holds: 90 and 110 are equally near, the smaller is taken.
    assert ranges_of(prose(89, 20, 89), (0, 100), (50, 150), (100, 200)) == [(0, 90), (90, 200)]
    # Without the bridge nobody holds the sentence, and the chunks are disjoint: their own spans.
    assert ranges_of(prose(89, 20, 89), (0, 100), (100, 200)) == [(0, 100), (100, 200)]


def test_a_chunk_that_alone_holds_text_is_an_anchor_too() -> None:
    # [40,140) shares 60 of 100 and would fold, but [100,140) is in no other. Sentences [0,69) [70,140); the only
    # start in the overlap [40,100) is 70.
    assert ranges_of(prose(69, 70), (0, 100), (40, 140)) == [(0, 70), (70, 140)]
    # Before the next anchor: [45,145) alone holds [100,110). Sentences [0,59) [60,119) [120,210).
    # Cuts: overlap [45,100) -> 60; overlap [110,145) -> 120.
    assert ranges_of(prose(59, 59, 90), (0, 100), (45, 145), (110, 210)) == [(0, 60), (60, 120), (120, 210)]


def test_parents_that_their_children_tile_are_no_anchors() -> None:
    text = prose(99, 100)
    assert ranges_of(text, (0, 200), (0, 100), (100, 200)) == [(0, 100), (100, 200)]
    # With a hole that only the parent fills, the parent is the span.
    assert ranges_of(text, (0, 200), (0, 90), (100, 200)) == [(0, 200)]
    # White space between the children is no hole: the first ends before the space at 99.
    assert ranges_of(text, (0, 200), (0, 99), (100, 200)) == [(0, 99), (100, 200)]


def test_a_chunk_inside_another_folds() -> None:
    assert ranges_of(prose(99), (0, 99), (89, 99), (0, 30), (40, 50)) == [(0, 99)]


def test_half_of_the_shorter_decides() -> None:
    # Sentences [0,79) [80,99) [100,119). [80,120) shares 20 of its 40 with [0,100): half, it folds, and comes back for
    # [100,119), which it alone holds. [81,121) shares 19: the next anchor at once. Either way one cut, at the only
    # start in the overlap nearest its middle.
    text = prose(79, 19, 21)
    folded = canonical_spans(
        documents=documents(d=text), chunks=from_rows("chunks", chunks_of("d", text, (0, 100), (80, 120)))
    )
    apart = canonical_spans(
        documents=documents(d=text), chunks=from_rows("chunks", chunks_of("d", text, (0, 100), (81, 121)))
    )
    assert (folded.report["pairs_folded"], folded.report["pairs_cut"]) == (1, 0)
    assert (apart.report["pairs_folded"], apart.report["pairs_cut"]) == (0, 1)


def test_windows_of_512_by_200_fold_to_half() -> None:
    # 41 windows of 100 by 40 over 1,700 code points: every second one (0, 80, 160, ...) is an anchor, the last is
    # number 40, even: 21 spans.
    text = prose(*[16] * 100)
    windows = [(start, start + 100) for start in range(0, 1600 + 1, 40)]
    assert len(windows) == 41
    assert len(ranges_of(text[:1700].ljust(1700, "a"), *windows)) == 21


def test_links_say_what_each_covers() -> None:
    # One visible text without spaces: [0,100) "a", chunks [0,60) and [40,100): no sentence start inside, nobody
    # holds the whole, no white space: cut at the middle, 50.
    text = "a" * 100
    found = canonical_spans(
        documents=documents(d=text), chunks=from_rows("chunks", chunks_of("d", text, (0, 60), (40, 100)))
    )
    links = {
        (row["chunk_id"], row["span_id"]): (row["chunk_share"], row["span_share"]) for row in found.links.to_pylist()
    }
    assert links == {
        ("d:0-60", "d#0-50"): (50 / 60, 1.0),
        ("d:0-60", "d#50-100"): (10 / 60, 10 / 50),
        ("d:40-100", "d#0-50"): (10 / 60, 10 / 50),
        ("d:40-100", "d#50-100"): (50 / 60, 1.0),
    }
    assert main_span(found.links) == {"d:0-60": "d#0-50", "d:40-100": "d#50-100"}
    assert found.report["pairs"] == found.report["pairs_cut"] == found.report["cuts"] == 1
    assert found.report["cuts_at_sentence"] == 0


def test_main_span_of_a_tie_is_the_smaller_id() -> None:
    rows = [{"chunk_id": "c", "span_id": span, "chunk_share": 0.5, "span_share": 1.0} for span in ("s2", "s1")]
    assert main_span(from_rows("span_links", rows)) == {"c": "s1"}


def test_twins_form_one_group_under_the_smallest_id() -> None:
    # White space and composition are ignored, case is not.
    texts = {"b": "Caf\u00e9  hours.", "a": "Cafe\u0301 hours.", "c": "caf\u00e9 hours."}
    rows = [chunk(doc_id, 0, len(text), text) for doc_id, text in texts.items()]
    spans = canonical_spans(documents=documents(**texts), chunks=from_rows("chunks", rows))
    groups = {row["doc_id"]: row["twin_group"] for row in spans.spans.to_pylist()}
    assert groups == {"a": "a#0-12", "b": "a#0-12", "c": "c#0-11"}
    assert spans.report["twins"] == 1


def test_chunks_without_document_give_text_from_what_holds_it() -> None:
    text = prose(83, 14, 81)
    rows = [
        chunk("d", 1000, 1100, "Title\n" + text[:100], body_start=6, offsets="declared"),
        chunk("d", 1080, 1180, "Title\n" + text[80:180], body_start=6, offsets="declared"),
    ]
    spans = canonical_spans(documents=documents(other="x"), chunks=from_rows("chunks", rows)).spans.to_pylist()
    assert [(row["span_id"], row["text"]) for row in spans] == [("d#1000-1084", text[:84]), ("d#1084-1180", text[84:])]
    assert {row["offsets"] for row in spans} == {"declared"}
    assert {row["doc_sha256"] for row in spans} == {None}


def test_a_mismatched_chunk_loses_no_text_and_marks_its_spans() -> None:
    # The second chunk declares [80,180) but has 97 code points: three are gone from its middle.
    text = prose(83, 14, 81)
    short = text[80:140] + text[143:180]
    rows = [chunk("d", 0, 100, text[:100], offsets="declared"), chunk("d", 80, 180, short, offsets="mismatched")]
    spans = canonical_spans(documents=documents(other="x"), chunks=from_rows("chunks", rows)).spans.to_pylist()
    # The 20 shared code points fix the cut: 84 is 4 into the second chunk.
    assert [row["text"] for row in spans] == [text[:84], short[4:]]
    assert [row["offsets"] for row in spans] == ["mismatched", "mismatched"]


def test_a_chunk_without_offsets_is_its_own_span() -> None:
    row = {
        **chunk("d", 0, 1, "Title\nsome text", body_start=6, name="c7", offsets="absent"),
        "start": None,
        "end": None,
    }
    found = canonical_spans(documents=documents(d="other"), chunks=from_rows("chunks", [row]))
    span = found.spans.to_pylist()[0]
    assert (span["span_id"], span["text"], span["start"], span["words"]) == ("d#c7", "some text", None, 2)


def test_offsets_beyond_the_document_are_refused() -> None:
    with pytest.raises(DataError, match=r"chunk 'd:0-9' ends at 9, but its document 'd' has 3 code points"):
        canonical_spans(documents=documents(d="abc"), chunks=from_rows("chunks", [chunk("d", 0, 9, "abcdefghi")]))


def test_heading_path_is_that_of_the_first_visible_character() -> None:
    text = "# A\none\n## B\ntwo\n# C\nthree"
    table = documents(d=text)
    headings = '{"_headings":[[0,1,"A"],[8,2,"B"],[17,1,"C"]]}'
    table = table.set_column(table.column_names.index("metadata"), "metadata", pa.array([headings]))
    rows = chunks_of("d", text, (0, 7), (7, 12), (13, 16), (17, 26))
    spans = canonical_spans(documents=table, chunks=from_rows("chunks", rows)).spans.to_pylist()
    assert [row["heading"] for row in spans] == ["A", "A > B", "A > B", "C"]


def test_context_is_one_sentence_either_side() -> None:
    text = "One is here. Two is here.\n\nThree is it. Four is last."
    span = {"doc_id": "d", "start": text.index("Two"), "end": text.index("Three")}
    assert context(span, documents(d=text)) == ("One is here.", "Three is it.")
    assert context(span, {"d": text}) == ("One is here.", "Three is it.")
    assert context({"doc_id": "d", "start": 0, "end": len(text)}, {"d": text}) == ("", "")
    assert context(span, {"d": None}) == context(span, {}) == ("", "")
    assert context({"doc_id": "d", "start": None, "end": None}, {"d": text}) == ("", "")


def test_shared_length_is_the_longest_suffix_that_is_a_prefix() -> None:
    assert shared_length("xxabab", "ababyy", 2) == 4
    assert shared_length("xxab", "ababyy", 3) == 0
    assert shared_length("aaaa", "aa", 1) == 2


# --- promises ----------------------------------------------------------------------------------------------------


@st.composite
def corpora(draw: st.DrawFn) -> tuple[str, list[Range]]:
    lengths = draw(st.lists(st.integers(3, 40), min_size=1, max_size=12))
    joints = draw(st.lists(st.sampled_from([" ", "\n", "\n\n"]), min_size=len(lengths), max_size=len(lengths)))
    text = "".join(prose(length) + joint for length, joint in zip(lengths, joints, strict=True))
    pair = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 90))
    ranges = [(start, min(start + size, len(text))) for start, size in draw(st.lists(pair, min_size=1, max_size=12))]
    return text, [part for part in ranges if text[slice(*part)].strip()] or [(0, len(text))]


@settings(max_examples=400, deadline=None)
@given(corpora(), st.randoms(use_true_random=False))
def test_spans_are_disjoint_cover_all_chunk_text_and_ignore_order(
    corpus: tuple[str, list[Range]], rng: random.Random
) -> None:
    text, chunks = corpus
    pieces = fold(chunks, Stretch(text, 0)).pieces
    assert all(low < high for low, high in pieces)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(pieces))
    held = {at for low, high in pieces for at in range(low, high)}
    chunked = {at for low, high in chunks for at in range(low, high)}
    assert all(at in held for at in chunked if not text[at].isspace())
    assert all(at in chunked for at in held if not text[at].isspace())
    assert len(pieces) <= len(set(chunks))
    shuffled = list(chunks)
    rng.shuffle(shuffled)
    assert fold(shuffled + chunks[:1], Stretch(text, 0)).pieces == pieces


@settings(max_examples=400, deadline=None)
@given(corpora())
def test_no_span_ends_inside_a_sentence_that_a_chunk_holds_whole(corpus: tuple[str, list[Range]]) -> None:
    text, chunks = corpus
    edges = {at for piece in fold(chunks, Stretch(text, 0)).pieces for at in piece}
    for start, end in sentences(text):
        if any(start < at < end for at in edges):
            assert not any(low <= start and end <= high for low, high in chunks)


@settings(max_examples=200, deadline=None)
@given(corpora(), corpora())
def test_spans_of_a_document_do_not_depend_on_others(
    left: tuple[str, list[Range]], right: tuple[str, list[Range]]
) -> None:
    rows = {
        name: [chunk(name, *part, text[slice(*part)]) for part in sorted(set(parts))]
        for name, (text, parts) in (("a", left), ("b", right))
    }
    both = canonical_spans(
        documents=documents(a=left[0], b=right[0]), chunks=from_rows("chunks", rows["b"] + rows["a"])
    )
    alone = canonical_spans(documents=documents(a=left[0]), chunks=from_rows("chunks", rows["a"]))
    mine = [row for row in both.spans.drop_columns(["twin_group"]).to_pylist() if row["doc_id"] == "a"]
    assert mine == alone.spans.drop_columns(["twin_group"]).to_pylist()
    shares: dict[str, float] = {}
    for row in both.links.to_pylist():
        shares[row["chunk_id"]] = shares.get(row["chunk_id"], 0.0) + row["chunk_share"]
    assert shares == pytest.approx({row["chunk_id"]: 1.0 for row in rows["a"] + rows["b"]})


@settings(max_examples=200, deadline=None)
@given(corpora())
def test_text_from_chunks_equals_text_from_the_document(corpus: tuple[str, list[Range]]) -> None:
    text, parts = corpus
    rows = [chunk("d", *part, text[slice(*part)]) for part in sorted(set(parts))]
    for row in canonical_spans(documents=documents(x="y"), chunks=from_rows("chunks", rows)).spans.to_pylist():
        assert row["text"] == text[row["start"] : row["end"]]
