"""One embedding cache for the whole session: the same texts are not embedded again by every test that rebuilds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GOLDSET_CACHE for tests that do not set their own; what is set outside wins."""
    return Path(os.environ.setdefault("GOLDSET_CACHE", str(tmp_path_factory.mktemp("cache"))))
