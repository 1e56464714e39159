"""Reciprocal rank fusion: sums by hand, weights, families, scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldset.retrievers import build_retrievers, retrieve
from goldset.retrievers.base import Answer
from goldset.retrievers.hybrid import HybridRetriever
from goldset.retrievers.scope import KnownChunks, Scopes
from tests.retrievers.tables import (
    KNOWN,
    TEXTS,
    Fixed,
    chunks_table,
    documents_table,
    lists,
    make_config,
    questions_table,
    states,
)


def test_hybrid_adds_reciprocal_ranks_over_lists_four_times_as_deep() -> None:
    def ranked(*chunks: str) -> Answer:
        return Answer(chunks, [None] * len(chunks))

    a = Fixed(
        "a",
        {
            "q1": ranked("x", "y", "z"),
            "q2": ranked("x"),
            "q3": Answer(status="no_tokens"),
            "q4": Answer(status="failed", detail="HTTP 500"),
            "q5": ranked(),
        },
    )
    b = Fixed(
        "b", {"q1": ranked("y", "x", "w"), "q2": ranked("y"), "q3": ranked("v"), "q4": ranked("v"), "q5": ranked()}
    )
    questions = questions_table("1", "2", "3", "4", "5")
    run, status = HybridRetriever("h", "a+b", parts=[a, b], weights=[1, 1], known=KNOWN).search(questions, 3)
    assert (a.asked, b.asked) == (12, 12)
    scores = {(row["question_id"], row["chunk_id"]): row["score"] for row in run.to_pylist()}
    # x: 1/61 + 1/62, y: 1/62 + 1/61: a tie, by id; then z and w, both 1/63, and the depth ends the list.
    assert lists(run)["q1"] == ["x", "y", "w"]
    assert scores["q1", "x"] == pytest.approx(1 / 61 + 1 / 62, abs=1e-12)
    assert scores["q1", "w"] == pytest.approx(1 / 63, abs=1e-12)
    assert lists(run)["q2"] == ["x", "y"]
    assert states(status) == {
        "q1": ("ok", None),
        "q2": ("ok", None),
        "q3": ("ok", "a: no_tokens"),
        "q4": ("failed", "a: failed"),
        "q5": ("empty", None),
    }
    # Weighted: b counts twice, so y (2/61 + 1/62) passes x (1/61 + 2/62); with k = 1: y 1 + 1/3, x 1/2 + 2/3.
    weighted, _ = HybridRetriever("h", "a+b", parts=[a, b], weights=[1, 2], known=KNOWN, k=1).search(questions, 3)
    assert lists(weighted)["q1"] == ["y", "x", "w"]
    assert weighted.column("score")[0].as_py() == pytest.approx(4 / 3)


def test_hybrid_of_the_configuration_has_the_union_of_the_families(tmp_path: Path) -> None:
    config = make_config(
        tmp_path,
        {
            "one": {"kind": "bm25"},
            "two": {"kind": "bm25", "family": "short", "b": 0.1},
            "both": {"kind": "hybrid", "of": ["one", "two"]},
        },
    )
    systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    assert list(systems) == ["one", "two", "both"]
    run, _ = retrieve(questions=questions_table("reset the printer"), retrievers=systems, depth=50)
    assert {(row["system"], row["family"]) for row in run.to_pylist()} == {
        ("one", "lexical"),
        ("two", "short"),
        ("both", "lexical+short"),
    }


def test_what_a_part_returns_beyond_the_scope_is_not_fused() -> None:
    """Tenant north sees c01 and c02 of d01: the part's first two are not hers, and keep their ranks in its list."""
    leaky = Fixed("leaky", {"q1": Answer(["c03", "c04", "c02", "c01"], [None] * 4)})
    strict = Fixed("strict", {"q1": Answer(["c01"], [None])})
    known = KnownChunks(list(TEXTS), Scopes(documents_table(), chunks_table().column("doc_id").to_pylist()))
    hybrid = HybridRetriever("h", "x", parts=[leaky, strict], weights=[2, 1], known=known)
    run, _ = hybrid.search(questions_table(("one", {"tenant": "north"})), 4)
    assert lists(run) == {"q1": ["c01", "c02"]}
    assert run.column("score").to_pylist() == pytest.approx([2 / 64 + 1 / 61, 2 / 63])


@pytest.mark.parametrize(("changes", "said"), [
    ({"weights": [1.0]}, "weights: 1 for 2 systems"), ({"weights": [1.0, 0.0]}, "greater than 0"),
    ({"of": ["a", "old"]}, "'old' is an old labelled set and ranks nothing"), ({"of": ["a", "c"]}, "no system 'c'")])
def test_a_hybrid_that_cannot_be(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    systems = {"a": {"kind": "bm25"}, "b": {"kind": "bm25"}, "old": {"kind": "gold_set", "path": "x"}}
    with pytest.raises(ValueError, match=said):
        make_config(tmp_path, {**systems, "h": {"kind": "hybrid", "of": ["a", "b"], **changes}})
