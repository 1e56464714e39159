"""Outside the pool, the cliff, and k*: values of METHODS 13."""

from __future__ import annotations

import pytest

from goldset.stats.curves import k_star
from goldset.stats.pooling import boundary_lincoln_petersen, chapman, cliff_p


def test_chapman() -> None:
    assert chapman(160, 150, 120) == pytest.approx(199.917355, abs=1e-6)


def test_boundary() -> None:
    # c = (6 + .5) / (9 + 1) = .65; 13 outside: 13 x .35 / .65 = 7
    assert boundary_lincoln_petersen(outside=13, near=9, near_caught=6) == pytest.approx(7.0)
    assert boundary_lincoln_petersen(outside=0, near=9, near_caught=6) == 0
    assert boundary_lincoln_petersen(outside=13, near=0, near_caught=0) is None


@pytest.mark.parametrize(
    ("inside", "beyond", "rho", "p"), [(20, 0, 0.25, 0.011529), (20, 5, 0.25, 0.616689), (12, 0, 0.5, 0.007707)]
)
def test_cliff_p(inside: int, beyond: int, rho: float, p: float) -> None:
    assert cliff_p(inside, beyond, rho) == pytest.approx(p, abs=1e-6)


CURVE = {1: 0.42, 3: 0.61, 5: 0.70, 8: 0.76, 10: 0.79, 20: 0.88, 50: 0.94}


@pytest.mark.parametrize(("headline", "expected"), [(0.94, "50"), (0.79, "10"), (0.95, "> 50")])
def test_k_star(headline: float, expected: str) -> None:
    assert str(k_star(CURVE, headline)) == expected
