"""Configuration: unknown keys with the nearest name, values with what is allowed, paths relative to the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldset.config import load_config
from goldset.errors import ConfigError

GOOD = """
[project]
name = "t"
workspace = "w"
[corpus]
documents = "documents.jsonl"
chunker = {words = 120, step = 50}
[questions]
logs = [{path = "log.jsonl"}]
[systems.bm25]
kind = "bm25"
[systems.dense]
kind = "dense"
family = "minilm"
model = "package:m"
[systems.hybrid]
kind = "hybrid"
of = ["bm25", "dense"]
[systems.production]
kind = "run"
path = "production.run.gz"
[judge]
kind = "similarity"
family = "minilm"
model = "package:m"
calibration = "calibration.jsonl"
rubric = "rubric.md"
[scoring]
system = "production"
served_k = 5
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def test_a_good_file_loads_and_resolves_against_its_folder(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, GOOD))
    assert config.workspace == (tmp_path / "w").resolve()
    assert config.corpus.documents is not None
    assert config.corpus.documents.path == Path("documents.jsonl")
    assert (config.family("hybrid"), config.family("production")) == ("lexical+minilm", "production")
    assert config.review_url == f"sqlite:///{tmp_path.resolve() / 'w' / 'review.sqlite'}"


@pytest.mark.parametrize(("old", "new", "message"), [
    ("served_k = 5", "servd_k = 5", "unknown key 'scoring.servd_k'; did you mean 'served_k'?"),
    ("[project]", "[project]\nsed = 1", "unknown key 'project.sed'; did you mean 'seed'?"),
    ('kind = "bm25"', 'kind = "bm25"\nk_1 = 2', "unknown key 'systems.bm25.k_1'; did you mean 'k1'?"),
    ("words = 120", "word = 120", "unknown key 'corpus.chunker.word'; did you mean 'words'?"),
    ('path = "log.jsonl"', 'path = "log.jsonl", tme = "t"', "unknown key 'questions.logs.0.tme'; did you mean 'time'?"),
    ('system = "production"', 'system = "prodution"', "no system 'prodution'; did you mean 'production'?"),
    ('of = ["bm25", "dense"]', 'of = ["bm25", "dens"]', "no system 'dens'; did you mean 'dense'?"),
    ("served_k = 5", "served_k = 0", "'scoring.served_k' is 0: input should be greater than or equal to 1"),
    ('rubric = "rubric.md"\n', "", "the key 'judge.rubric' is missing"),
    ("chunker = {words = 120, step = 50}", "", "documents alone need a chunker"),
    ('kind = "similarity"', 'kind = "similarty"', "similarty"),
    ("[scoring]", "[scoring", "not valid TOML"),
])
def test_a_bad_value_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load_config(_write(tmp_path, GOOD.replace(old, new, 1)))
    assert message in str(caught.value)
    assert "config.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_zone_and_a_missing_file(tmp_path: Path) -> None:
    bad = GOOD.replace('workspace = "w"', 'workspace = "w"\ntimezone = "Mars/Olympus"')
    with pytest.raises(ConfigError, match="'Mars/Olympus' is not an IANA time zone"):
        load_config(_write(tmp_path, bad))
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_config(tmp_path / "absent.toml")


def test_the_environment_names_the_review_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDSET_REVIEW_URL", "postgresql://u@h/db")
    assert load_config(_write(tmp_path, GOOD)).review_url == "postgresql://u@h/db"


@pytest.mark.parametrize(("old", "new", "allowed"), [
    ("[scoring]", '[review]\ndatabase = "postgresql://ada:hunter2@db/labels"\n[scoring]',
     "environment variable GOLDSET_REVIEW_URL"),
    ("[judge]", '[systems.shop]\nkind = "http"\nurl = "http://ada:hunter2@shop/?q={query}"\nids = "ids"\n[judge]',
     'Authorization = "Basic $NAME"'),
    ("[judge]", '[systems.shop]\nkind = "http"\nurl = "http://shop/?q={query}"\nids = "ids"\n'
     'headers = {X-Api-Key = "hunter2"}\n[judge]', 'X-Api-Key = "$NAME"'),
])
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path, old: str, new: str, allowed: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load_config(_write(tmp_path, GOOD.replace(old, new, 1)))
    assert allowed in str(caught.value)
    assert "hunter2" not in str(caught.value)
