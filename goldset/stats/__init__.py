"""Intervals, agreement, sampling and weights: arithmetic that several stages need. Formulas: scipy.special only."""
