"""A run file: looked up by rank; what is odd about it is said, what is wrong is refused with its line."""

from __future__ import annotations

import gzip
import json
import logging
import re
from pathlib import Path

import pytest

from goldset.errors import DataError
from goldset.retrievers import build_retrievers
from goldset.retrievers.runfile import RunFileRetriever
from goldset.retrievers.scope import KnownChunks, Scopes
from tests.retrievers.tables import (
    KNOWN,
    TEXTS,
    chunks_table,
    documents_table,
    lists,
    make_config,
    questions_table,
    run_file,
    states,
)


def test_a_run_file_is_looked_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_file(
        tmp_path / "p.run",
        [
            ("q1", "c02", 2, 0.5),
            ("q1", "c01", 1, 0.9),
            ("q1", "gone", 3, 0.4),
            ("q1", "c03", 4, 0.1),
            ("q9", "c03", 1, 1.0),
        ],
    )
    config = make_config(tmp_path, {"production": {"kind": "run", "path": "p.run"}})
    with caplog.at_level(logging.WARNING):
        systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    assert "[systems.production] has no family, so its own name is taken" in caplog.text
    run, status = systems["production"].search(questions_table("one", "two"), 3)
    # The unknown id keeps the slot it had: whoever was served it got nothing else there.
    assert lists(run) == {"q1": ["c01", "c02", "gone"]}
    assert set(run.column("family").to_pylist()) == {"production"}
    assert states(status) == {
        "q1": ("ok", "1 of 3 ids are no chunk of this corpus"),
        "q2": ("missing", "not in the run file"),
    }


def test_a_run_file_of_another_corpus_or_sample_is_refused(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"production": {"kind": "run", "path": "p.run", "family": "x"}})
    run_file(tmp_path / "p.run", [("q1", "1", 1, 0.9), ("q1", "2", 2, 0.8)])
    system = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
        "production"
    ]
    with pytest.raises(DataError, match=r"\[systems.production\]: 0 of 2 returned ids resolve .* e.g. '1' .*'c01'"):
        system.search(questions_table("one"), 10)
    run_file(tmp_path / "p.run", [("77", "c01", 1, 0.9)])
    system = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
        "production"
    ]
    with pytest.raises(DataError, match=r"p.run: 0 of 1 questions are in the run.*'77'.*'q1'"):
        system.search(questions_table("one"), 10)


@pytest.mark.parametrize("suffix", [".run", ".run.gz", ".jsonl"])
def test_ranks_that_count_from_0_are_shifted_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    rows = [("q1", "c02", 1, 0.5), ("q1", "c01", 0, 0.9)]
    path = tmp_path / f"p{suffix}"
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps({"question_id": q, "chunk_id": c, "rank": r}) + "\n" for q, c, r, _ in rows))
    else:
        run_file(tmp_path / "p.run", rows)
    if suffix.endswith(".gz"):
        path.write_bytes(gzip.compress((tmp_path / "p.run").read_bytes()))
    known = KnownChunks(list(TEXTS), Scopes(documents_table({}), []))
    with caplog.at_level(logging.WARNING):
        run, _ = RunFileRetriever("p", "x", path=path, known=known).search(questions_table("one"), 5)
    assert [(row["rank"], row["chunk_id"]) for row in run.to_pylist()] == [(1, "c01"), (2, "c02")]
    assert caplog.messages == [f"[systems.p] {path}: ranks count from 0 and are read as from 1"]
    caplog.clear()
    run_file(tmp_path / "one.run", [("q1", "c02", 1, 0.5)])
    RunFileRetriever("p", "x", path=tmp_path / "one.run", known=known).search(questions_table("one"), 5)
    assert caplog.messages == []


def test_score_and_rank_order_that_disagree_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # q1: the second has the higher score; q2: equal scores do not disagree; q3: only beyond the depth.
    path = run_file(tmp_path / "p.run", [
        ("q1", "c01", 1, 0.5), ("q1", "c02", 2, 0.9), ("q2", "c01", 1, 0.5), ("q2", "c02", 2, 0.5),
        ("q3", "c01", 1, 0.5), ("q3", "c02", 2, 0.4), ("q3", "c03", 3, 0.9)])
    known = KnownChunks(list(TEXTS), Scopes(documents_table({}), []))
    with caplog.at_level(logging.WARNING):
        run, status = RunFileRetriever("p", "x", path=path, known=known).search(questions_table("a", "b", "c"), 2)
    assert lists(run)["q1"] == ["c01", "c02"]
    assert states(status) == {"q1": ("ok", "score and rank order disagree; the rank decides"), "q2": ("ok", None),
                              "q3": ("ok", None)}
    assert caplog.messages == [
        f"[systems.p] {path}: score and rank order disagree; the rank decides: in 1 of 3 questions, first in 'q1'"]


@pytest.mark.parametrize(("line", "said"), [
    ("q1 Q0 c03 1 0.1 t", "line 3: rank 1 of question 'q1' stands in line 1 already"),
    ("q1 Q0 c01 3 0.1 t", "line 3: chunk 'c01' of question 'q1' stands in line 1 already")])
def test_what_repeats_in_a_run_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = run_file(tmp_path / "p.run", [("q1", "c01", 1, 0.9), ("q1", "c02", 2, 0.5)])
    path.write_text(path.read_text() + line + "\n")
    packed = tmp_path / "p.run.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        with pytest.raises(DataError, match=f"{re.escape(str(one))}, {said}"):
            RunFileRetriever("p", "x", path=one, known=KNOWN).search(questions_table("one"), 5)
