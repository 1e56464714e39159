from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest

from goldset.errors import DataError
from goldset.judges import Verdict, judge_card
from goldset.schemas import from_rows
from goldset.stats.sampling import PROBABILITIES
from tests.judges.tables import candidate_row

Row = tuple[str, str, bool | None, bool | None, float | None]
"""question, span, judge's verdict, people's decision (None = not asked), inclusion probability."""


def verdict(question: str, span: str, relevant: bool | None, **over: Any) -> dict[str, Any]:
    values = {"status": "unparsed" if relevant is None else "ok", "judge_id": "j", "vote": 1, "attempt": 1,
              "cache_key": f"{question}/{span}", "prompt_hash": "p", **over}
    return asdict(Verdict(question_id=question, span_id=span, relevant=relevant, **values))


def card_of(rows: list[Row], systems: dict[tuple[str, str], list[str]] | None = None,
            verdicts: list[dict[str, Any]] | None = None, **over: Any) -> dict[str, Any]:
    decisions = [{"question_id": q, "span_id": s, "relevant": people, "status": "decided", "basis": "human",
                  "evidence": [], "evidence_source": None, "label_ids": ["l"]}
                 for q, s, _, people, chance in rows if chance is not None]
    chances = [{"question_id": q, "span_id": s, "inclusion_prob": chance, "stratum": None}
               for q, s, _, _, chance in rows if chance is not None]
    return judge_card(
        verdicts=from_rows("verdicts", verdicts or [verdict(q, s, judge) for q, s, judge, _, _ in rows]),
        decisions=from_rows("decisions", decisions), probabilities=pa.Table.from_pylist(chances, schema=PROBABILITIES),
        candidates=from_rows("candidates", [candidate_row(q, s, *(systems or {}).get((q, s), ["a"]))
                                            for q, s, *_ in rows]), **over)


def chapter() -> list[Row]:
    """The table 17, 1, 9, 13 of METHODS 1 with judge-pass share .55: 18 of 18 passes read of 110, 22 of 90 fails.

    Each pair has its own question, so nothing is clustered.
    """
    rows: list[Row] = []
    for judge, yes, no, size in ((True, 17, 1, 110), (False, 9, 13, 90)):
        read = yes + no
        for number in range(size):
            people = number < yes if number < read else None
            rows.append((f"q{judge}{number}", "s", judge, people, read / size if number < read else None))
    return rows


def test_weighted_table_of_the_chapter() -> None:
    card = card_of(chapter())
    assert card["counts"] == {"tp": 17, "fp": 1, "fn": 9, "tn": 13}
    assert card["judge_pass_share"] == {"value": 0.55, "n": 200}
    sample, weighted = card["in_sample"], card["weighted"]
    # METHODS 13, 1 and 2: as sampled and weighted, three decimals.
    for name, in_sample, in_pool in (("agreement", .750, .785), ("kappa", .515, .552), ("sensitivity", .654, .738),
                                     ("specificity", .929, .897), ("false_alarm", .346, .262), ("miss", .071, .103)):
        assert sample[name]["value"] == pytest.approx(in_sample, abs=5e-4), name
        assert weighted[name]["value"] == pytest.approx(in_pool, abs=5e-4), name
    # p = .55 * 17/18 + .45 * 9/22
    assert weighted["pass_rate"]["value"] == pytest.approx(.55 * 17 / 18 + .45 * 9 / 22)
    # Intervals of the same table, Monte Carlo: within .01.
    for name, low, high in (("kappa", .275, .735), ("sensitivity", .640, .835), ("specificity", .659, .988),
                            ("pass_rate", .577, .798), ("bias", -.248, -.027)):
        assert weighted[name]["low"] == pytest.approx(low, abs=.01), name
        assert weighted[name]["high"] == pytest.approx(high, abs=.01), name
    assert "The judge is too strict: it passes fewer pairs than people do." in card["sentences"]


def test_card_is_json_and_does_not_depend_on_row_order() -> None:
    rows = chapter()
    card = card_of(rows)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert card_of(rows[::-1]) == card


def test_unequal_weights_by_hand() -> None:
    # Ten positives, all read, 8 relevant. Rejections: a stratum of 2 read in full (1 relevant), one of 40 of which 4
    # are read (1 relevant): FOR = (1 * 1 + 1 * 10) / (2 + 40) = 11/42; Q = 10/52.
    rows: list[Row] = [(f"p{n}", "s", True, n < 8, 1.0) for n in range(10)]
    rows += [(f"f{n}", "s", False, n == 0, 1.0) for n in range(2)]
    rows += [(f"r{n}", "s", False, n == 0 if n < 4 else None, .1 if n < 4 else None) for n in range(40)]
    weighted = card_of(rows)["weighted"]
    assert weighted["for_rate"]["value"] == pytest.approx(11 / 42)
    assert weighted["ppv"]["value"] == pytest.approx(.8)
    # Relevant in the pool: 8 found, 11 missed.
    assert weighted["sensitivity"]["value"] == pytest.approx(8 / 19)


def test_clustered_pairs_widen_the_intervals_and_keep_the_values() -> None:
    def rows(questions: int) -> list[Row]:
        made: list[Row] = []
        for judge, yes in ((True, 30), (False, 10)):
            # In runs of 40 / questions pairs a question, so that one question's pairs agree with each other.
            made += [(f"q{number * questions // 40}", f"{judge}{number}", judge, number < yes, 1.0)
                     for number in range(40)]
        return made

    apart, together = card_of(rows(40))["weighted"], card_of(rows(8))["weighted"]
    assert together["sensitivity"]["value"] == pytest.approx(apart["sensitivity"]["value"])
    assert together["ppv"]["high"] - together["ppv"]["low"] > 1.3 * (apart["ppv"]["high"] - apart["ppv"]["low"])


