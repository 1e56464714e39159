"""Exact sums: Fraction adds the same floats one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from goldset.stats.exact import total, total_of_products

NUMBERS = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-60)


@given(st.lists(NUMBERS, max_size=30))
def test_nothing_is_rounded(values: list[float]) -> None:
    assert total(np.array(values)) == sum(map(Fraction, values))
    assert total_of_products(np.array(values), np.array(values[::-1])) == sum(
        Fraction(a) * Fraction(b) for a, b in zip(values, values[::-1], strict=True))


def test_what_a_float_would_lose() -> None:
    # 1 + 2^-60 + ... is 1 in floats; the square of 1 + 2^-52 is 1 + 2^-51 + 2^-104.
    assert total(np.array([1.0] + [2.0**-60] * 1024)) == 1 + Fraction(1, 2**50)
    near = np.array([1 + 2.0**-52])
    assert total_of_products(near, near) == 1 + Fraction(1, 2**51) + Fraction(1, 2**104)
    assert total(np.zeros(0)) == total(np.zeros(3)) == 0
    assert total(np.array([2.0**60, -1.0])) == 2**60 - 1
