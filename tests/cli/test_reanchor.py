"""``goldset reanchor`` on the golden project: documents edited, renamed, and a sentence gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldset.formats.sets import load_set
from goldset.text import question_id
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour

NOTICE = "Prices and times may change without a notice."


def _texts() -> dict[str, str]:
    texts = {name: " ".join(sentences) for name, sentences in golden.DOCUMENTS.items()}
    texts["ferry"] = f"{NOTICE} {texts['ferry']}"                        # WINTER's sentence moves
    texts["fares"] = texts.pop("tickets")                                # REFUND's two stand in a renamed document
    texts["bikes"] = texts["bikes"].replace("three crowns", "four crowns")  # BICYCLE's is changed
    texts["pier"] = texts["pier"].replace(f"{golden.LONG['pier'][6]} ", "")  # one of GATE's two is gone
    return texts


@pytest.fixture
def now(tmp_path: Path) -> Path:
    """The documents as they are now, and chunks of them: halves at the middle sentence."""
    texts = _texts()
    golden.jsonl(tmp_path / "now.jsonl", ({"doc_id": name, "text": text} for name, text in texts.items()))
    rows = []
    for name, text in texts.items():
        middle = text.index(". ", len(text) // 2) + 2 if len(text) > 150 else len(text)
        rows += [{"chunk_id": f"{name}/{part}", "doc_id": name, "text": text[slice(*place)], "start": place[0],
                  "end": place[1]} for part, place in enumerate(((0, middle), (middle, len(text))))
                 if place[0] < place[1]]
    golden.jsonl(tmp_path / "halves.jsonl", rows)
    return tmp_path / "now.jsonl"


def test_nothing_changed_is_nothing_moved(goldset: Goldset, harbour: Harbour) -> None:
    done = goldset("reanchor", harbour.published.path, "--documents", harbour.path.parent / "documents.jsonl")
    assert done.code == 0
    # WINTER, LOST, MUZZLE 1 each, REFUND and GATE 2, BICYCLE 2 (ben found another sentence); only GATE's lie in two
    # spans.
    assert done.out == ("harbour/v1: 9 evidence ranges of 7 gold spans; 9 kept, 0 moved, 0 moved and changed, "
                        "0 stale\n")


def test_every_range_is_accounted_for(goldset: Goldset, harbour: Harbour, now: Path) -> None:
    done = goldset("reanchor", harbour.published.path, "--documents", now, "--json")
    assert done.code == 1
    document = json.loads(done.out)
    assert document["schema"] == "goldset.reanchor/1"
    # Kept: MUZZLE, LOST, and pier[0], which stands before what was cut out of the pier. Moved: WINTER, REFUND's two,
    # and bikes[2], which stands behind a word that is shorter now.
    assert document["counts"] == {"ranges": 9, "kept": 3, "moved": 4, "changed": 1, "stale": 1}
    texts = _texts()
    found = {(row["question_id"], row["start"]): row for row in document["ranges"]}
    row = found[question_id(golden.WINTER), golden.place("ferry", 3)[0]]
    assert texts["ferry"][row["new_start"] : row["new_end"]] == golden.LONG["ferry"][3]
    row = found[question_id(golden.REFUND), golden.place("tickets", 5)[0]]
    assert (row["new_doc_id"], row["new_start"]) == ("fares", golden.place("tickets", 5)[0])
    row = found[question_id(golden.BICYCLE), golden.place("bikes", 1)[0]]
    # Eight words, one changed: 14 / 16.
    assert (row["status"], row["similarity"]) == ("moved", pytest.approx(14 / 16))
    assert texts["bikes"][row["new_start"] : row["new_end"]] == "A bicycle costs four crowns for each passage."
    assert found[question_id(golden.GATE), golden.place("pier", 6)[0]]["status"] == "stale"
    text = goldset("reanchor", harbour.published.path, "--documents", now).out
    assert "1 of 7 gold spans are stale" in text
    assert "similarity 0.88" in text


def test_the_copy_is_a_version_on_the_new_text(goldset: Goldset, harbour: Harbour, now: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    asked = ["reanchor", harbour.published.path, "--documents", now, "--to", target]
    assert "--chunks FILE" in goldset(*asked).complaint
    done = goldset(*asked, "--chunks", now.parent / "halves.jsonl")
    assert done.code == 1
    assert done.err == f"written: {target}\n"
    copy = load_set(target)
    assert copy.corpus is not None
    spans = {row["span_id"]: row for row in copy.corpus.spans.to_pylist()}
    answers = set()
    for row in copy.gold.to_pylist():
        span = spans[row["span_id"]]
        for part in row["evidence"]:
            assert span["start"] < part["end"]
            assert part["start"] < span["end"] or row["question_id"] == question_id(golden.REFUND)  # it lies in two
            answers.add(_texts()[span["doc_id"]][part["start"] : part["end"]])
    wanted = {golden.DOCUMENTS[doc_id][number] for found in golden.FOUND.values() for doc_id, number in found}
    wanted |= {golden.DOCUMENTS[doc_id][number] for found in golden.BEN_TOO.values() for doc_id, number in found}
    changed = {golden.LONG["pier"][6], golden.LONG["bikes"][1]}
    assert answers == (wanted - changed) | {"A bicycle costs four crowns for each passage."}
    # Refusals whose text still is one span: weather, dogs and parking, which did not change, and the second half of
    # ferry, which the notice moved. What was refused in bikes and pier must be read again.
    refused = {(row["question_id"], row["span_id"]) for row in copy.judgments.to_pylist() if row["relevant"] is False}
    before = {(row["question_id"], row["span_id"]) for row in load_set(harbour.published.path).judgments.to_pylist()
              if row["relevant"] is False}
    start, end = (int(at) + len(NOTICE) + 1 for at in golden.F2.split("#")[1].split("-"))
    assert refused == {pair for pair in before if pair[1].split("#")[0] in golden.SHORT} | {
        (question_id(golden.WINTER), f"ferry#{start}-{end}")}
    assert len(refused) >= 3
    # The stale gold is named, and every output says that it is gone.
    run = tmp_path / "halves.run"
    run.write_text(f"{question_id(golden.WINTER)} Q0 ferry/0 1 1.0 x\n")
    recall = goldset("recall", target, "--run", f"x={run}", "--k", "1")
    assert "1 of 7 gold spans are stale and left out" in recall.out
    # Nothing is ever overwritten.
    again = goldset(*asked, "--chunks", now.parent / "halves.jsonl")
    assert again.code == 2
    assert "exists already and is not overwritten" in again.complaint


def test_only_versions_are_anchored(goldset: Goldset, beir: Path, now: Path) -> None:
    done = goldset("reanchor", beir, "--documents", now)
    assert done.code == 3
    assert "is no published version (it is beir)" in done.complaint
    assert goldset("reanchor", beir, "--documents", now, "--chunks", now).code == 2


def test_other_field_names_are_given(goldset: Goldset, harbour: Harbour, now: Path, tmp_path: Path) -> None:
    def renamed(path: Path, names: dict[str, str]) -> Path:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        golden.jsonl(tmp_path / f"other-{path.name}", [{names.get(key, key): value for key, value in row.items()}
                                                       for row in rows])
        return tmp_path / f"other-{path.name}"

    halves = now.parent / "halves.jsonl"
    plain = goldset("reanchor", harbour.published.path, "--documents", now, "--to", tmp_path / "plain",
                    "--chunks", halves)
    documents, chunks = renamed(now, {"doc_id": "_id", "text": "body"}), renamed(halves, {"chunk_id": "id"})
    asked = ["reanchor", harbour.published.path, "--documents", documents]
    assert goldset(*asked).code == 3
    asked += ["--document-fields", "id=_id,text=body"]
    done = goldset(*asked, "--to", tmp_path / "named", "--chunks", chunks, "--fields", "id=id")
    assert (done.code, done.out) == (1, plain.out)
    plain_hash, named_hash = (json.loads((tmp_path / name / "manifest.json").read_text())["content_hash"]
                              for name in ("plain", "named"))
    assert plain_hash == named_hash
    assert goldset(*asked, "--fields", "id=id").code == 2
    wrong = goldset(*asked[:-1], "_id=id")
    assert wrong.code == 2
    assert "a document has no '_id'" in wrong.complaint
