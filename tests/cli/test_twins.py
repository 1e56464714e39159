"""``goldset twins``: the list as people read it, and the decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldset.cli.twins import difference
from tests.cli.conftest import Goldset
from tests.pipeline import golden

BOAT = "The night boat waits for the last train from the hills on every day but the first of May when it is laid up"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = golden.write(tmp_path / "harbour")
    texts = {"memo": BOAT, "note": BOAT.replace("first of May", "first of June")}
    for name in ("documents.jsonl", "chunks.jsonl"):
        with (path.parent / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"doc_id": doc, "chunk_id": doc, "text": text, "start": 0, "end": len(text)})
                            + "\n" for doc, text in texts.items())
    return path


MEMO, NOTE = f"memo#0-{len(BOAT)}", f"note#0-{len(BOAT) + 1}"


def test_list_merge_keep_undo(goldset: Goldset, config: Path) -> None:
    done = goldset("twins", "list", "-c", config)
    assert done.code == 0
    # 24 words, 22 runs of three; May stands in three of them: 19 of 25, less than the 0.8 that is listed.
    assert done.out.startswith("no two passages are almost the same")
    config.write_text(config.read_text().replace("[corpus]\n", "[corpus]\nmerge_near_twins = 0.75\n"))
    lines = goldset("twins", "list", "-c", config).out.splitlines()
    assert lines[0] == "1 pair of passages is almost the same: 0 open, 1 merged (judged as one), 0 kept apart"
    assert lines[2:6] == ["0.76 alike, merged by the configuration", f"  {MEMO}", f"  {NOTE}",
                          "    … every day but the first of [-May-] {+June+} when it is laid up"]
    assert goldset("twins", "keep", "-c", config, MEMO, NOTE, "--by", "ada").out == (
        f"{MEMO} and {NOTE} (0.76 alike): kept apart from the next rebuild on\n")
    (pair,) = json.loads(goldset("twins", "list", "-c", config, "--json").out)["pairs"]
    assert (pair["state"], pair["by"]) == ("kept", "ada")
    assert goldset("twins", "undo", "-c", config, NOTE, MEMO, "--by", "ben").code == 0
    assert goldset("twins", "undo", "-c", config, NOTE, MEMO, "--by", "ben").code == 2
    done = goldset("twins", "merge", "-c", config, "memo", NOTE, "--by", "ada")
    assert done.code == 3
    assert done.complaint.startswith("no span 'memo' in the corpus")
    assert goldset("twins", "merge", "-c", config, MEMO, NOTE).code == 2  # nobody decides without a name


def test_a_difference_reads_in_a_line() -> None:
    words = " ".join(f"w{i}" for i in range(30))
    changed = words.replace("w0 ", "").replace("w15", "X Y").replace("w29", "w29 w30")
    red, green, plain = "\x1b[31m", "\x1b[32m", "\x1b[0m"
    assert difference(words, changed) == (
        f"{red}[-w0-]{plain} w1 w2 w3 w4 w5 w6 … w9 w10 w11 w12 w13 w14 {red}[-w15-]{plain} {green}{{+X Y+}}{plain} "
        f"w16 w17 w18 w19 w20 w21 … w24 w25 w26 w27 w28 w29 {green}{{+w30+}}{plain}")
    assert difference("a b", "a  b") == "only white space differs"
