"""BM25 in a real rebuild: shards change nothing, stems and stop words change what is found and what is reused."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldset.config import load_config
from goldset.errors import ConfigError
from goldset.pipeline import rebuild
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour, finish


def _with(folder: Path, more: str) -> Path:
    """The golden project, with lines added to the section of bm25."""
    path = golden.write(folder)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('kind = "bm25"\n', f'kind = "bm25"\n{more}\n'), encoding="utf-8")
    return path


def test_a_rebuild_in_shards_publishes_the_same_version(
    harbour: Harbour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOLDSET_CACHE", raising=False)
    path = golden.write(tmp_path / "sharded")
    path.write_text(path.read_text(encoding="utf-8") + "[pool]\nshard_chunks = 4\n", encoding="utf-8")
    made = finish(path)
    shards = list((made.config.workspace / "cache" / "bm25").glob("*/shard-*"))
    assert len(shards) == 4  # 14 chunks, at most four each
    assert len(list((harbour.config.workspace / "cache" / "bm25").glob("*/shard-*"))) == 1
    for name in ("run", "run_status", "candidates"):
        assert made.artifacts.table(name).equals(harbour.artifacts.table(name))
    assert made.published.manifest["content_hash"] == harbour.published.manifest["content_hash"]


def test_stems_and_stop_words_change_what_is_found_and_are_never_reused(
    harbour: Harbour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOLDSET_CACHE", raising=False)
    runs, keys = [harbour.artifacts.table("run")], {harbour.artifacts.refs["retrieve"].key}
    for number, more in enumerate(('language = "en"\nstem = true', 'language = "en"\nstop_words = true')):
        artifacts = rebuild(load_config(_with(tmp_path / str(number), more)), quiet=True)
        keys.add(artifacts.refs["retrieve"].key)
        runs.append(artifacts.table("run"))
    assert len(keys) == 3
    found = [{(row["question_id"], row["chunk_id"]) for row in run.to_pylist() if row["system"] == "bm25"}
             for run in runs]
    assert found[0] < found[1]  # "ticket" finds "tickets" too
    # No question shares only function words with a chunk here, but without them the chunks are shorter: other scores.
    assert found[2] == found[0]
    assert not runs[2].equals(runs[0])


@pytest.mark.parametrize(("more", "message"), [
    ("stem = true", r"stem = true needs the rules of a language, and there is no language; set .* ar, ca, .*yi"),
    ('stop_words = true\nlanguage = "zh"', r"and language = 'zh' has none; set language to one of: da, de, en"),
    ('language = "en"', r"language = 'en' is read by stem and stop_words only; set one of them to true"),
])
def test_a_language_and_its_use_belong_together(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(_with(tmp_path / "harbour", more))
