"""Verdicts -> queue -> people's labels -> decisions: waves, page, database, files, recorded assessors."""

from .asking import answered_before, ask, pairs_asked
from .carry import (
    carried_labels,
    divided_rows,
    followed_label,
    fresh_checks,
    known_before,
    layer_decisions,
    newest_first,
    second_pairs,
)
from .database import AnsweredElsewhere, Assignment, ReviewStore
from .desk import layer_of
from .files import export_items, import_answers, read_answers
from .history import standing
from .passages import Passage, Passages
from .queue import drawn_strata, first_wave
from .replay import replay
from .reread import reread
from .resolve import paired_labels, resolve, status
from .server import create_app, read_tokens, serve
from .service import ReviewService
from .waves import is_closed, next_wave

__all__ = [
    "AnsweredElsewhere", "Assignment", "Passage", "Passages", "ReviewService", "ReviewStore", "answered_before",
    "ask", "carried_labels", "create_app", "divided_rows", "drawn_strata", "export_items", "first_wave",
    "followed_label", "fresh_checks", "import_answers", "is_closed", "known_before", "layer_decisions", "layer_of",
    "newest_first", "next_wave", "paired_labels", "pairs_asked", "read_answers", "read_tokens", "replay", "reread",
    "resolve", "second_pairs", "serve", "standing", "status",
]
