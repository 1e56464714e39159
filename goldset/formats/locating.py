"""Gold given as text -> the passages of a corpus that hold it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from goldset.text import quote_key

_END = "\x00"
_LEAD = 6  # words of a passage's beginning by which it is found inside a longer gold text
_COVERED = 0.8
_BETWEEN = " .:;,|#*-"  # what may stand between a title and its text; quote_key has one dash


@dataclass(frozen=True)
class Located:
    """Passages that hold a text (none: it is not there), and in how many places it stands."""

    ids: tuple[str, ...]
    places: int


class Locator:
    """Finds texts in a corpus; case, width, white space, kinds of quotes and dashes do not matter (quote_key)."""

    def __init__(self, passages: Mapping[str, str], titles: Mapping[str, str] | None = None) -> None:
        """Passages by id, in corpus order; a gold text may begin with the ``titles`` that stand before some."""
        self._ids = list(passages)
        keys = [quote_key(text) for text in passages.values()]
        self._keys = keys
        self._equal: dict[str, list[int]] = {}
        for place, key in enumerate(keys):
            self._equal.setdefault(key, []).append(place)
        self._titles = [quote_key((titles or {}).get(name) or "") for name in self._ids]
        for place, title in enumerate(self._titles):
            if title:
                self._equal.setdefault(f"{title} {keys[place]}", []).append(place)
        self._text = _END.join(keys)
        self._starts = [0]
        for key in keys:
            self._starts.append(self._starts[-1] + len(key) + 1)
        self._lead: dict[str, list[int]] = {}
        for place, key in enumerate(keys):
            head = " ".join(key.split(" ", _LEAD)[:_LEAD])
            if head.count(" ") == _LEAD - 1:
                self._lead.setdefault(head, []).append(place)

    def find(self, text: str) -> Located:
        """The passage equal to the text; else the first that holds it whole; else the passages it is made of."""
        key = quote_key(text)
        if not key:
            return Located((), 0)
        if key in self._equal:
            places = self._equal[key]
            return Located((self._ids[places[0]],), len(places))
        found = self._holding(key)
        if found:
            return Located((self._ids[found[0]],), len(found))
        return self._made_of(key)

    def _holding(self, key: str) -> list[int]:
        found: list[int] = []
        at = self._text.find(key)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            found.append(place)
            at = self._text.find(key, self._starts[place + 1]) if place + 1 < len(self._starts) else -1
        return found

    def _made_of(self, key: str) -> Located:
        """Passages that stand whole inside the text and cover most of it."""
        words = [match.start() for match in re.finditer(r"\S+", key)]
        found: dict[int, tuple[int, int]] = {}
        for i, start in enumerate(words[: len(words) - _LEAD + 1]):
            end = words[i + _LEAD] - 1 if i + _LEAD < len(words) else len(key)
            for place in self._lead.get(key[start:end], ()):
                if key.startswith(self._keys[place], start):
                    found.setdefault(place, (self._with_title(key, start, place), start + len(self._keys[place])))
        return self._enough(key, found)

    def _with_title(self, key: str, start: int, place: int) -> int:
        """Where a passage that begins at ``start`` begins with its title, whatever sign stands between the two."""
        title, before = self._titles[place].rstrip(_BETWEEN), key[:start].rstrip(_BETWEEN)
        return len(before) - len(title) if title and before.endswith(title) else start

    def _enough(self, key: str, found: dict[int, tuple[int, int]]) -> Located:
        covered, reach = 0, 0
        for start, end in sorted(found.values()):
            covered += max(0, end - max(start, reach))
            reach = max(reach, end)
        if covered < _COVERED * len(key):
            return Located((), 0)
        return Located(tuple(self._ids[place] for place in found), 1)
