"""Versioned text files: the rubric that people and judges share, and the prompt that carries it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from goldset.errors import ConfigError
from goldset.text import content_hash

_VERSION = re.compile(r"version:\s*(\S+)\s*", re.IGNORECASE)
_NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass(frozen=True)
class Rubric:
    """What counts as relevant.

    Attributes:
        version: ``major.minor``. Labels carry over a minor change, not a major one.
        text: the file without its version line.
        hash: content hash of version and text.
    """

    version: str
    text: str
    hash: str

    @property
    def major(self) -> int:
        """The number before the dot."""
        return int(self.version.split(".")[0])


def load_rubric(path: Path) -> Rubric:
    """Read a Markdown file whose first line is ``version: major.minor``.

    Raises:
        ConfigError: no such file, not UTF-8, no version line, or nothing after it; names the file.
    """
    try:
        raw = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such rubric; set [judge] rubric to a Markdown file that starts with "
                          "'version: 1.0'") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the rubric cannot be read as UTF-8 text ({error})") from error
    return parse_rubric(raw, str(path))


def parse_rubric(raw: str, where: str) -> Rubric:
    """Text of a rubric file -> Rubric; line ends and outer blank lines do not count."""
    first, _, rest = raw.replace("\r\n", "\n").lstrip().partition("\n")
    match = _VERSION.fullmatch(first)
    if not match or not _NUMBER.fullmatch(match[1]):
        raise ConfigError(f"{where}, line 1: '{first[:60]}' where the version was expected, "
                          "major.minor, e.g. 'version: 1.0'")
    text = rest.strip()
    if not text:
        raise ConfigError(f"{where}: the rubric has a version but no text; say what counts as relevant")
    return Rubric(match[1], text, content_hash("rubric", match[1], text))