def test_misses_by_system() -> None:
    rows: list[Row] = [("q1", "s1", True, True, 1.0), ("q2", "s2", False, True, .25), ("q3", "s3", True, False, 1.0)]
    found = card_of(rows, {("q1", "s1"): ["bm25", "dense"], ("q2", "s2"): ["dense"], ("q3", "s3"): ["old"]})
    by_system = {row["system"]: row for row in found["miss_rate_by_system"]}
    assert (by_system["bm25"]["value"], by_system["bm25"]["n"]) == (0.0, 1)
    assert by_system["dense"]["value"] == pytest.approx(4 / 5)  # weight 4 missed, weight 1 found
    assert (by_system["old"]["value"], by_system["old"]["reason"]) == (None, "no_relevant_pair_read")


def test_pairs_without_a_verdict_are_a_stratum_of_their_own() -> None:
    rows: list[Row] = [*chapter(), ("x1", "s", None, True, 1.0), ("x2", "s", None, None, None),
                       ("x3", "s", None, False, 1.0)]
    verdicts = [verdict(q, s, judge, **({"status": "truncated"} if q in ("x1", "x2") else {}))
                for q, s, judge, _, _ in rows]
    card = card_of(rows, verdicts=verdicts)
    assert card["no_verdict"] == [{"status": "truncated", "pairs": 2, "read": 1, "relevant": 1},
                                  {"status": "unparsed", "pairs": 1, "read": 1, "relevant": 0}]
    assert card["counts"] == card_of(chapter())["counts"]  # they count neither as yes nor as no
    assert card["judge_pass_share"]["n"] == 200
    assert card["judge"]["answers_by_model"]["not named"] == {"ok": 200, "truncated": 2, "unparsed": 1}


def test_votes_and_attempts_settle_by_last_attempt_and_majority() -> None:
    def votes(span: str, *answers: bool | None) -> list[dict[str, Any]]:
        return [verdict("q", span, answer, vote=number, cache_key=f"{span}{number}")
                for number, answer in enumerate(answers, 1)]

    verdicts = [*votes("s1", True, False, True), *votes("s2", True, False), *votes("s3", None, False),
                verdict("q", "s4", None), verdict("q", "s4", True, attempt=2, cache_key="again")]
    rows: list[Row] = [("q", f"s{number}", None, True, 1.0) for number in (1, 2, 3, 4)]
    card = card_of(rows, verdicts=verdicts)
    assert card["counts"] == {"tp": 2, "fp": 0, "fn": 1, "tn": 0}
    assert card["no_verdict"] == [{"status": "split", "pairs": 1, "read": 1, "relevant": 1}]


@pytest.mark.parametrize(("rows", "reason"), [
    ([("q", "s", True, None, None)], "nothing_read"),
    ([("q", "s1", True, True, 1.0), ("q", "s2", False, None, None)], "no_judge_rejections_read"),
    ([("q", "s1", False, True, 1.0), ("q", "s2", True, None, None)], "no_judge_positives_read"),
])
def test_what_cannot_be_told_is_null_with_a_reason(rows: list[Row], reason: str) -> None:
    card = card_of(rows)
    assert (card["weighted"], card["weighted_reason"]) == (None, reason)
    assert "cannot be measured yet" in card["sentences"][0]


def test_one_class_has_no_kappa() -> None:
    card = card_of([(f"q{n}", "s", True, True, 1.0) for n in range(5)])
    assert card["weighted"]["kappa"] == {"value": None, "low": None, "high": None}
    assert card["weighted"]["agreement"]["value"] == 1.0


def test_quotes_and_spending_count_each_answer_once() -> None:
    verdicts = [verdict("q", "s1", True, quote="x", prompt_tokens=9, completion_tokens=1, cost=.5, cache_key="k"),
                verdict("q", "s2", True, prompt_tokens=9, completion_tokens=1, cost=.5, cache_key="k", cached=True),
                verdict("q", "s3", False)]
    card = card_of([("q", f"s{n}", None, None, None) for n in (1, 2, 3)], verdicts=verdicts)
    assert card["quotes"] == {"positives": 2, "with_a_quote_from_the_passage": 1}
    assert card["spent"] == {"answers": 2, "prompt_tokens": 9, "completion_tokens": 1, "cost": .5}


def test_misuse_is_refused() -> None:
    with pytest.raises(DataError, match="2 judges"):
        card_of([("q", "s", True, None, None)],
                verdicts=[verdict("q", "s", True), verdict("q", "s", True, judge_id="k")])
    rows: list[Row] = [("q", "s", True, True, 1.0)]
    decisions = from_rows("decisions", [{"question_id": "q", "span_id": "s", "relevant": True, "status": "decided",
                                         "basis": "human", "evidence": [], "evidence_source": None, "label_ids": []}])
    with pytest.raises(DataError, match="no inclusion probability"):
        judge_card(verdicts=from_rows("verdicts", [verdict(q, s, j) for q, s, j, _, _ in rows]), decisions=decisions,
                   probabilities=PROBABILITIES.empty_table(),
                   candidates=from_rows("candidates", [candidate_row("q", "s")]))
