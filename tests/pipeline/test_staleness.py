"""A set against the documents as they are now: kept, moved, changed, missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldset.errors import DataError
from goldset.formats.sets import load_set
from goldset.pipeline.staleness import aged
from tests.cli.conftest import Goldset, beir, goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour, harbour

__all__ = ["beir", "goldset", "harbour"]


def test_a_foreign_set_is_compared_passage_by_passage(beir: Path, tmp_path: Path, goldset: Goldset) -> None:
    rows = [json.loads(line) for line in (beir / "corpus.jsonl").read_text().splitlines()]
    texts = {row["_id"]: row["text"] for row in rows}
    now = {name: text for name, text in texts.items() if name != "d3"}
    now["other"] = now.pop("d1")
    now["d2"] = "Locker 2 was taken away."
    now["d4"] = now["d4"].upper().replace(" ", "  ")  # case and white space are no change
    path = tmp_path / "now.jsonl"
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in now.items()))
    found = aged(load_set(beir), path)
    assert (found.moved, found.changed, found.missing) == ((("q1", "d1"),), (("q2", "d2"),), (("q3", "d3"),))
    done = goldset("audit", beir, "--documents", path)
    assert "[fail] staleness: outdated. 27 of 30 gold passages stand in" in done.out
    assert "1 moved, 1 changed, 1 missing" in " ".join(done.out.split())


def test_a_set_without_texts_cannot_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "set.qrels"
    path.write_text("q1 0 d1 1\n")
    with pytest.raises(DataError, match="no texts to compare with --documents"):
        aged(load_set(path), tmp_path / "now.jsonl")


def test_a_version_is_found_again_by_its_evidence(harbour: Harbour, tmp_path: Path) -> None:
    labelled = load_set(harbour.published.path)
    rows = golden.documents()
    path = tmp_path / "documents.jsonl"

    def write(change: dict[str, str | None]) -> Path:
        kept = [{**row, "text": change.get(row["doc_id"], row["text"])} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept if row["text"] is not None))
        return path

    assert not any((aged(labelled, write({})).moved, aged(labelled, path).changed, aged(labelled, path).missing))
    text = {row["doc_id"]: row["text"] for row in rows}
    # The evidence of BICYCLE stands in bikes: a sentence before it moves it; without the document it is missing.
    found = aged(labelled, write({"bikes": "A new first sentence stands here now. " + text["bikes"]}))
    assert {pair[1].split("#")[0] for pair in found.moved} == {"bikes"}
    assert not found.changed
    assert not found.missing
    found = aged(labelled, write({"bikes": None}))
    assert {pair[1].split("#")[0] for pair in found.missing} == {"bikes"}
    assert not found.moved
