"""Gold and runs -> recall and its interval, comparison, power, cost."""

from goldset.metrics.across import compare_versions
from goldset.metrics.compare import compare, power
from goldset.metrics.cost import ReadingRate, cost, reading_hours, reading_rate
from goldset.metrics.curve import Curve, CurveSums, curves, loss_split, plotted_ks, shown_ks
from goldset.metrics.detail import per_question
from goldset.metrics.registry import COUNTED, EXCLUDED, MEASURES, REASONS, Measure
from goldset.metrics.score import score
from goldset.metrics.slices import slice_differences
from goldset.metrics.words import cut_by_words, words_served

__all__ = [
    "COUNTED",
    "EXCLUDED",
    "MEASURES",
    "REASONS",
    "Curve",
    "CurveSums",
    "Measure",
    "ReadingRate",
    "compare",
    "compare_versions",
    "cost",
    "curves",
    "cut_by_words",
    "loss_split",
    "per_question",
    "plotted_ks",
    "power",
    "reading_hours",
    "reading_rate",
    "score",
    "shown_ks",
    "slice_differences",
    "words_served",
]
