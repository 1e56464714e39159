"""Reading documents and chunks: fields, folders, markup, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.config import ChunkSource, DocumentSource
from goldset.errors import DataError
from goldset.formats.corpora import read_chunks, read_documents
from goldset.formats.markup import html, markdown
from goldset.schemas import HEADINGS
from goldset.text import text_sha256


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def document_source(**fields: Any) -> DocumentSource:
    return DocumentSource(path=Path("documents.jsonl"), **fields)


def chunk_source(**fields: Any) -> ChunkSource:
    return ChunkSource(path=Path("chunks.jsonl"), **fields)


def test_documents_from_lines_with_dotted_fields(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "d.jsonl",
        {"meta": {"id": 7, "title": "T"}, "body": "a\r\nb", "extra": {"tenant": "x"}},
        {"meta": {"id": "07"}, "body": "\u200b \n"},
    )
    table, report = read_documents(
        document_source(id="meta.id", text="body", title="meta.title", metadata="extra"), path
    )
    assert table.to_pylist() == [
        {
            "doc_id": "7",
            "text": "a\r\nb",
            "title": "T",
            "url": None,
            "sha256": text_sha256("a\r\nb"),
            "metadata": '{"tenant":"x"}',
        }
    ]
    assert report == {"documents": 1, "empty_documents": 1, "first_empty_document": "07"}


def test_half_a_surrogate_pair_becomes_one_replacement_character(tmp_path: Path) -> None:
    # Written by tools that cut a text between the halves of an emoji; a whole pair stays one code point.
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"doc_id": "a", "text": "cut \\ud83d here, \\ud83d\\ude00 whole", "title": "\\uDE00"}\n')
    row = read_documents(document_source(), path)[0].to_pylist()[0]
    assert (row["text"], row["title"]) == ("cut \ufffd here, \U0001f600 whole", "\ufffd")


def test_documents_from_gzip_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"doc_id": "a", "text": "x"}\n'))
    assert read_documents(document_source(), path)[0].column("doc_id").to_pylist() == ["a"]


def test_documents_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("hidden")
    (tmp_path / "sub" / "b.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (tmp_path / "a.md").write_text("# Title\n\ntext\n## Part\nmore")
    (tmp_path / "c.HTML").write_text("<title>Page</title><p>x &amp; y</p>")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    table, report = read_documents(document_source(), tmp_path)
    rows = {row["doc_id"]: row for row in table.to_pylist()}
    assert list(rows) == ["a.md", "c.HTML", "sub/b.txt"]
    assert rows["sub/b.txt"]["text"] == "one\r\ntwo"
    assert (rows["a.md"]["title"], rows["c.HTML"]["title"]) == ("Title", "Page")
    assert json.loads(rows["a.md"]["metadata"]) == {HEADINGS: [[0, 1, "Title"], [14, 2, "Part"]]}
    assert rows["c.HTML"]["text"].strip() == "x & y"
    assert (report["documents"], report["empty_documents"], report["other_files"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"doc_id": "a", "text": "x"}, {"doc_id": "a", "text": "y"}], r"lines 1 and 2: the id 'a' stands twice"),
        (
            [{"id": "a", "text": "x"}],
            r"line 1: no id in the field 'doc_id' \(a text or a whole number\); allowed: id, text",
        ),
        ([{"doc_id": "a", "txt": "x"}], r"line 1: no text in the field 'text'; did you mean 'txt'\?"),
        ([{"doc_id": "a", "text": 5}], r"line 1: the field 'text' is 5, where text was expected"),
        ([{"doc_id": "a", "text": " "}], r"no document with any text in it \(1 empty\)"),
        ([], r"no document with any text in it \(0 empty\)"),
        ([[1]], r"line 1: list where an object was expected"),
    ],
)
def test_documents_that_are_refused(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(document_source(), lines(tmp_path / "d.jsonl", *rows))


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_documents(document_source(), tmp_path / "none.jsonl")
    (tmp_path / "a.txt").write_bytes(b"ab\xffcd")
    with pytest.raises(DataError, match=r"a\.txt: not UTF-8 \(invalid start byte at byte 2\)"):
        read_documents(document_source(), tmp_path)


def test_chunks_with_dotted_offsets(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "c.jsonl",
        {"_id": "c1", "title": "T", "text": "T\nab", "metadata": {"document": "d", "start": 3, "end": 5}},
        {"_id": "c2", "text": None, "metadata": {"document": "d"}},
    )
    chunks, report = read_chunks(
        chunk_source(id="_id", doc_id="metadata.document", start="metadata.start", end="metadata.end"), path
    )
    assert [(c.line, c.chunk_id, c.doc_id, c.title, c.start, c.end, c.text) for c in chunks] == [
        (1, "c1", "d", "T", 3, 5, "T\nab"),
        (2, "c2", "d", None, None, None, ""),
    ]
    assert report == {"lines": 2, "own_documents": 0}


def test_chunks_without_any_document_are_their_own(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"chunk_id": 1, "text": "a"}, {"chunk_id": 2, "text": "b"})
    chunks, report = read_chunks(chunk_source(), path)
    assert [c.doc_id for c in chunks] == ["1", "2"]
    assert report["own_documents"] == 2


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        ([{"chunk_id": "a", "text": "x"}], {"doc_id": "doc"}, r"line 1: no document id in the field 'doc'"),
        (
            [{"chunk_id": "a", "text": "x", "doc_id": "d"}, {"chunk_id": "b", "text": "x"}],
            {},
            r"line 2: no document id",
        ),
        (
            [{"chunk_id": "b", "text": "x"}, {"chunk_id": "a", "text": "x", "doc_id": "d"}],
            {},
            r"line 1: no document id in the field 'doc_id', which line 2 has",
        ),
        (
            [{"chunk_id": "a", "doc_id": "d", "text": "x", "start": 5, "end": 4}],
            {},
            r"line 1: offsets start = 5, end = 4",
        ),
        (
            [{"chunk_id": "a", "doc_id": "d", "text": "x", "start": 5, "end": 5}],
            {},
            r"line 1: offsets start = 5, end = 5",
        ),
        ([{"chunk_id": "a", "doc_id": "d", "text": "x", "start": "1", "end": 5}], {}, r"whole numbers with 0 <= start"),
        ([{"chunk_id": "a", "doc_id": "d", "text": "x", "start": 1}], {}, r"start = 1, end = None"),
        ([{"chunk_id": "a", "doc_id": "d", "text": "x"}] * 2, {}, r"lines 1 and 2: the id 'a' stands twice"),
    ],
)
def test_chunks_that_are_refused(tmp_path: Path, rows: list[Any], fields: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_chunks(chunk_source(**fields), lines(tmp_path / "c.jsonl", *rows))


def test_markdown_headings_outside_code() -> None:
    text = "intro\n# One #\n```\n# not\n```\nTwo\n---\n~~~\n---\n~~~\n\n---\n#hashtag\n### Deep"
    marked = markdown(text)
    assert marked.text == text
    assert [(level, title) for _, level, title in marked.headings] == [(1, "One"), (2, "Two"), (3, "Deep")]
    assert [text[at:].split("\n")[0] for at, _, _ in marked.headings] == ["# One #", "Two", "### Deep"]
    assert marked.title == "One"


def test_html_becomes_lines_rows_and_headings() -> None:
    marked = html(
        "<html><head><title> My  page </title><style>p {x}</style></head><body><h1>A &amp; <b>B</b></h1>"
        "<p>one\n  two<br>three</p><script>var x = '<p>';</script><h2>C</h2>"
        "<table><tr><th>k</th><td>v</td></tr><tr><td>1</td><td>2</td></tr></table><pre>a\n  b</pre></body>"
    )
    assert marked.text == "A & B\none two\nthree\nC\nk\tv\n1\t2\na\n  b\n"
    assert marked.title == "My page"
    assert marked.headings == [(0, 1, "A & B"), (20, 2, "C")]
    assert marked.text[20:21] == "C"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["h1", "h2", "p", "div", "li", "td"]), st.text(alphabet="ab \n\t&<\U0001f4a9", max_size=12)
        ),
        max_size=8,
    )
)
def test_html_headings_stand_where_they_say(parts: list[tuple[str, str]]) -> None:
    from html import escape

    marked = html("".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in parts))
    visible = "".join("".join(text.split()) for _, text in parts)
    assert "".join(marked.text.split()) == visible
    for at, _, title in marked.headings:
        assert marked.text[at:].startswith(title)
