"""Logs -> a weighted sample of real questions."""

from goldset.questions.masking import mask
from goldset.questions.sample import QuestionTables, sample_questions

__all__ = ["QuestionTables", "mask", "sample_questions"]
