"""Pair and rubric -> the messages of one call. One pair a call, so that no passage is judged beside another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from goldset.judges import normalise
from goldset.judges.base import Pair
from goldset.judges.rubric import Rubric, parse_rubric
from goldset.text import content_hash

Message = dict[str, str]

_PART = re.compile(r"^# (\w+)$", re.MULTILINE)
_SLOT = re.compile(r"\{(" + "|".join(normalise.SLOTS) + r")\}")


@dataclass(frozen=True)
class Prompt:
    """The prompt file: a template for the system message, one for the user message, and the stricter second try."""

    version: str
    system: str
    user: str
    retry: str
    hash: str

    def messages(self, pair: Pair, rubric: Rubric, *, attempt: int) -> list[Message]:
        """The messages for a pair; from the second attempt on with the stricter closing."""
        slots = {
            "rubric": rubric.text,
            "conversation": _block("conversation", "\n".join(
                f"{normalise.one_line(role)}: {normalise.one_line(text)}" for role, text in pair.turns)),
            "question": normalise.normalise(pair.question),
            "need": _block("need", normalise.one_line(pair.need or "")),
            "heading": _block("heading", normalise.one_line(pair.heading or "")),
            "before": _block("context_before", normalise.normalise(pair.before)),
            "passage": normalise.normalise(pair.passage),
            "after": _block("context_after", normalise.normalise(pair.after)),
        }
        user = _fill(self.user, slots)
        if attempt > 1:
            user = f"{user}\n\n{self.retry}"
        return [{"role": "system", "content": _fill(self.system, slots)}, {"role": "user", "content": user}]


def load_prompt() -> Prompt:
    """The prompt of the package."""
    raw = resources.files("goldset.judges").joinpath("prompts/relevance.md").read_text(encoding="utf-8")
    return parse_prompt(raw)


def parse_prompt(raw: str) -> Prompt:
    """Text of a prompt file (version line, then the parts system, user and retry) -> Prompt."""
    whole = parse_rubric(raw, "the prompt file")
    pieces = _PART.split(whole.text)
    parts = {name: text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    assert set(parts) == {"system", "user", "retry"}, sorted(parts)
    return Prompt(whole.version, parts["system"], parts["user"], parts["retry"], content_hash("prompt", whole.hash))


def prompt_hash(prompt: Prompt, rubric: Rubric) -> str:
    """Hash of the prompt and rubric files: the column ``prompt_hash``."""
    return content_hash(prompt.hash, rubric.hash)


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>\n" if text else ""


def _fill(template: str, slots: dict[str, str]) -> str:
    # One pass: what a slot brings in is never looked at again for slots.
    return _SLOT.sub(lambda match: slots[match[1]], template)
