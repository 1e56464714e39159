"""What the demo's story rests on: the planted defects are found, and trying the page touches no recorded answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldset.audit import by_check
from goldset.formats.sets import load_set
from goldset.formats.trec import read_run
from goldset.pipeline.checks import Given, audit_any
from goldset.pipeline.demo import demo_config, unread_config
from goldset.resources import resource


def test_trying_the_page_touches_no_answer_of_the_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOLDSET_REVIEW_URL", raising=False)
    told, tried = demo_config(tmp_path), unread_config(tmp_path)
    assert told.review_url == f"sqlite:///{tmp_path / 'review.sqlite'}"
    assert tried.review_url == f"sqlite:///{tmp_path / 'try.sqlite'}"
    assert tried.workspace == told.workspace == tmp_path
    same = told.review.model_copy(update={"database": tried.review.database})
    assert tried.model_copy(update={"review": same}) == tried
    assert tried.model_copy(update={"review": told.review}) == told


def test_the_audit_finds_what_was_planted_in_the_old_set() -> None:
    run = read_run(resource("data/demo/old_set_production.run.gz"), system="production")
    outcome = audit_any(load_set(resource("data/demo/old_set")), {"production": run}, eval_k=20,
                        given=Given(logs=resource("data/demo/queries.jsonl"), logs_text="q"), retrieve_k=20,
                        serving_k=5,
                        families={"production": "lexical"}, quiet=True)
    assert by_check(outcome.findings) == {"integrity": "pass", "circularity": "fail", "leakage": "fail",
                                          "k_mismatch": "fail", "completeness": "warn"}
    assert outcome.measurements is not None
    recall = {row["k"]: row["value"] for row in outcome.measurements.to_pylist()
              if row["measure"] == "recall" and row["slice"] == "all"}
    assert recall[20] > 0.9
    assert recall[5] < 0.75, "what the reader gets"
