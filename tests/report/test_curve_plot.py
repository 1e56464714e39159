"""Recall against k: the plot for a page and for a file, its words, its table."""

from __future__ import annotations

import re
import struct
import zlib
from xml.etree import ElementTree

import pytest

from goldset.report.curve import Curves, Line

SVG = "{http://www.w3.org/2000/svg}"


def line(label: str, values: list[float], *, n: int = 40, band: bool = True) -> Line:
    return Line(label, range(1, len(values) + 1), values, [value - 0.1 if band else None for value in values],
                [value + 0.1 if band else None for value in values], n)


CURVES = Curves("a <set>", [line("one", [0.2, 0.4, 0.5, 0.6]), line("two & more", [0.3, 0.3, 0.35], n=38)],
                {"served": 2, "evaluated": 4})


def test_words_say_every_system_at_the_marked_cutoffs_and_at_the_end() -> None:
    assert CURVES.words() == (
        "Recall against k with its 95 % band, a <set>: 38 / 40 questions with gold. "
        "At 2, served: one 0.400 (0.300 to 0.500); two & more 0.300 (0.200 to 0.400). "
        "At 4, evaluated: one 0.600 (0.500 to 0.700); two & more not measured.")
    alone = Curves("s", [line("one", [0.2, 0.4], band=False)], {})
    assert alone.words().endswith("At 2, the end of the longest list: one 0.400.")
    both = Curves("s", [line("one", [0.2, 0.4])], {"served": 1, "evaluated": 1})
    assert "At 1, served and evaluated: one 0.200 (0.100 to 0.300)." in both.words()


def test_table_has_a_row_a_k_and_a_column_a_system() -> None:
    head, rows = CURVES.table([1, 2, 4])
    assert head == ["k", "one", "two & more"]
    assert [row[0] for row in rows] == ["1", "2 (served)", "4 (evaluated)"]
    assert rows[2][1:] == ["0.600 (0.500 to 0.700)", "not measured"]


def test_svg_file_tells_its_words_to_a_screen_reader() -> None:
    text = CURVES.file("svg")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert [root[0].tag, root[1].tag] == [f"{SVG}title", f"{SVG}desc"]
    assert (root[0].text, root[1].text) == (CURVES.heading, CURVES.words())
    shown = {part.text for part in root.iter(f"{SVG}text")}
    assert {"served: 2", "evaluated: 4", "one", "two & more", CURVES.heading} <= shown
    assert CURVES.file("svg") == text


def test_png_file_carries_its_words() -> None:
    data = CURVES.file("png")
    assert data.startswith(b"\x89PNG")
    told, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        if kind in (b"tEXt", b"iTXt"):
            name, _, rest = body.partition(b"\0")
            told[name.decode()] = rest.lstrip(b"\0").decode("utf-8")
        at += 12 + length
    assert told["Description"] == CURVES.words()
    assert "Software" not in told


def test_inline_plot_has_the_colours_of_the_page_and_its_own_ids() -> None:
    svg = CURVES.inline("c")
    assert svg.startswith('<svg aria-hidden="true"')
    assert re.findall(r"#[0-9a-f]{6}", svg) == []
    assert all(f"var(--curve-{place})" in svg for place in (1, 2))
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("c-") for name in ids)


@pytest.mark.parametrize("count", [1, 7, 13])
def test_every_system_looks_different(count: int) -> None:
    # Six colours with six dashes: the seventh system has the first colour again, and another dash.
    svg = Curves("s", [line(f"s{place}", [0.1, 0.2, 0.3]) for place in range(count)], {}).inline("c")
    drawn = re.findall(r'style="fill: none;( stroke-dasharray: [^;]*; stroke-dashoffset: [^;]*;)? '
                       r'stroke: (var\(--curve-\d\)); stroke-width: 1\.8', svg)
    assert len(set(drawn)) == count


def test_one_point_and_no_band_make_a_plot() -> None:
    assert b"<svg" in Curves("s", [line("one", [1.0], band=False)], {"served": 1}).file("svg")
