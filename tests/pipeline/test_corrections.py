"""The old headline taken apart, on the golden corpus (see golden.py).

Production delivers the gold of WINTER at rank 1 (its chunk ferry-b holds the sentence), of BICYCLE and REFUND at 2, of
GATE at 1 and 3, of LOST at 1, and never that of MUZZLE, which people found in the sample of the rejections. The draws
are 3, 2, 2, 1, 2 and 1.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from goldset.config import load_config
from goldset.errors import DataError
from goldset.pipeline import corrections as module
from goldset.pipeline.checks import split_runs
from goldset.pipeline.corrections import Step, corrections
from goldset.pipeline.story import table
from goldset.pipeline.supersede import superseded
from tests.pipeline.conftest import Harbour


@pytest.fixture
def one_gold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden set stands for the old one too, as if it had been labelled one gold a question."""
    monkeypatch.setattr(module, "ONE_GOLD", 0.0)


def _steps(harbour: Harbour, within: int | None = 10) -> list[Step]:
    labelled = harbour.published.outcome.labelled
    run: pa.Table = split_runs(harbour.artifacts.table("run"), ["production"])["production"]
    return corrections(labelled, run, labelled, run, evaluated=3, served=1, within=within)


def test_each_row_changes_one_thing(harbour: Harbour, one_gold: None) -> None:
    headline, k, questions, pool, completeness = _steps(harbour)
    # All gold within 3, without MUZZLE, which only enters by weight: each of the five questions is complete.
    assert (headline.k, headline.value) == (3, 1.0)
    # At 1: WINTER 1, BICYCLE 0, REFUND 0, GATE one of two, LOST 1: (3 + 0 + 0 + 0.5 + 2) / 10.
    assert k.k == 1
    assert k.value == pytest.approx(0.55)
    # One gold each, the best-ranked: GATE is complete, (3 + 1 + 2) / 10.
    assert questions.value == pytest.approx(0.6)
    assert pool.value == pytest.approx(0.6)
    assert completeness.value == k.value
    assert [step.n for step in _steps(harbour)] == [5] * 5


def test_the_old_way_leaves_out_what_production_does_not_rank_high(harbour: Harbour,
                                                                   one_gold: None) -> None:
    _, _, questions, pool, _ = _steps(harbour, within=1)
    assert (questions.value, questions.n) == (1.0, 3), "WINTER, GATE and LOST"
    assert pool.value == pytest.approx(0.6), "the others come back"
    assert pool.n == 5


def test_rows_are_those_that_the_old_way_of_labelling_has(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    # GATE has two gold passages of five questions with gold: four of five have one, which is not 90 %.
    assert [step.what for step in _steps(harbour)][2:] == ["questions and gold: people's own"]
    monkeypatch.setattr(module, "ONE_GOLD", 0.8)
    assert [step.what.split(":")[0] for step in _steps(harbour, within=None)][2:] == ["questions", "completeness"]
    assert len(_steps(harbour)) == 5


def test_a_version_says_what_it_replaces(harbour: Harbour, tmp_path: Path) -> None:
    labelled = harbour.published.outcome.labelled
    run = split_runs(harbour.artifacts.table("run"), ["production"])["production"]
    old = tmp_path / "old"
    (old / "qrels").mkdir(parents=True)
    (old / "qrels" / "test.tsv").write_text("".join(f"o{i}\tp{i}\t1\n" for i in range(12)))
    (old / "old.run").write_text("".join(f"o{i} Q0 {chunk} {rank} {9 - rank} production\n" for i in range(12)
                                         for rank, chunk in enumerate(("x", f"p{i}"), 1)))
    assert superseded(harbour.config, labelled, run) is None
    config = load_config(harbour.path, supersedes={"set": str(old), "run": str(old / "old.run")})
    found = superseded(config, labelled, run)
    assert found is not None
    assert found["set"] == "old"
    # Every old gold stands at rank 2; the golden project quotes and serves the k of its [scoring].
    assert set(found["verdicts"]) == {"integrity", "circularity", "leakage", "k_mismatch", "completeness"}
    steps = {step["what"]: step["value"] for step in found["steps"]}
    assert steps["the old headline"] == float((config.scoring.evaluated_k or config.scoring.served_k) >= 2)
    assert steps["k: as many results as the reader gets"] == float(config.scoring.served_k >= 2)
    empty = tmp_path / "empty.qrels"
    empty.write_text("o1 0 p1 0\n")
    with pytest.raises(DataError, match="no question has a relevant passage"):
        superseded(load_config(harbour.path, supersedes={"set": str(empty), "run": str(empty)}), labelled, run)
    page = tmp_path / "report.html"
    outcome = replace(harbour.published.outcome,
                      labelled=replace(labelled, manifest={**labelled.manifest, "supersedes": found}))
    outcome.write_html(page)
    assert "This version replaces old." in page.read_text(encoding="utf-8")
    assert "the old headline" in page.read_text(encoding="utf-8")


def test_the_table_shows_the_change_of_each_row(harbour: Harbour, one_gold: None) -> None:
    lines = table(_steps(harbour)).splitlines()
    assert [line.split()[-1] for line in lines[2:6]] == ["-0.450", "+0.050", "+0.000", "-0.050"]
    assert lines[1].startswith("the old headline")
    assert " 1.000 at 3 " in lines[1]
    assert max(map(len, lines)) <= 100
