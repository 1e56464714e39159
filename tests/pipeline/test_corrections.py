"""The old headline taken apart, on the golden corpus (see golden.py).

Production delivers the gold of WINTER at rank 1 (its chunk ferry-b holds the sentence), of BICYCLE and REFUND at 2, of
GATE at 1 and 3, of LOST at 1, and never that of MUZZLE, which people found in the sample of the rejections. The draws
are 3, 2, 2, 1, 2 and 1.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from goldset.pipeline import corrections as module
from goldset.pipeline.checks import split_runs
from goldset.pipeline.corrections import Step, corrections
from goldset.pipeline.story import table
from tests.pipeline.conftest import Harbour


def _steps(harbour: Harbour) -> list[Step]:
    labelled = harbour.published.outcome.labelled
    run: pa.Table = split_runs(harbour.artifacts.table("run"), ["production"])["production"]
    return corrections(labelled, run, labelled, run, evaluated=3, served=1)


def test_each_row_changes_one_thing(harbour: Harbour) -> None:
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
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OLD_RULE", 1)
    _, _, questions, pool, _ = _steps(harbour)
    assert (questions.value, questions.n) == (1.0, 3), "WINTER, GATE and LOST"
    assert pool.value == pytest.approx(0.6), "the others come back"
    assert pool.n == 5


def test_the_table_shows_the_change_of_each_row(harbour: Harbour) -> None:
    lines = table(_steps(harbour)).splitlines()
    assert [line.split()[-1] for line in lines[2:6]] == ["-0.450", "+0.050", "+0.000", "-0.050"]
    assert lines[1].startswith("the old headline")
    assert " 1.000 at 3 " in lines[1]
    assert max(map(len, lines)) <= 100
