"""Recall on real collections: published numbers, and ir-measures on the same files."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from goldset.cli import main
from goldset.formats.sets import LabelledSet, load_set
from goldset.formats.trec import read_run, write_qrels, write_run
from goldset.lexical import BM25Index
from goldset.metrics import compare, score
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Questions
from goldset.metrics.results import Results
from goldset.schemas import from_rows
from goldset.text import tokenize

COLLECTIONS = Path(__file__).resolve().parents[2] / ".." / "shared" / "collections"
pytestmark = [
    pytest.mark.collections,
    pytest.mark.skipif(not COLLECTIONS.is_dir(), reason="no folder ../shared/collections beside the checkout"),
]


def _value(labelled: LabelledSet, runs: dict[str, object], measure: str, k: int) -> dict[str, float]:
    return {row["system"]: row["value"] for row in score(labelled, runs, ks=[k]).to_pylist()
            if row["measure"] == measure and row["slice"] == "all"}


def test_three_runs_of_the_deep_learning_track() -> None:
    folder = COLLECTIONS / "trec-dl19-passage"
    labelled = load_set(folder, relevant_from=2)
    names = ("bm25base_p", "p_bert", "runid2")
    runs = {name: read_run(folder / "runs" / f"{name}.run.gz", system=name) for name in names}
    found = {name: round(value, 3) for name, value in _value(labelled, dict(runs), "recall", 10).items()}
    assert found == {"bm25base_p": 0.175, "p_bert": 0.260, "runid2": 0.179}
    # every run's top 10 is fully judged
    assert _value(labelled, dict(runs), "unjudged", 10) == dict.fromkeys(names, 0.0)
    # p_bert finds more than runid2: the opposite of what their own pools say
    assert compare(labelled, runs["runid2"], runs["p_bert"], 10, names=("runid2", "p_bert"))["verdict"] == "better"


def test_graded_ndcg_and_mrr_as_ir_measures() -> None:
    folder = COLLECTIONS / "trec-dl19-passage"
    labelled = load_set(folder, relevant_from=2)
    run = read_run(folder / "runs" / "bm25base_p.run.gz", system="s")
    qrels = [ir_measures.Qrel(row["question_id"], row["span_id"], row["grade"])
             for row in labelled.judgments.to_pylist()]
    # ir-measures orders by score; minus the rank is the order that we were given
    ranked = [ir_measures.ScoredDoc(row["question_id"], row["chunk_id"], -row["rank"]) for row in run.to_pylist()]
    oracle = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.RR(rel=2) @ 10], qrels, ranked)
    assert _value(labelled, {"s": run}, "ndcg", 10)["s"] == pytest.approx(oracle[ir_measures.nDCG @ 10], abs=1e-6)
    assert _value(labelled, {"s": run}, "mrr", 10)["s"] == pytest.approx(oracle[ir_measures.RR(rel=2) @ 10], abs=1e-6)


@pytest.mark.parametrize(("name", "threshold"), [("adi", None), ("cranfield", 1), ("medline", None), ("vaswani", None)])
def test_recall_of_bm25_as_ir_measures(name: str, threshold: int | None, tmp_path: Path) -> None:
    labelled = load_set(COLLECTIONS / name, relevant_from=threshold)
    assert labelled.corpus is not None
    assert labelled.questions is not None
    chunks = labelled.corpus.chunks
    ids = sorted(zip(chunks.column("chunk_id").to_pylist(), chunks.column("text").to_pylist(), strict=True))
    index = BM25Index.build([chunk for chunk, _ in ids], [tokenize(text) for _, text in ids])
    rows = []
    for question in labelled.questions.to_pylist():
        for rank, (chunk, value) in enumerate(index.search(tokenize(question["query"]), 100), 1):
            rows.append({"system": "bm25", "family": "lexical", "question_id": question["question_id"], "rank": rank,
                         "chunk_id": chunk, "score": float(value)})
    run = from_rows("run", rows)
    write_run(run, tmp_path / "bm25.run")
    write_qrels(labelled.judgments, tmp_path / "qrels.txt")
    # Minus the rank stands for the score: the other tool re-sorts by score and breaks ties its own way.
    oracle = {
        metric.query_id: metric.value for metric in ir_measures.iter_calc(
            [ir_measures.R(rel=threshold or 1) @ 10],
            ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")),  # type: ignore[no-untyped-call]
            [ir_measures.ScoredDoc(row["question_id"], row["chunk_id"], -row["rank"]) for row in rows])}
    back = read_run(tmp_path / "bm25.run", system="bm25")
    questions = Questions.of(labelled)
    got = Cut(Results.of("bm25", questions, back), 10).got
    ours = {question: delivered / gold
            for question, delivered, gold in zip(questions.ids, got, questions.gold, strict=True) if gold > 0}
    assert len(ours) > 25
    for question, value in ours.items():
        assert value == pytest.approx(oracle.get(question, 0.0), abs=1e-9), question
    mean = float(np.mean([oracle.get(question, 0.0) for question in ours]))
    assert 0.05 < mean < 1
    assert _value(labelled, {"bm25": back}, "recall", 10)["bm25"] == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(("system", "expected"), [("bm25base_p", 0.175), ("p_bert", 0.260), ("runid2", 0.179)])
def test_the_command_gives_the_known_answer(system: str, expected: float, capsys: pytest.CaptureFixture[str]) -> None:
    folder = COLLECTIONS / "trec-dl19-passage"
    with pytest.raises(SystemExit) as stop:
        main(["recall", str(folder), "--run", f"{system}={folder / 'runs' / f'{system}.run.gz'}", "--k", "10",
              "--relevant-from", "2", "--json"])
    assert stop.value.code == 0
    document = json.loads(capsys.readouterr().out)
    row = next(row for row in document["measurements"]
               if (row["measure"], row["k"], row["slice"]) == ("recall", 10, "all"))
    assert round(row["value"], 3) == expected
    assert (row["system"], row["n"], document["relevant_from"]) == (system, 43, 2)
