"""Recall, reciprocal rank and nDCG of every question equal ir-measures and pytrec-eval on every real collection.

Definitions coincide where a question has gold. Minus the rank stands for the score, since both tools sort by score and
break ties their own way; ``tests/metrics/test_other_tools.py`` shows where we differ on purpose.
"""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pyarrow as pa
import pytest
import pytrec_eval

from goldset.formats.sets import LabelledSet, load_set
from goldset.formats.trec import read_run
from goldset.lexical import BM25Index
from goldset.metrics import per_question
from goldset.schemas import from_rows
from goldset.text import tokenize

COLLECTIONS = Path(__file__).resolve().parents[2] / ".." / "shared" / "collections"
pytestmark = [
    pytest.mark.collections,
    pytest.mark.skipif(not COLLECTIONS.is_dir(), reason="no folder ../shared/collections beside the checkout"),
]
DEPTH = 100


def _bm25(labelled: LabelledSet) -> pa.Table:
    assert labelled.corpus is not None
    assert labelled.questions is not None
    chunks = labelled.corpus.chunks
    texts = dict(zip(chunks.column("chunk_id").to_pylist(), chunks.column("text").to_pylist(), strict=True))
    index = BM25Index.build(sorted(texts), [tokenize(texts[chunk]) for chunk in sorted(texts)])
    return from_rows("run", [
        {"system": "bm25", "family": "lexical", "question_id": question["question_id"], "rank": rank,
         "chunk_id": chunk, "score": float(value)}
        for question in labelled.questions.to_pylist()
        for rank, (chunk, value) in enumerate(index.search(tokenize(question["query"]), DEPTH), 1)])


def _agree(labelled: LabelledSet, run: pa.Table, k: int) -> int:
    """Assert that all three tools say the same of each question; the number of questions compared."""
    threshold = labelled.relevant_from or 1
    qrels: dict[str, dict[str, int]] = {}
    for row in labelled.judgments.to_pylist():
        qrels.setdefault(row["question_id"], {})[row["span_id"]] = row["grade"]
    ranked: dict[str, dict[str, float]] = {question: {} for question in qrels}
    for row in run.to_pylist():
        if row["question_id"] in qrels:
            ranked[row["question_id"]][row["chunk_id"]] = -float(row["rank"])
    top = {question: {chunk: score for chunk, score in found.items() if score >= -k}
           for question, found in ranked.items()}
    one = pytrec_eval.RelevanceEvaluator(
        qrels, {f"recall.{k}", f"ndcg_cut.{k}"}, relevance_level=threshold).evaluate(ranked)
    first = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}, relevance_level=threshold).evaluate(top)
    asked = {"recall": ir_measures.R(rel=threshold) @ k, "mrr": ir_measures.RR(rel=threshold) @ k,
             "ndcg": ir_measures.nDCG @ k}
    other = {(str(found.measure), found.query_id): found.value
             for found in ir_measures.iter_calc(list(asked.values()), qrels, ranked)}
    compared = 0
    for row in per_question(labelled, run, k).to_pylist():
        if not row["gold"]:
            assert (row["recall"], row["mrr"], row["ndcg"]) == (None, None, None)
            continue
        question = row["question_id"]
        mine = {name: row[name] for name in asked}
        trec = {"recall": one.get(question, {}).get(f"recall_{k}", 0.0), "mrr": first.get(question, {}).get(
            "recip_rank", 0.0), "ndcg": one.get(question, {}).get(f"ndcg_cut_{k}", 0.0)}
        assert mine == pytest.approx(trec, abs=1e-9), question
        assert mine == pytest.approx({name: other.get((str(measure), question), 0.0)
                                      for name, measure in asked.items()}, abs=1e-9), question
        compared += 1
    return compared


# Questions with gold, counted in the files; haystack from grade 2, the others from 1.
@pytest.mark.parametrize(("name", "threshold", "questions"), [
    ("adi", None, 35), ("cranfield", 1, 225), ("cranfield", 3, None), ("medline", None, 30), ("vaswani", None, 93),
    ("mtrag", None, 482), ("chunk-spans", None, 472), ("haystack-rating-party", 1, None),
    ("haystack-rating-party", 2, None)])
def test_bm25_question_by_question(name: str, threshold: int | None, questions: int | None) -> None:
    labelled = load_set(COLLECTIONS / name, relevant_from=threshold)
    run = _bm25(labelled)
    for k in (1, 10, DEPTH):
        compared = _agree(labelled, run, k)
        assert compared == questions or (questions is None and compared > 100)


@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_all_runs_of_the_deep_learning_track(threshold: int) -> None:
    folder = COLLECTIONS / "trec-dl19-passage"
    labelled = load_set(folder, relevant_from=threshold)
    runs = sorted((folder / "runs").glob("*.run.gz"))
    assert len(runs) == 37
    for path in runs[:: 1 if threshold == 2 else 6]:
        run = read_run(path, system=path.name)
        for k in (10, 100):
            # all 43 questions have gold from grade 1 and 2; seven have none of grade 3
            assert _agree(labelled, run, k) == {1: 43, 2: 43, 3: 36}[threshold]


@pytest.mark.parametrize("threshold", [1, 2])
def test_labels_without_texts_ordered_by_a_judge(threshold: int, tmp_path: Path) -> None:
    """The 2020 labels come without texts and runs: a judge's grades order the pool of each question."""
    head, *rows = (line.split("\t") for line in (COLLECTIONS / "trec-dl20-labels" / "judge-labels.tsv").read_text(
        encoding="utf-8").splitlines())
    human, judge = head.index("human"), head.index("llama33_70b_4prompts")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("".join(f"{row[0]} 0 {row[1]} {row[human]}\n" for row in rows))
    ranked: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        if row[judge]:
            ranked.setdefault(row[0], []).append((-float(row[judge]), row[1]))
    run = tmp_path / "judge.run"
    run.write_text("".join(f"{question} Q0 {chunk} {rank} {-order} judge\n" for question, found in ranked.items()
                           for rank, (order, chunk) in enumerate(sorted(found), 1)))
    labelled = load_set(None, qrels=qrels, relevant_from=threshold)
    with_gold = {row[0] for row in rows if int(row[human]) >= threshold}
    for k in (1, 10, DEPTH):
        assert _agree(labelled, read_run(run, system="judge"), k) == len(with_gold) > 50
