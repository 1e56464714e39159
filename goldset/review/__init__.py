"""Verdicts -> queue -> people's labels -> decisions: waves, page, database, files, recorded assessors."""

from .asking import answered_before, ask, pairs_asked
from .carry import carried_labels
from .database import AnsweredElsewhere, Assignment, ReviewStore
from .files import export_items, import_answers, read_answers
from .passages import Passage, Passages
from .queue import first_wave
from .replay import replay
from .resolve import paired_labels, resolve, status
from .server import create_app, read_tokens, serve
from .service import ReviewService
from .waves import is_closed, next_wave

__all__ = [
    "AnsweredElsewhere", "Assignment", "Passage", "Passages", "ReviewService", "ReviewStore", "answered_before",
    "ask", "carried_labels", "create_app", "export_items", "first_wave", "import_answers", "is_closed", "next_wave",
    "paired_labels", "pairs_asked", "read_answers", "read_tokens", "replay", "resolve", "serve", "status",
]
