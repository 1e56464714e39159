"""Gold and runs -> recall and its interval, comparison, power, cost."""

from goldset.metrics.compare import compare, power
from goldset.metrics.cost import cost, reading_hours
from goldset.metrics.detail import per_question
from goldset.metrics.registry import COUNTED, EXCLUDED, MEASURES, REASONS, Measure
from goldset.metrics.score import score
from goldset.metrics.words import cut_by_words, words_served

__all__ = [
    "COUNTED",
    "EXCLUDED",
    "MEASURES",
    "REASONS",
    "Measure",
    "compare",
    "cost",
    "cut_by_words",
    "per_question",
    "power",
    "reading_hours",
    "score",
    "words_served",
]
