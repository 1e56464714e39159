"""The plan: both profiles by hand, and the rate that the page measured beside the configured one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from goldset.config import load_config
from goldset.pipeline import rebuild, store_of
from goldset.pipeline.plan import plan_cost, plan_text, rejections_read
from tests.cli.conftest import Goldset, goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour

__all__ = ["goldset"]

RATE = {"seconds_base": 6.0, "words_per_minute": 230.0}


def _labels(harbour: Harbour, count: int) -> list[dict[str, Any]]:
    """Timed readings of the golden project's spans: 4 s and a third of a second a word, 180 words a minute."""
    words = dict(zip(*(harbour.artifacts.table("spans").column(name).to_pylist() for name in ("span_id", "words")),
                     strict=True))
    pairs = harbour.artifacts.table("candidates").to_pylist()
    rows = []
    for number in range(count):
        pair = pairs[number % len(pairs)]
        rows.append({
            "label_id": f"timed{number}", "item_id": f"i{number}", "question_id": pair["question_id"],
            "span_id": pair["span_id"], "span_text_hash": "h", "rubric_version": "1.0", "campaign": "earlier",
            "assessor": "ann", "action": "label", "relevant": False, "reason": None, "evidence": [],
            "evidence_source": None, "supersedes": None, "origin": "page", "note": None,
            "seconds": 4 + words[pair["span_id"]] / 3, "time": datetime(2026, 4, 1, tzinfo=UTC)})
    return rows


def test_both_profiles_by_hand(harbour: Harbour) -> None:
    cost = plan_cost(harbour.config, harbour.artifacts)
    words = dict(zip(*(harbour.artifacts.table("spans").column(name).to_pylist() for name in ("span_id", "words")),
                     strict=True))
    total = sum(words[row["span_id"]] for row in harbour.artifacts.table("candidates").to_pylist())
    assert (cost["pairs"], cost["words"], cost["calls"], cost["money"]) == (19, total, 19, None)
    assert (cost["seconds_base"], cost["words_per_minute"], cost["rate"]) == (6.0, 230.0, "configured")
    # 19 pairs, 5 % of them yes: 1, of 18 rejections at least 5 are read, each again (second_share 1): 12 labels.
    # 20 %: 4 yes, 5 of 15 rejections: 18. Careful: two for a yes, two for a read rejection, a tenth of the rest:
    # 2 + 10 + 1.3 = 13, and 8 + 10 + 1 = 19.
    items = {name: (row["items_low"], row["items_high"]) for name, row in cost["profiles"].items()}
    assert items == {"basic": (12, 18), "careful": (13, 19)}
    assert cost["full_hours"] == pytest.approx(19 * 6 / 3600 + total / 230 / 60)
    assert cost["profiles"]["basic"]["hours_low"] == pytest.approx(12 / 19 * cost["full_hours"])


def test_what_a_clean_sample_of_rejections_excludes(harbour: Harbour) -> None:
    # 5 of 18 rejections read, none answers: C(10, 5)/C(18, 5) = 252/8568 = .029 with 8 missed, C(9, 5) gives .015: 8.
    cost = plan_cost(harbour.config, harbour.artifacts)
    found = cost["rejections"]
    assert (found["rejected"], found["read"], found["most_missed"]) == (18, 5, 8)
    assert found["miss_rate"] == pytest.approx(8 / (8 + cost["questions"]))
    assert ("rejections: if none of the 5 read of 18 answers, up to 8 may still do (95 %):"
            in plan_text(cost).splitlines())
    # 7,021 pairs, 351 of them yes: 667 of 6,670 are read, oracles 11 and 15: 34, and 749 or 1,455 to exclude.
    review = harbour.config.review.model_copy(update={"rejection_share": 0.1, "rejection_min": 300})
    config = harbour.config.model_copy(update={"review": review})
    assert rejections_read(config, 7021, 270) == {
        "rejected": 6670, "read": 667, "most_missed": 34, "miss_rate": pytest.approx(34 / 304),
        "to_exclude": [{"miss_rate": 0.1, "read": 749}, {"miss_rate": 0.05, "read": 1455}]}
    whole = rejections_read(config, 100, 10)
    assert (whole["read"], whole["most_missed"], whole["miss_rate"]) == (95, 0, 0.0)
    assert "rejections: all 95 are read, so what the judge misses is known" in plan_text(cost | {"rejections": whole})


