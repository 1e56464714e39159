"""Ways to spoil a file of a project."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

from tests.pipeline import golden

Spoil = Callable[[Path], None]

CUT = gzip.compress(("\n".join(golden.run_lines(golden.PRODUCTION)) + "\n").encode())[:-12]  # a damaged run


def edit(file: str, old: str, new: str) -> Spoil:
    """Replace a piece of text, which must be there."""
    def spoil(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def write(file: str, content: str | bytes) -> Spoil:
    """Write something else."""
    def spoil(folder: Path) -> None:
        (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def append(file: str, line: str) -> Spoil:
    """Add a line."""
    def spoil(folder: Path) -> None:
        with (folder / file).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    return spoil


def remove(file: str) -> Spoil:
    """Take the file away."""
    return lambda folder: (folder / file).unlink()


def lines(file: str, change: Callable[[str], str]) -> Spoil:
    """Change every line."""
    def spoil(folder: Path) -> None:
        lines = (folder / file).read_text(encoding="utf-8").splitlines()
        (folder / file).write_text("".join(change(line) + "\n" for line in lines), encoding="utf-8")

    return spoil


def recode(file: str, encoding: str) -> Spoil:
    """Write the text in another encoding."""
    def spoil(folder: Path) -> None:
        (folder / file).write_bytes((folder / file).read_text(encoding="utf-8").encode(encoding))

    return spoil
