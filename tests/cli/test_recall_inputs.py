"""``goldset recall`` on every form of input, and what it warns of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from goldset import recall
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
    assert json.loads(whole.out)["gate"]["verdict"] == "fail"
    monkeypatch.setattr("goldset.cli.common.LARGE", 10)
    parts = goldset(*asked, "--json", "--plot", tmp_path / "parts.svg")
    assert parts.err.splitlines()[-1] == f"plot: {tmp_path / 'parts.svg'}"
    assert (parts.code, json.loads(parts.out)) == (whole.code, json.loads(whole.out))
    assert "the files are large: their questions are read in parts" in parts.err
    # What only a look at the whole can settle is read at once after all, and refused with its line.
    twice = tmp_path / "twice.run"
    twice.write_text((beir / "bad.run").read_text() + (beir / "bad.run").read_text().splitlines()[0] + "\n")
    done = goldset("recall", "--qrels", qrels, "--run", f"s={twice}", "--k", "1")
    assert done.code == 3
    assert "stands in line 1 already" in done.complaint
    assert "all is read at once" in done.err


def test_an_empty_answer_and_a_missing_one_are_counted_apart(goldset: Goldset, tmp_path: Path) -> None:
    gold = {f"q{number}": {name: 1} for number, name in enumerate("abcd", 1)}
    (tmp_path / "gold.json").write_text(json.dumps(gold))
    # q1 and q2 found, q3 answered with nothing, q4 not in the run, q9 not in the set: 2 of 4.
    run = {"q1": {"a": 1.0}, "q2": {"b": 1.0}, "q3": {}, "q9": {"a": 1.0}}
    (tmp_path / "run.json").write_text(json.dumps(run))
    done = goldset("recall", "--qrels", tmp_path / "gold.json", "--run", f"s={tmp_path / 'run.json'}", "--k", "3",
                   "--json")
    rows = {row["measure"]: row for row in json.loads(done.out)["measurements"]}
    assert (rows["recall"]["value"], rows["recall"]["n"]) == (0.5, 4)
    counts = {"counted_empty": 1, "counted_missing": 1, "not_in_set": 1}
    assert rows["recall"]["excluded"] == counts
    assert rows["recall_ceiling"]["value"] == 0.75  # q4 alone: an empty answer is the system's own doing
    found = recall(gold, {question: list(chunks) for question, chunks in run.items()}, k=3)
    table = found.to_frame()
    assert table[table["measure"] == "recall"]["excluded"].iloc[0] == counts


def test_the_gate_says_which_end_decided(goldset: Goldset, tmp_path: Path) -> None:
    # 20 of 20 delivered by one system, .831567 to 1 (check 20 of METHODS), and none by the other, 0 to .168433.
    (tmp_path / "gold").write_text("".join(f"q{number} 0 d 1\n" for number in range(20)))
    for name in ("good", "bad"):
        (tmp_path / name).write_text("".join(f"q{number} Q0 {'d' if name == 'good' else f'x{number}'} 1 1 s\n"
                                             for number in range(20)) + "q99 Q0 d 1 1 s\n")
    asked = ["recall", "--qrels", tmp_path / "gold", "--k", "1", "--run"]
    for name, least, code, line in (
            ("good", "0.8", 0, "gate 0.8: s at 1: pass, the lower end 0.832 reaches it"),
            ("good", "0.9", 6, "gate 0.9: s at 1: undecided, it lies between 0.832 and 1.000"),
            ("bad", "0.2", 1, "gate 0.2: s at 1: fail, even the upper end 0.168 does not reach it")):
        done = goldset(*asked, f"s={tmp_path / name}", "--min", least)
        assert (done.code, done.out.splitlines()[-1]) == (code, line)
    (tmp_path / "gold").write_text("q1 0 d 1\n")
    done = goldset(*asked, f"s={tmp_path / 'good'}", "--min", "0.5")
    assert (done.code, done.out.splitlines()[-1]) == (6, "gate 0.5: s at 1: undecided, no interval (one question)")
    assert goldset(*asked, f"s={tmp_path / 'good'}", "--min", "80").code == 2


def test_words_stand_beside_recall_of_any_set_with_texts(goldset: Goldset, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "title": "On one", "text": "two three four"}\n'
                                           '{"_id": "b", "text": "five"}\n{"_id": "c", "text": "x y z"}\n')
    # Served at 2: q1 a (5 words) and b (1), q2 c (3) and one without a text. q9 is not a question of the set.
    (tmp_path / "run").write_text("q1 Q0 a 1 2 s\nq1 Q0 b 2 1 s\nq2 Q0 c 1 2 s\nq2 Q0 gone 2 1 s\nq9 Q0 c 1 1 s\n")
    asked = ["recall", "--qrels", tmp_path / "gold", "--corpus", tmp_path / "corpus.jsonl", "--run",
             f"s={tmp_path / 'run'}"]
    done = goldset(*asked, "--k", "2,1")
    assert "s serves 4 words at 1, s serves 4 words at 2 (1 passages without a text not counted)" in done.out
    rows = json.loads(goldset(*asked, "--k", "2", "--json").out)["words_served"]
    assert rows == [{"system": "s", "k": 2, "n": 2, "words": 4.5, "unknown": 1}]
    (tmp_path / "run").write_text("q1 Q0 a 1 2 s\nq1 Q0 b 2 1 s\nq2 Q0 c 1 2 s\n")
    assert "s serves 4 words within the budget" in goldset(*asked, "--budget", "5").out  # (5 + 3) / 2
