"""The judge kind ``rule``: exact values, such as error codes, part numbers and dates.

An encoder takes E1042 and E1043 for the same thing, and so do many models. Here a value is the same or it is not; where
question or passage names none, nothing is said and people read the pair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from goldset.judges.base import Desk, Pair
from goldset.judges.rubric import Rubric
from goldset.judges.verdict import Verdict
from goldset.spans import sentences
from goldset.text import canonical_json, content_hash, quote_key, standing_alone

VERSION = "values/1"

Values = dict[str, frozenset[str]]


class ValueJudge:
    """Relevant where question and passage name the same value, not relevant where they name different ones.

    Patterns are regular expressions by kind of value, several a kind where a value is written in several ways. They are
    looked for in the text's quote_key: case, width, white space and kinds of dashes do not count. A match must stand
    alone (no letter or digit touches it). The value is what the groups of the pattern hold, named ones by name, so that
    two ways to write a date give one value; without groups it is the whole match.

    * Only the kinds count of which the question (its need and earlier turns included) has a value.
    * The same value of a kind in the passage or its heading, and no kind that differs: relevant.
    * Another value of a kind, and no kind that agrees: not relevant, unless a neighbouring sentence has the right one.
    * Anything else is declined: no value, or one kind agrees and another differs.
    """

    kind = "rule"
    declared_weak = True  # the right part number does not make an answer

    def __init__(self, patterns: Mapping[str, Sequence[str]], family: str, rubric: Rubric) -> None:
        self.family = family
        self.rubric = rubric
        self._patterns = {kind: [standing_alone(text) for text in texts] for kind, texts in sorted(patterns.items())}
        self._sources = {kind: list(texts) for kind, texts in sorted(patterns.items())}
        self._identity = content_hash(self.kind, VERSION, self._sources, rubric.hash)
        self.judge_id = f"{self.kind}:{self._identity[:12]}"

    def card_info(self) -> dict[str, Any]:
        """The patterns it goes by."""
        return {"kind": self.kind, "judge_id": self.judge_id, "family": self.family,
                "declared_weak": self.declared_weak, "patterns": self._sources, "version": VERSION,
                "rubric_version": self.rubric.version, "rubric_hash": self.rubric.hash}

    def fingerprint(self, pair: Pair) -> str:
        """Hash of the patterns and of everything they are looked for in."""
        return content_hash(self._identity, _asked(pair), pair.passage, pair.heading, pair.before, pair.after)

    def judge(self, pairs: Sequence[Pair], desk: Desk) -> list[Verdict]:
        """Pairs -> verdicts. Looking is quicker than looking up: the store gets no copy, no call is counted."""
        verdicts = [self._verdict(pair) for pair in pairs]
        desk.done(len(pairs))
        return verdicts

    def _verdict(self, pair: Pair) -> Verdict:
        asked, read = self.values(*_asked(pair)), self.values(pair.heading or "", pair.passage)
        near = self.values(pair.before, pair.after)
        relevant = decide(asked, read, near)
        return Verdict(
            question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=1, attempt=1,
            status="declined" if relevant is None else "ok", relevant=relevant,
            quote=self._sentence(pair.passage, asked) if relevant else None,
            raw=canonical_json({"question": _shown(asked), "passage": _shown(read)}),
            cache_key=self.fingerprint(pair), prompt_hash=self.rubric.hash)

    def values(self, *texts: str) -> Values:
        """Kind -> values in any of the texts; kinds without one are left out."""
        found: dict[str, set[str]] = {}
        for text in map(quote_key, texts):
            for kind, patterns in self._patterns.items():
                for pattern in patterns:
                    found.setdefault(kind, set()).update(map(_value, pattern.finditer(text)))
        return {kind: frozenset(values) for kind, values in found.items() if values}

    def _sentence(self, passage: str, asked: Values) -> str | None:
        """The first sentence with a value of the question; None where only the heading has it."""
        for low, high in sentences(passage):
            mine = self.values(passage[low:high])
            if any(mine.get(kind, frozenset()) & values for kind, values in asked.items()):
                return passage[low:high]
        return None


def decide(asked: Values, read: Values, near: Values) -> bool | None:
    """Values of the question, of the passage, and of its neighbours -> relevant, not relevant, or None: declined."""
    shared = {kind: bool(values & read[kind]) for kind, values in asked.items() if kind in read}
    if not shared or len(set(shared.values())) > 1:
        return None
    if all(shared.values()):
        return True
    return None if any(values & near.get(kind, frozenset()) for kind, values in asked.items()) else False


def _asked(pair: Pair) -> list[str]:
    return [pair.question, pair.need or "", *(text for _, text in pair.turns)]


def _value(match: re.Match[str]) -> str:
    named = match.groupdict()
    parts = [named[name] for name in sorted(named)] if named else list(match.groups()) or [match[0]]
    return " ".join(part for part in parts if part) or match[0]


def _shown(values: Values) -> dict[str, list[str]]:
    return {kind: sorted(found) for kind, found in values.items()}
