"""One finished project over the golden corpus; tests that change something work on a copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from goldset.config import Config, load_config
from goldset.pipeline import Artifacts, Published, open_review, publish, rebuild, replay_review
from tests.pipeline import golden


@dataclass(frozen=True)
class Harbour:
    """The golden project after rebuild, replay and publish."""

    path: Path
    config: Config
    artifacts: Artifacts
    published: Published


def finish(path: Path) -> Harbour:
    """Rebuild, let the recorded readers answer, publish."""
    config = load_config(path)
    artifacts = rebuild(config, quiet=True)
    open_review(config, artifacts)
    replay_review(config)
    return Harbour(path, config, artifacts, publish(config))


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GOLDSET_CACHE", "GOLDSET_REVIEW_URL"):
            patch.delenv(name, raising=False)
        yield finish(golden.write(tmp_path_factory.mktemp("golden") / "harbour"))


@pytest.fixture
def copy(harbour: Harbour, tmp_path: Path) -> Path:
    """Configuration of a copy that a test may change."""
    return golden.copied(harbour.path, tmp_path / "copy")
