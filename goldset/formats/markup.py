"""Markup -> the text that is stored, and its headings with their positions in that text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """
    address article aside blockquote body br dd details dialog div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody tfoot thead tr ul
""",
    )
)
_SILENT = frozenset(("script", "style", "template", "noscript"))
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_LINES = re.compile(r"[^\n]*\n?")


@dataclass
class Marked:
    """Stored text, its title if the markup has one, and headings as (position, level, title)."""

    text: str
    title: str | None = None
    headings: list[tuple[int, int, str]] = field(default_factory=list)


def markdown(text: str) -> Marked:
    """Markdown text -> the same text with its headings; code blocks have none. Title = the first level-1 heading."""
    found: list[tuple[int, int, str]] = []
    fence: str | None = None
    at, before = 0, ""
    for match in _LINES.finditer(text):
        line = match.group().rstrip("\r\n")
        opened = _FENCE.match(line)
        if fence is not None:
            if opened and opened.group(1).startswith(fence) and not line.strip(" `~"):
                fence = None
        elif opened:
            fence = opened.group(1)
        elif atx := _ATX.match(line):
            found.append((match.start(), len(atx.group(1)), (atx.group(2) or "").strip()))
        elif before.strip() and re.fullmatch(r" {0,3}(=+|-+)[ \t]*", line) and not _ATX.match(before):
            found.append((at, 1 if "=" in line else 2, before.strip()))
        at, before = match.start(), line if fence is None and not opened else ""
    title = next((title for _, level, title in found if level == 1 and title), None)
    return Marked(text, title, [heading for heading in found if heading[2]])


class _Stripper(HTMLParser):
    """Collects visible text: blocks on lines of their own, the cells of a table row on one line, tabs between."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.length = 0
        self.title: list[str] = []
        self.headings: list[tuple[int, int, str]] = []
        self._silent = 0
        self._in_title = False
        self._pre = 0
        self._heading: tuple[int, int] | None = None  # (number of parts before it, level)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "title":
            self._in_title = True
        elif tag in ("td", "th"):
            if self.parts and not self.parts[-1].endswith(("\n", "\t")):
                self._add("\t")
        elif tag in _BLOCKS:
            self._break()
            self._pre += tag == "pre"
            if re.fullmatch("h[1-6]", tag):
                self._heading = (len(self.parts), int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "title":
            self._in_title = False
        elif tag in _BLOCKS:
            if self._heading and tag == f"h{self._heading[1]}":
                first, level = self._heading
                title = "".join(self.parts[first:]).strip()
                if title:
                    self.headings.append((self.length - sum(map(len, self.parts[first:])), level, title))
                self._heading = None
            self._break()
            self._pre -= tag == "pre" and self._pre > 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._silent:
            if not self._pre:
                data = re.sub(r"\s+", " ", data)
                if not self.parts or self.parts[-1].endswith((" ", "\n", "\t")):
                    data = data.lstrip()
            self._add(data)

    def _break(self) -> None:
        while self.parts and not self.parts[-1].strip(" \t"):
            self.length -= len(self.parts.pop())
        if self.parts and not self.parts[-1].endswith("\n"):
            stripped = self.parts[-1].rstrip(" \t")
            self.length -= len(self.parts[-1]) - len(stripped)
            self.parts[-1] = stripped
            self._add("\n")

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)


def html(text: str) -> Marked:
    """HTML -> its visible text (entities resolved, scripts and styles gone), headings with positions in that text."""
    stripper = _Stripper()
    stripper.feed(text)
    stripper.close()
    title = " ".join("".join(stripper.title).split())
    return Marked("".join(stripper.parts), title or None, stripper.headings)


def plain(text: str) -> Marked:
    """Text as it is."""
    return Marked(text)


READERS = {"text": plain, "markdown": markdown, "html": html}
SUFFIXES = {".txt": plain, ".md": markdown, ".markdown": markdown, ".html": html, ".htm": html}
