"""``goldset compare``: what is said in the verdict line, and the questions that differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from goldset.formats.sets import load_set
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour


def test_the_questions_that_differ_are_shown(goldset: Goldset, beir: Path) -> None:
    asked = ["compare", beir, "--run", f"bad={beir / 'bad.run'}", "--run", f"good={beir / 'good.run'}", "--k", "1"]
    lines = goldset(*asked).out.splitlines()
    assert lines[3] == "verdict: good is better"
    assert lines[4].startswith("the questions that differ most (ranks of their gold in bad and good")
    assert lines[5] == "  +1.000  q0  which key opens locker 0  3 and 1"
    assert len(lines) == 5 + 5
    assert len(json.loads(goldset(*asked, "--json").out)["changed"]) == 30


def test_a_judge_of_the_same_family_stands_in_the_verdict_line(goldset: Goldset, harbour: Harbour,
                                                               tmp_path: Path) -> None:
    folder = tmp_path / "v1"
    shutil.copytree(harbour.published.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["judge"]["family"] = "lexical"
    manifest["systems"]["production"]["family"] = "lexical+minilm"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    run = harbour.path.parent / "production.run"
    asked = ["compare", folder, "--run", f"production={run}", "--run", f"other={run}", "--k", "2"]
    (verdict,) = [line for line in goldset(*asked).out.splitlines() if line.startswith("verdict: ")]
    assert verdict == "verdict: too few to tell; but judge not independent of production: both use lexical"
    assert json.loads(goldset(*asked, "--json").out)["warnings"] == [
        "judge not independent of production: both use lexical"]


def test_unlike_chunkings_at_the_same_k_stand_in_the_verdict_line(goldset: Goldset, harbour: Harbour,
                                                                  tmp_path: Path) -> None:
    # B returns whole documents: more words at the same k.
    golden.jsonl(tmp_path / "whole.jsonl", [
        {"chunk_id": f"whole-{row['doc_id']}", "doc_id": row["doc_id"], "text": row["text"], "start": 0,
         "end": len(row["text"])} for row in golden.documents()])
    run = harbour.path.parent / "production.run"
    corpus = load_set(harbour.published.path).corpus
    assert corpus is not None
    owners = {row["chunk_id"]: row["doc_id"] for row in corpus.chunks.to_pylist()}
    lists: dict[str, list[str]] = {}
    for line in run.read_text().splitlines():
        question, _, chunk, *_ = line.split()
        mine = lists.setdefault(question, [])
        if f"whole-{owners[chunk]}" not in mine:
            mine.append(f"whole-{owners[chunk]}")
    (tmp_path / "b.run").write_text("".join(f"{question} Q0 {name} {rank} 1 b\n" for question, names in lists.items()
                                            for rank, name in enumerate(names, 1)))
    asked = ["compare", harbour.published.path, "--run", f"a={run}", "--run", f"b={tmp_path / 'b.run'}", "--k", "1"]
    assert goldset(*asked).code == 3
    done = goldset(*asked, "--chunks", f"b={tmp_path / 'whole.jsonl'}", "--json")
    document = json.loads(done.out)
    assert (done.code, document["verdict"]) == (6, "too_few_to_tell")
    assert document["words_b"] > 1.25 * document["words_a"]
    assert document["recall_b"] >= document["recall_a"]
    assert document["warnings"][0].startswith("the systems serve ")
    assert "; but the systems serve" in goldset(*asked, "--chunks", f"b={tmp_path / 'whole.jsonl'}").out
    assert "no --run is called 'c'" in goldset(*asked, "--chunks", f"c={tmp_path / 'whole.jsonl'}").complaint


def test_two_versions_with_an_overlapping_panel(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    # The older panel has questions 0 to 19, the newer 10 to 29; all are found at rank 1 by good, at 3 by bad.
    for name, kept in (("old", range(20)), ("new", range(10, 30))):
        shutil.copytree(beir, tmp_path / name)
        (qrels,) = (tmp_path / name / "qrels").iterdir()
        head, *rows = qrels.read_text().splitlines()
        qrels.write_text("\n".join([head, *(row for row in rows if int(row.split("\t")[0][1:]) in kept)]) + "\n")
    asked = ["compare", tmp_path / "new", "--earlier", tmp_path / "old", "--k", "1"]
    both = [*asked, "--run", f"july={beir / 'bad.run'}", "--run", f"august={beir / 'good.run'}"]
    done = goldset(*both)
    assert (done.code, done.out.splitlines()) == (0, [
        # 0 of 20 and 20 of 20, whatever the overlap: Clopper-Pearson of each (METHODS 13, 20), joined.
        "recall@1 of july on old: 0.000, 20 questions; of august on new: 1.000, 20 questions",
        "difference: 1.000 (0.762 to 1.000), p < 0.001",  # 1 - sqrt(2) x .168433
        "  the 10 questions in both, paired: 1.000 (0.383 to 1.000), p = 0.002",  # 1 - 2 x .308497, 2 / 2^10
        "  the rest, unpaired (10 and 10 questions): 1.000 (0.564 to 1.000)",
        "smallest difference these versions can show: 0.340",
        "verdict: august on new is better"])
    document = json.loads(goldset(*both, "--json").out)
    assert (document["schema"], document["n_both"]) == ("goldset.compare/1", 10)
    # One run is measured on both.
    alone = goldset(*asked, "--run", f"s={beir / 'good.run'}")
    assert alone.code == 0
    assert "of s on old: 1.000" in alone.out
    assert "verdict: no difference shown" in alone.out
    # Other questions are no version of the set; one run without --earlier is none too few.
    (qrels,) = (tmp_path / "old" / "qrels").iterdir()
    qrels.write_text(qrels.read_text().replace("q", "z").replace("zuery", "query"))
    assert goldset(*both).code == 3
    assert goldset("compare", beir, "--k", "1", "--run", f"s={beir / 'good.run'}").code == 2


def test_unlike_chunkings_are_compared_at_a_budget_of_words(goldset: Goldset, tmp_path: Path) -> None:
    # 24 questions. A serves its gold of 2 words at rank 2, behind 5 words; B at rank 1, then 9 words.
    (tmp_path / "gold").write_text("".join(f"q{number} 0 gold 1\n" for number in range(24)))
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"_id": name, "text": "word " * words}) + "\n"
                                                   for name, words in (("gold", 2), ("five", 5), ("nine", 9))))
    for name, served in (("a", ["five", "gold"]), ("b", ["gold", "nine"])):
        (tmp_path / name).write_text("".join(f"q{number} Q0 {chunk} {rank} {9 - rank} s\n" for number in range(24)
                                             for rank, chunk in enumerate(served, 1)))
    asked = ["compare", "--qrels", tmp_path / "gold", "--corpus", tmp_path / "corpus.jsonl", "--run",
             f"a={tmp_path / 'a'}", "--run", f"b={tmp_path / 'b'}"]
    done = goldset(*asked, "--budget", "6")
    assert done.out.splitlines()[0] == "recall within 6 words of a: 0.000, of b: 1.000, on 24 questions"
    assert "verdict: b is better" in done.out
    document = json.loads(goldset(*asked, "--budget", "7", "--json").out)
    assert (document["recall_a"], document["recall_b"], document["k"], document["budget"]) == (1, 1, None, 7)
    assert (document["words_a"], document["words_b"]) == (7, 2)
    for wrong in ([], ["--k", "1", "--budget", "6"], ["--budget", "6", "--earlier", tmp_path / "gold"]):
        assert goldset(*asked, *wrong).code == 2
