"""Untrusted text -> text that cannot leave its place in the prompt.

Questions and passages come from strangers. What could close our tags, pose as a chat turn, fill a slot of the
template or hide from a reader is taken out here, in code; the prompt does not have to ask for it. Marks are replaced,
not deleted, so that no new mark can be put together from the pieces, and the words stay.
"""

from __future__ import annotations

import re
import unicodedata

VERSION = "normalise/1"

TAGS = ("question", "passage", "context_before", "context_after", "heading", "need", "conversation", "rubric")
SLOTS = ("rubric", "conversation", "question", "need", "heading", "before", "passage", "after")

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\u0085\x0b\x0c]")
_HIDDEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Markers that a generated answer leaves behind: 【4†source】, [^2], and [12] or [3, 4] straight after punctuation.
# A number in brackets anywhere else may be a value (a[0], "in [1, 2]") and stays.
_CITATION = re.compile(r"【[^【】\n]{0,40}】|\[\^\d{1,3}\]|(?<=[.,;!?”’])(?:\[\d{1,3}(?:\s?[,–-]\s?\d{1,3})*\])+")
_TAG = re.compile(rf"[<＜](?=\s*[/／]?\s*(?:{'|'.join(TAGS)}|system|user|assistant|s)\b)", re.IGNORECASE)
_CHAT_TOKEN = re.compile(r"[<＜](?=[|｜])|(?<=[|｜])[>＞]|<<(?=/?SYS)|\[(?=/?INST\])")
_SLOT = re.compile(rf"\{{(?=(?:{'|'.join(SLOTS)})\}})")


def normalise(text: str) -> str:
    """Text -> the form in which it enters a prompt; applying it twice changes nothing more."""
    previous = None
    while text != previous:
        previous, text = text, _pass(text)
    return text


def _pass(text: str) -> str:
    text = _LINE_ENDS.sub("\n", unicodedata.normalize("NFC", text))
    text = _CONTROL.sub(" ", _HIDDEN.sub("", text))
    text = _CITATION.sub("", text)
    # White space inside stays: it is the shape of tables and code.
    return _SLOT.sub("‹", _CHAT_TOKEN.sub("‹", _TAG.sub("‹", text))).strip()


def one_line(text: str) -> str:
    """The normal form on one line: headings, needs, turns."""
    return " ".join(normalise(text).split())
