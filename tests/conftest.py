"""What the whole session shares: one embedding cache, and in CI examples that do not change from run to run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A gate must give the same answer twice; outside CI each run looks at new examples.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in GOLDSET_CACHE; what is set outside wins. For tests whose commands run without the variable too."""
    return Path(os.environ.setdefault("GOLDSET_CACHE", str(tmp_path_factory.mktemp("cache"))))
