"""Exact sums of floats: the same to the last bit in any order, and where parts are added up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_HALF = 26
_SPLIT = float(2**27 + 1)


def total(values: Floats) -> Fraction:
    """The sum without rounding; up to 2^26 values at once."""
    if not len(values):
        return Fraction(0)
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = int(exponent.min())
    place = exponent - lowest
    # Halves of 26 and 27 bits: so many of them add up below 2^53, where a float still holds every whole number.
    upper, lower = np.bincount(place, whole >> _HALF), np.bincount(place, whole & (2**_HALF - 1))
    found = sum(((int(high) << _HALF) + int(low)) << at
                for at, (high, low) in enumerate(zip(upper.tolist(), lower.tolist(), strict=True)))
    return Fraction(found, 1 << 53 - lowest) if lowest <= 53 else Fraction(found << lowest - 53)


def total_of_products(a: Floats, b: Floats) -> Fraction:
    """The sum of a x b without rounding. Source: Dekker (1971), what a product loses is a float too."""
    product = a * b
    upper_a, upper_b = _upper(a), _upper(b)
    lower_a, lower_b = a - upper_a, b - upper_b
    lost = ((upper_a * upper_b - product) + upper_a * lower_b + lower_a * upper_b) + lower_a * lower_b
    return total(product) + (total(lost) if lost.any() else 0)


def _upper(values: Floats) -> Floats:
    """The upper half of each mantissa."""
    scaled = _SPLIT * values
    upper: Floats = scaled - (scaled - values)
    return upper
