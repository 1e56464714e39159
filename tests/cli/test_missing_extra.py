"""A library that is not installed: the sentence names the extra, the exit code is 4."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Goldset
from tests.pipeline import golden


@pytest.mark.parametrize(("lines", "module", "feature"), [
    ('language = "en"\nstem = true', "Stemmer", "stemming"),
    ('language = "en"\nstop_words = true', "bm25s", "leaving out stop words"),
])
def test_without_the_extra_the_rebuild_ends_with_its_own_code(
    goldset: Goldset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, module: str, feature: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    path = golden.write(tmp_path / "harbour")
    path.write_text(path.read_text(encoding="utf-8").replace('kind = "bm25"\n', f'kind = "bm25"\n{lines}\n'),
                    encoding="utf-8")
    done = goldset("rebuild", "-c", path)
    assert done.code == 4
    assert done.complaint == (f"{feature} needs the extra 'words', which is not installed: "
                              "pip install 'goldset-rebuilder[words]'")