def test_the_rates_of_the_configuration_count(copy: Path) -> None:
    text = copy.read_text().replace("rejection_min = 5", "rejection_min = 5\nseconds_base = 10\nwords_per_minute = 100")
    copy.write_text(text)
    config = load_config(copy)
    cost = plan_cost(config, rebuild(config, until="pool", quiet=True))
    assert cost["full_hours"] == pytest.approx(19 * 10 / 3600 + cost["words"] / 100 / 60)


def test_what_the_page_measured_stands_beside_and_counts_when_asked_for(
        harbour: Harbour, copy: Path, goldset: Goldset) -> None:
    config = load_config(copy)
    before = plan_cost(config, harbour.artifacts)["measured"]
    # The recorded readers of the golden project were not timed.
    assert (before["n"], before["seconds_base"], before["reason"]) == (0, None, "no_labels")
    done = goldset("plan", "-c", copy, "--measured")
    assert done.code == 6
    assert "--measured: nobody has read on the page yet (0 readings of sqlite:///" in done.err
    store_of(config, harbour.artifacts).append_labels(_labels(harbour, 29))
    assert plan_cost(config, harbour.artifacts)["measured"]["reason"] == "too_few"
    store_of(config, harbour.artifacts).append_labels(_labels(harbour, 40)[29:])
    cost = plan_cost(config, harbour.artifacts)
    page = cost["measured"]
    assert (page["n"], page["reason"]) == (40, None)
    assert (page["seconds_base"], page["words_per_minute"]) == (pytest.approx(4), pytest.approx(180))
    wanted = 19 * 4 / 3600 + cost["words"] / 180 / 60
    assert page["full_hours"] == pytest.approx(wanted)
    assert cost["full_hours"] != pytest.approx(wanted)
    lines = plan_text(cost).splitlines()
    assert lines[4].split() == ["basic", "careful", "everything"]
    assert [line.split(" to ")[0].split()[:2] for line in lines[5:8]] == [
        ["items", "12"], ["hours,", "configured"], ["hours,", "measured"]]
    assert lines[8] == "configured: 6.0 s an item and 230 words a minute ([review] seconds_base, words_per_minute)"
    assert lines[9] == ("measured: 4.0 s an item and 180 words a minute (40 readings on the page); --measured plans "
                        "with it")
    told = json.loads(goldset("plan", "-c", copy, "--measured", "--json").out)
    assert (told["rate"], told["words_per_minute"]) == ("measured", pytest.approx(180))
    assert told["full_hours"] == pytest.approx(wanted)


def test_a_plan_makes_no_review_database(tmp_path: Path) -> None:
    config = load_config(golden.write(tmp_path / "planned"))
    plan_cost(config, rebuild(config, until="pool", quiet=True))
    assert not list((tmp_path / "planned").rglob("review.sqlite"))


def test_tokens_and_money(copy: Path, harbour: Harbour) -> None:
    text = copy.read_text()
    start, end = text.index("[judge]"), text.index("[review]")
    copy.write_text(text[:start] + """[judge]
kind = "openai"
family = "other"
base_url = "http://127.0.0.1:9/v1"
model = "m"
votes = 3
price_prompt = 2.0
price_completion = 10.0
rubric = "relevance.md"
""" + text[end:])
    cost = plan_cost(load_config(copy), harbour.artifacts)
    # Three votes a pair; 400 words of prompt and rubric beside each passage, 1.35 tokens a word, 60 to answer.
    assert cost["calls"] == 57
    assert cost["tokens"] == round((cost["words"] + 19 * 400) * 1.35) * 3
    assert cost["money"] == pytest.approx((cost["tokens"] * 2 + 57 * 60 * 10) / 1e6)
    assert plan_text(cost).splitlines()[1].endswith(f"{cost['money']:.2f} in the currency of the prices")
