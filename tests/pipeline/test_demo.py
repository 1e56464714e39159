"""The demo's two configurations: the one that is told, and the one whose queue a newcomer may try."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldset.pipeline.demo import demo_config, unread_config


def test_trying_the_page_touches_no_answer_of_the_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOLDSET_REVIEW_URL", raising=False)
    told, tried = demo_config(tmp_path), unread_config(tmp_path)
    assert told.review_url == f"sqlite:///{tmp_path / 'review.sqlite'}"
    assert tried.review_url == f"sqlite:///{tmp_path / 'try.sqlite'}"
    assert tried.workspace == told.workspace == tmp_path
    same = told.review.model_copy(update={"database": tried.review.database})
    assert tried.model_copy(update={"review": same}) == tried
    assert tried.model_copy(update={"review": told.review}) == told
