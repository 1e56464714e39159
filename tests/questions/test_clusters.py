"""Near-duplicates share a cluster, by exact similarity; the approximate step loses none."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.questions.clusters import bands, clusters, jaccard, word_set


def groups(texts: list[str], threshold: float, before: dict[int, str] | None = None) -> set[frozenset[str]]:
    found = clusters({f"q{i:03d}": (text, (before or {}).get(i)) for i, text in enumerate(texts)}, threshold=threshold)
    assert set(found.values()) <= set(found)
    together: dict[str, set[str]] = {}
    for name, cluster in found.items():
        together.setdefault(cluster, set()).add(texts[int(name[1:])])
        assert cluster <= name
    return {frozenset(members) for members in together.values()}


TEXTS = [
    "how do i reset my password",
    "how do i reset password",
    "reset router",
    "C++ vs C#",
    "c vs c",
    "vpn",
    "🍟",
    "床前明月光",
]


def test_short_questions_at_the_default() -> None:
    # {how do i reset my password} and the same without "my": 5 of 6 words = 0.83. All others share at most one word.
    assert groups(TEXTS, 0.8) == {frozenset(TEXTS[:2]), *(frozenset({text}) for text in TEXTS[2:])}


@pytest.mark.parametrize("threshold", [1.0, 0.84, 0.05])
def test_other_thresholds(threshold: float) -> None:
    # At 0.05 any shared word joins: reset, and "vs" of both comparisons.
    joined = [TEXTS[:3], TEXTS[3:5]] if threshold == 0.05 else []
    alone = [text for text in TEXTS if not any(text in group for group in joined)]
    assert groups(TEXTS, threshold) == {*map(frozenset, joined), *(frozenset({text}) for text in alone)}


def test_threshold_one_joins_equal_word_sets_only() -> None:
    assert groups(["reset password", "password reset?", "reset passwords"], 1.0) == {
        frozenset({"reset password", "password reset?"}),
        frozenset({"reset passwords"}),
    }


def test_the_same_words_after_another_turn_are_another_question() -> None:
    texts = ["why is that?", "why is that", "why is that!", "why is that …"]
    before = {0: "is coffee healthy", 1: "is coffee healthy?", 2: "is gold a metal"}
    assert groups(texts, 0.8, before) == {frozenset(texts[:2]), frozenset({texts[2]}), frozenset({texts[3]})}


def test_similarity_by_hand() -> None:
    assert jaccard(word_set("Reset my Wi-Fi?"), word_set("reset (wi-fi)")) == 2 / 3
    assert word_set("C++ vs. C#!") == {"c++", "vs", "c#"}
    assert word_set("低头思故乡") == {"低头", "头思", "思故", "故乡"}
    assert word_set("?!") == {""}


@pytest.mark.parametrize("threshold", [0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_bands_lose_one_pair_in_a_million_at_most(threshold: float) -> None:
    b, r = bands(threshold)
    assert 1 <= b * r <= 128
    if threshold >= 0.1:  # below, even single-row bands lose pairs: (1 - .01) ** 128 = .28
        assert (1 - threshold**r) ** b <= 1e-6 or r == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.5, 0.6, 0.8, 1.0]))
def test_clusters_equal_a_search_over_all_pairs(seed: int, threshold: float) -> None:
    chance = random.Random(seed)
    texts = sorted({" ".join(chance.choices("abcdefgh", k=chance.randint(1, 6))) for _ in range(40)})
    # Independent: repeated merging over every pair until nothing changes.
    expected = [{text} for text in texts]
    for left, right in combinations(texts, 2):
        shared, either = len({*left.split()} & {*right.split()}), len({*left.split()} | {*right.split()})
        if shared >= threshold * either:
            one, other = (next(g for g in expected if t in g) for t in (left, right))
            if one is not other:
                one |= other
                expected.remove(other)
    assert groups(texts, threshold) == set(map(frozenset, expected))
