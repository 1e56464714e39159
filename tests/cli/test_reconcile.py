"""From plain recall over exported files to ours: by hand, and held against ir-measures and ``goldset recall``."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from goldset.formats.runs import read_run
from goldset.formats.sets import LabelledSet, load_set
from goldset.gold import export_set
from goldset.gold.exports import project
from goldset.metrics import score
from goldset.pipeline.reconcile import STEPS, reconcile
from goldset.text import question_id
from tests.cli.conftest import Goldset
from tests.cli.test_chunking import pairs
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour
from tests.test_served import DOC, chunks_of, gold_of, spans_of

__all__ = ["pairs"]

Lists = dict[str, list[tuple[str, float]]]

# Two results a question, over pairs of sentences (test_chunking.QRELS). REFUND has none.
LISTS: Lists = {
    golden.WINTER: [("ferry/1", 1.0), ("ferry/0", 2.0), ("weather/0", 3.0)],  # reranked, with the first stage's scores
    golden.BICYCLE: [("bikes/1", 2.0), ("parking/0", 1.0)],
    golden.GATE: [("pier/0", 2.0), ("ferry/0", 1.0)],
    golden.LOST: [("lost2/0", 2.0), ("dogs/0", 1.0)],
    golden.MUZZLE: [("dogs/0", 1.0)],
}


def write(path: Path, lists: Lists) -> Path:
    path.write_text("".join(f"{question_id(text)} Q0 {chunk} {rank} {value} s\n" for text, results in lists.items()
                            for rank, (chunk, value) in enumerate(results, 1)))
    return path


def by_others(folder: Path, run: Path, k: int) -> float:
    qrels: dict[str, dict[str, int]] = {}
    for question, _, chunk, grade in (line.split() for line in (folder / "qrels.txt").read_text().splitlines()):
        qrels.setdefault(question, {})[chunk] = int(grade)
    ranked: dict[str, dict[str, float]] = {}
    for question, _, chunk, _, value, _ in (line.split() for line in run.read_text().splitlines()):
        ranked.setdefault(question, {})[chunk] = float(value)
    measure = ir_measures.R @ k
    found: float = ir_measures.calc_aggregate([measure], qrels, ranked)[measure]
    return found


def ours(labelled: LabelledSet, run: Path, k: int, chunks: Any = None) -> float | None:
    rows = score(labelled, {"s": read_run(run, system="s")}, ks=[k], chunks=chunks).to_pylist()
    value: float | None = next(row["value"] for row in rows if row["measure"] == "recall")
    return value


def test_step_by_step_by_hand(goldset: Goldset, harbour: Harbour, pairs: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "s.run", LISTS)
    done = goldset("export", harbour.published.path, "--chunks", pairs, "--to", tmp_path / "out", "--run", f"s={run}",
                   "--k", "2")
    assert done.code == 0
    (found,) = json.loads((tmp_path / "out/export.json").read_text())["reconciled"]["s"]
    steps = {step["step"]: step for step in found["steps"]}
    assert list(steps) == list(STEPS)
    # By score weather and ferry/0 come first for WINTER: 0. BICYCLE 1, REFUND 0, GATE 1/2, LOST one of two twins,
    # MUZZLE 1.
    assert steps["plain"]["value"] == pytest.approx((0 + 1 + 0 + 1 / 2 + 1 / 2 + 1) / 6)
    assert steps["plain"]["value"] == pytest.approx(by_others(tmp_path / "out", run, 2))
    # By rank WINTER has 1.
    assert steps["order"] == {"step": "order", "value": pytest.approx(4 / 6), "questions": 6, "differ": 1}
    # MUZZLE's gold is a find of the sample.
    assert steps["sampled"] == {"step": "sampled", "value": pytest.approx(3 / 5), "questions": 5, "differ": 0}
    # Drawn 3, 2, 2, 1 and 2 times: (3 + 2 + 0 + 1/2 + 2/2) / 10.
    assert steps["draws"]["value"] == pytest.approx(0.65)
    # bikes/1 holds half of BICYCLE's evidence: 0. LOST's twins are one gold: 1. (3 + 0 + 0 + 1/2 + 2) / 10.
    assert steps["evidence"] == {"step": "evidence", "value": pytest.approx(0.55), "questions": 5, "differ": 2}
    recall = goldset("recall", harbour.published.path, "--chunks", pairs, "--run", f"s={run}", "--k", "2", "--json")
    rows = json.loads(recall.out)["measurements"]
    assert next(row["value"] for row in rows if row["measure"] == "recall") == pytest.approx(0.55)
    assert "s at 2, from these files to goldset recall:" in done.out
    assert [line.split()[0] for line in done.out.splitlines()[-5:]] == ["0.500", "0.667", "0.600", "0.650", "0.550"]


def test_both_ends_hold_for_any_run(harbour: Harbour, tmp_path: Path) -> None:
    # Forty runs of random length, order, and scores with many ties, over the version's own chunks.
    labelled = load_set(harbour.published.path)
    export_set(labelled, tmp_path)
    dice = random.Random(5)
    for _ in range(40):
        drawn = {text: dice.sample(sorted(golden.CHUNKS), dice.randrange(9)) for text in golden.ASKED}
        lists = {text: [(chunk, float(dice.randrange(4))) for chunk in chunks] for text, chunks in drawn.items()}
        run = write(tmp_path / "any.run", lists)
        for k in (1, 3):
            found = reconcile(labelled, read_run(run, system="s"), k=k)
            steps = {step["step"]: step["value"] for step in found["steps"]}
            assert steps["plain"] == pytest.approx(by_others(tmp_path, run, k))
            assert steps["evidence"] == pytest.approx(ours(labelled, run, k))


def test_a_cutoff_without_a_run_is_refused(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    done = goldset("export", harbour.published.path, "--to", tmp_path / "out", "--k", "5")
    assert done.code == 2
    assert "--k 5: cuts the list of a run; give it with --run NAME=FILE" in done.err
    assert not (tmp_path / "out").exists()


def test_a_pair_that_a_certain_gold_makes_relevant_is_certain() -> None:
    # One chunk delivers two golds of a question: one was read with certainty, one stands for five rejections.
    from goldset.formats.sets import Corpus

    own = chunks_of(DOC, ("d", 0, 100), ("d", 100, 300))
    made = spans_of(DOC, own)
    gold = gold_of(("q", "d#0-100", [(0, 20)]), ("q", "d#100-300", [(150, 160)]))
    weighed = gold.set_column(gold.schema.get_field_index("weight"), gold.schema.field("weight"), [[5.0, 1.0]])
    found = project(gold=weighed, corpus=Corpus(own, made.spans, made.links), chunks=chunks_of(DOC, ("d", 0, 300)))
    assert found.rows == [("q", "d:0-300", 1.0)]
