"""The table of words: what fails, what warns, and what the worst of several is."""

from __future__ import annotations

import pytest

from goldset.audit import LIMITS, TABLE, by_check, decides, finding, limits, overall, worst
from goldset.schemas import CHECKS, VERDICT_WORDS, from_rows

# By hand: what proves the set wrong fails, what only looks wrong warns, too few or missing input is insufficient.
EXPECTED = {
    "fail": {"truncated", "circular", "leak", "strong", "incomplete", "mismatch", "stale", "no_gold", "foreign_run",
             "outdated", "served_less"},
    "warn": {"suspected", "low", "one_gold", "mismatch_below", "served_more"},
    "insufficient": {"too_few", "no_run", "no_text", "not_measured", "too_shallow", "no_reference", "pool_only",
                     "unprobed", "inconclusive", "recall_not_measured", "probe_open"},
}


def test_every_word_has_one_row_and_a_known_verdict() -> None:
    keys = [(word.check, word.reason) for word in TABLE]
    assert len(keys) == len(set(keys))
    assert {word.check for word in TABLE} == set(CHECKS)
    assert {word.verdict for word in TABLE} == set(VERDICT_WORDS)


@pytest.mark.parametrize("verdict", ["fail", "insufficient"])
def test_words_map_as_the_design_says(verdict: str) -> None:
    assert {word.reason for word in TABLE if word.verdict == verdict} == EXPECTED[verdict]


def test_warnings_of_the_four_properties() -> None:
    assert {word.reason for word in TABLE if word.verdict == "warn" and word.check != "integrity"} == EXPECTED["warn"]


def test_whatever_does_not_pass_names_a_next_step() -> None:
    assert [word.reason for word in TABLE if word.verdict != "pass" and not word.remedy] == []


def test_shown_numbers_decide_nothing() -> None:
    assert all(word.verdict == "pass" for word in TABLE if word.meaning.startswith("shown"))
    assert not decides("k_mismatch", "recall@10")
    assert decides("k_mismatch", "mismatch")


@pytest.mark.parametrize(("verdicts", "expected"), [
    (["pass", "insufficient", "warn", "fail"], "fail"),
    (["pass", "insufficient", "warn"], "warn"),
    (["pass", "insufficient"], "insufficient"),
    (["pass", "pass"], "pass"),
    ([], "insufficient"),  # nothing was checked: not a pass
])
def test_worst(verdicts: list[str], expected: str) -> None:
    assert worst(verdicts) == expected


def test_overall_and_by_check() -> None:
    table = from_rows("findings", [
        finding("circularity", "a", "healthy", n=60, message="m"),
        finding("circularity", "b", "low", n=60, message="m"),
        finding("leakage", "all", "no_text", n=0, message="m"),
    ])
    assert overall(table) == "warn"
    assert by_check(table) == {"circularity": "warn", "leakage": "insufficient"}


def test_finding_takes_verdict_and_remedy_from_the_table() -> None:
    row = finding("k_mismatch", "bm25", "mismatch", n=10, message="m", measured=1, interval=(0, None))
    assert (row["verdict"], row["remedy"], row["measured"], row["low"], row["high"]) == (
        "fail", "quote recall at the served k", 1.0, 0.0, None)


def test_an_unknown_word_is_our_own_bug() -> None:
    with pytest.raises(AssertionError, match="no word 'bogus' for the check 'leakage'"):
        finding("leakage", "all", "bogus", n=0, message="m")


def test_limits_are_listed_with_their_meaning() -> None:
    listed = {name: (value, doc) for name, value, doc in limits()}
    assert listed["leak"][0] == LIMITS.leak == 0.60
    assert listed["leak_strong"][0] == 0.71
    assert all(doc for _, doc in listed.values())
