"""What lies outside the pool: by hand, and in a model whose truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import beta, norm

from goldset.metrics.outside import NOT_KNOWN, outside_the_pool, pool_ranks, sentence
from goldset.metrics.results import NEVER
from goldset.schemas import from_rows
from goldset.stats.pooling import chapman

FAMILIES = {"bm25": "lexical", "dense": "minilm", "hybrid": "lexical+minilm"}


def _gold(*rows: tuple[str, str, str]) -> Any:
    return from_rows("gold", [{"question_id": question, "span_id": span, "evidence": [], "evidence_source": None,
                               "facet": None, "weight": 1.0, "twin_group": twin} for question, span, twin in rows])


def _candidates(*rows: tuple[str, str, dict[str, int]]) -> Any:
    return from_rows("candidates", [
        {"question_id": question, "span_id": span, "systems": sorted(ranks), "families": ["x"],
         "best_ranks": [{"system": system, "rank": rank} for system, rank in sorted(ranks.items())]}
        for question, span, ranks in rows])


def _ranks(**systems: list[int]) -> dict[str, Any]:
    return {system: np.array([rank or NEVER for rank in ranks]) for system, ranks in systems.items()}


def test_gold_is_found_in_the_pool_under_its_twin_group() -> None:
    gold = _gold(("q1", "s1", "s1"), ("q1", "s9", "s3"), ("q2", "s1", "s1"))
    candidates = _candidates(("q1", "s1", {"bm25": 4}), ("q1", "s3", {"bm25": 9, "dense": 2}),
                             ("q2", "s7", {"dense": 1}))
    found = pool_ranks(gold, candidates)
    assert {system: ranks.tolist() for system, ranks in found.items()} == {
        "bm25": [4, 9, NEVER], "dense": [NEVER, 2, NEVER]}


def test_two_families_by_hand() -> None:
    # Depth 10, near the edge: ranks 6 to 10. 0 is "not returned".
    ranks = _ranks(bm25=[1, 6, 7, 8, 9, 0, 0, 0, 2, 0], dense=[3, 2, 1, 9, 0, 4, 8, 6, 0, 0])
    told = outside_the_pool(ranks, FAMILIES, depth=10)
    # bm25: 6, 7, 8, 9 are near, dense holds three: c = 3.5 / 5 = .7; outside bm25 dense holds three: 3 x .3 / .7.
    # dense: 9, 8, 6 are near, bm25 holds one: c = 1.5 / 4 = .375; outside dense bm25 holds two: 2 x .625 / .375.
    one, two = 3 * 0.3 / 0.7, 2 * 0.625 / 0.375
    assert [(edge.family, edge.systems, edge.gold_outside, edge.near, edge.near_caught) for edge in told.edges] == [
        ("lexical", ["bm25"], 3, 4, 3), ("minilm", ["dense"], 2, 3, 1)]
    assert [edge.estimate for edge in told.edges] == pytest.approx([one, two])
    # The tenth gold stands in no list (somebody searched): it is one of those that the estimate counts.
    assert (told.gold, told.known, told.reason) == (10, 1, None)
    assert told.at_least == pytest.approx((one + two) / 2 - 1)
    # Lists of 6 and 7 that share 4: Chapman 7 x 8 / 5 - 1 = 10.2, of which they hold 9 and the search holds 1.
    assert told.floor == pytest.approx(0.2)
    # Exact intervals of 3 of 4 and 1 of 3 (beta quantiles): .1941 to .9937, .0084 to .9057.
    for edge, caught, size in zip(told.edges, (3, 1), (4, 3), strict=True):
        least, most = beta.ppf([0.025, 0.975], [caught, caught + 1], [size - caught + 1, size - caught])
        assert edge.low == pytest.approx(edge.gold_outside * (1 - most) / most)
        assert edge.high == pytest.approx(edge.gold_outside * (1 - least) / least)
    assert told.sentence() == (
        "Relevant passages outside the pool: at least about 1, beside 10 gold (lexical says 1, 95 % 0 to 12: others "
        "hold 3 of 4 gold near the end of its list; minilm says 3, 95 % 0 to 236: others hold 1 of 3 gold near the end "
        "of its list; 1 that no list returned are known already).")


def test_a_fused_list_and_a_sister_are_no_further_lists() -> None:
    ranks = _ranks(bm25=[1, 6, 7, 8, 9, 0, 0, 0, 2, 0], dense=[3, 2, 1, 9, 0, 4, 8, 6, 0, 0])
    plain = outside_the_pool(ranks, FAMILIES, depth=10)
    fused = outside_the_pool({**ranks, **_ranks(hybrid=[1, 1, 1, 5, 5, 5, 5, 5, 9, 9])}, FAMILIES, depth=10)
    assert fused == plain  # the hybrid's own find (the tenth) is known, as the searched one was
    # A second lexical list is not a second occasion: the family's rank is the better of the two.
    sister = _ranks(other=[2, 3, 0, 0, 0, 0, 0, 0, 0, 0])
    both = outside_the_pool({**ranks, **sister}, {**FAMILIES, "other": "lexical"}, depth=10)
    assert both.edges[0].systems == ["bm25", "other"]
    assert (both.edges[0].near, both.edges[0].near_caught) == (3, 2)  # the second gold stands at 3 now


def test_what_cannot_be_told_is_null_with_its_reason() -> None:
    near = _ranks(bm25=[6, 1], dense=[1, 6])
    alone = outside_the_pool({"bm25": near["bm25"]}, FAMILIES, depth=10)
    assert (alone.at_least, alone.reason, alone.floor) == (None, "one_family", None)
    assert (alone.edges[0].near, alone.edges[0].estimate) == (1, None)
    nothing = outside_the_pool(_ranks(bm25=[1, 0], dense=[0, 2]), FAMILIES, depth=10)
    assert (nothing.at_least, nothing.reason) == (None, "no_gold_near_the_edge")
    assert outside_the_pool(_ranks(bm25=[], dense=[]), FAMILIES, depth=10).reason == "no_gold"
    assert outside_the_pool({}, FAMILIES, depth=10).reason == "no_gold"
    # One list whose edge is empty leaves the other's estimate: c = 1.5 / 2, nothing outside dense but its second.
    half = outside_the_pool(_ranks(bm25=[6, 1], dense=[1, 0]), FAMILIES, depth=10)
    assert [(edge.estimate, edge.low, edge.high) for edge in half.edges] == [(0.0, 0.0, 0.0), (None, None, None)]
    assert half.at_least == 0
    # Where the others hold none of what is near the end, there is no upper bound: c = .5 / 2, 1 x .75 / .25.
    none = outside_the_pool(_ranks(bm25=[6, 0], dense=[0, 1]), FAMILIES, depth=10)
    assert none.edges[0].estimate == pytest.approx(3)
    assert none.edges[0].high is None
    assert "95 % 0 to no upper bound: others hold 0 of 1 gold" in none.sentence()
    for reason, words in NOT_KNOWN.items():
        assert words in sentence({"at_least": None, "reason": reason})


@pytest.mark.parametrize(("rho", "boundary", "chapman_"), [(0.0, 1.3, 1.15), (0.3, 0.90, 0.43), (0.6, 0.57, 0.15)])
def test_how_much_of_what_lies_outside_is_found(rho: float, boundary: float, chapman_: float) -> None:
    """Lists whose log ranks are normal and correlated: 396 relevant, 13.9 % of them beyond rank 50 of each list.

    The figures to be met (``boundary``, ``chapman_``, found with other code) are means of each pool's estimate / truth,
    above the ratio of the means where the truth is a small number, at log ranks of standard deviation 2.6. No pool
    tells that spread, and the boundary's share grows with it.
    """
    shares = {spread: _found(rho, spread) for spread in (1.2, 2.6)}
    wide, narrow = shares[2.6], shares[1.2]
    # Standard errors over 400 pools: .02 of the boundary's means (.03 at rho 0), .01 of Chapman's (.03 at rho 0).
    assert wide.boundary_each == pytest.approx(boundary, abs=0.1)
    assert wide.chapman_each == pytest.approx(chapman_, abs=0.08)
    assert narrow.boundary < wide.boundary < wide.boundary_each
    # In 7.6, 14.4 and 24.0 of 396 relevant passages neither list has one: 396 P(both beyond), bivariate normal.
    assert wide.outside == pytest.approx({0.0: 7.65, 0.3: 14.5, 0.6: 24.1}[rho], abs=0.6)
    if rho:  # "at least": only lists that have nothing to do with each other let it exceed the truth
        assert narrow.boundary_each < wide.boundary_each < 1
        assert wide.boundary > 1.5 * wide.chapman
    else:
        assert 1 < narrow.boundary < 1.25


class _Shares(NamedTuple):
    """Estimate / truth: of the means, and the mean over pools (``each``)."""

    outside: float
    boundary: float
    boundary_each: float
    chapman: float
    chapman_each: float


def _found(rho: float, spread: float, pools: int = 400) -> _Shares:
    rng = np.random.default_rng(4)
    centre = np.log(50) - norm.isf(0.139) * spread
    rows = []
    for _ in range(pools):
        first = rng.standard_normal(396)
        second = rho * first + np.sqrt(1 - rho**2) * rng.standard_normal(396)
        ranks = {name: np.ceil(np.exp(centre + spread * value)).astype(np.int64)
                 for name, value in (("bm25", first), ("dense", second))}
        a, b = (ranks[name] <= 50 for name in ("bm25", "dense"))
        held = a | b  # only what the pool holds can become gold
        told = outside_the_pool({name: rank[held] for name, rank in ranks.items()}, FAMILIES, depth=50)
        assert told.at_least is not None
        assert told.floor is not None
        assert told.floor == pytest.approx(chapman(int(a.sum()), int(b.sum()), int((a & b).sum())) - held.sum())
        rows.append((float((~held).sum()), told.at_least, told.floor))
    truth, boundary, floor = np.array(rows).T
    some = truth > 0
    return _Shares(truth.mean(), boundary.mean() / truth.mean(), np.mean(boundary[some] / truth[some]),
                   floor.mean() / truth.mean(), np.mean(floor[some] / truth[some]))
