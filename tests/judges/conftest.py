"""A pair with every part that a judge can see, and an empty store of verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldset.judges import VerdictStore
from goldset.judges.base import Pair


@pytest.fixture
def pair() -> Pair:
    return Pair(question_id="q1", span_id="s1", question="Which fuse fits?", passage="The fuse is rated 10 A.",
                turns=(("user", "I have a toaster."), ("assistant", "Which model?")), need="rating of the fuse",
                heading="Manual > Fuses", before="Open the lid.", after="Close the lid.")


@pytest.fixture
def store(tmp_path: Path) -> VerdictStore:
    return VerdictStore(tmp_path / "verdicts.sqlite")
