"""``goldset recall`` on every form of input, and what it warns of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from goldset.formats.sets import load_set
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour


def _recall(out: str) -> dict[str, float]:
    return {row["measure"]: row["value"] for row in json.loads(out)["measurements"] if row["slice"] == "all"}


def test_json_qrels_and_runs_are_scored_as_their_trec_twins(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    lists: dict[str, dict[str, float]] = {}
    for line in (beir / "bad.run").read_text().splitlines():
        question, _, chunk, _, value, _ = line.split()
        lists.setdefault(question, {})[chunk] = float(value)
    (tmp_path / "qrels.json.gz").write_bytes(gzip.compress(json.dumps(
        {f"q{i}": {f"d{i}": 1} for i in range(30)}).encode()))
    (tmp_path / "run.json").write_text(json.dumps(lists))
    wanted = _recall(goldset("recall", beir, "--run", f"bad={beir / 'bad.run'}", "--k", "2,3", "--json").out)
    found = _recall(goldset("recall", "--qrels", tmp_path / "qrels.json.gz", "--run", f"bad={tmp_path / 'run.json'}",
                            "--k", "2,3", "--json").out)
    assert (found["recall"], found["unjudged"]) == (wanted["recall"], wanted["unjudged"])
    assert found["recall"] == 1.0


def test_another_chunking_of_the_same_documents(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    # Whole documents as chunks: the document of a gold span holds its evidence, so one list of them delivers it all.
    documents = golden.documents()
    golden.jsonl(tmp_path / "chunks.jsonl", [
        {"chunk_id": f"whole-{row['doc_id']}", "doc_id": row["doc_id"], "text": row["text"], "start": 0,
         "end": len(row["text"])} for row in documents])
    gold = load_set(harbour.published.path).gold.to_pylist()
    lists: dict[str, list[str]] = {}
    for row in gold:
        name = f"whole-{row['span_id'].partition('#')[0]}"
        if name not in lists.setdefault(row["question_id"], []):
            lists[row["question_id"]].append(name)
    (tmp_path / "a.run").write_text("".join(f"{question} Q0 {name} {rank} 1 a\n" for question, names in lists.items()
                                            for rank, name in enumerate(names, 1)))
    asked = ["recall", harbour.published.path, "--run", f"a={tmp_path / 'a.run'}", "--k", "5"]
    assert "0 of" in goldset(*asked).complaint
    done = goldset(*asked, "--chunks", tmp_path / "chunks.jsonl", "--json")
    assert (done.code, _recall(done.out)["recall"]) == (0, 1.0)
    assert json.loads(done.out)["words_served"][0]["words"] > 0


def test_a_foreign_set_has_no_other_chunking(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    golden.jsonl(tmp_path / "chunks.jsonl", [{"chunk_id": "c", "doc_id": "d0", "text": "some words"}])
    done = goldset("recall", beir, "--run", f"a={beir / 'good.run'}", "--k", "1", "--chunks", tmp_path / "chunks.jsonl")
    assert done.code == 2
    assert "only a published version can be scored under another chunking" in done.complaint


def test_the_text_warns_of_ceiling_ties_and_unjudged(goldset: Goldset, beir: Path) -> None:
    # d0 leaves the corpus, q29 the run; every score is the same.
    corpus = beir / "corpus.jsonl"
    corpus.write_text("".join(line for line in corpus.read_text().splitlines(keepends=True) if '"d0"' not in line))
    lines = [line.split() for line in (beir / "bad.run").read_text().splitlines() if not line.startswith("q29 ")]
    (beir / "flat.run").write_text("".join(f"{q} Q0 {chunk} {rank} 1.0 t\n" for q, _, chunk, rank, _, _ in lines))
    done = goldset("recall", beir, "--run", f"flat={beir / 'flat.run'}", "--k", "2")
    assert done.code == 0
    # 28 of 30 golds can be found
    assert "warning: flat: recall cannot exceed 0.933 (gold is not in the corpus: 1 question; not in the run: 1 " \
           "question)" in done.out
    assert "warning: flat: equal scores straddle the cut at 2, 29 questions" in done.out
    assert "warning: flat: nobody judged 100.0% of what it serves in its first 2" in done.out
    rows = {line.split()[1]: line.split()[3] for line in done.out.splitlines() if line.startswith("flat ")}
    assert float(rows["recall@2"]) == 0.0
    assert float(rows["recall_ties_low@2"]) == 0.0
    assert float(rows["recall_ties_high@2"]) == pytest.approx(29 / 30, abs=1e-3)


def test_large_files_are_read_in_parts_and_say_the_same(goldset: Goldset, beir: Path, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    (qrels,) = (beir / "qrels").iterdir()
    asked = ["recall", "--qrels", qrels, "--run", f"bad={beir / 'bad.run'}", "--run", f"good={beir / 'good.run'}",
             "--k", "1,3", "--min", "0.9"]
    whole = goldset(*asked, "--json")
    monkeypatch.setattr("goldset.cli.common.LARGE", 10)
    parts = goldset(*asked, "--json")
    assert (parts.code, json.loads(parts.out)) == (whole.code, json.loads(whole.out))
    assert "the files are large: their questions are read in parts" in parts.err
    # What only a look at the whole can settle is read at once after all, and refused with its line.
    twice = tmp_path / "twice.run"
    twice.write_text((beir / "bad.run").read_text() + (beir / "bad.run").read_text().splitlines()[0] + "\n")
    done = goldset("recall", "--qrels", qrels, "--run", f"s={twice}", "--k", "1")
    assert done.code == 3
    assert "stands in line 1 already" in done.complaint
    assert "all is read at once" in done.err
