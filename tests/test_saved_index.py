"""The index on disk: in shards or not the same bits, safe against kill and company, its key complete."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from goldset.errors import DataError
from goldset.lexical import BM25Index, SavedIndex, SparseOkapi, index_key
from goldset.text import Tokenizer

Found = list[list[tuple[str, float]]]


def _names(count: int) -> list[str]:
    return [f"d{number:04d}" for number in range(count)]


def _built(folder: Path, corpus: Sequence[Sequence[str]], shards: int = 1, **options: Any) -> SavedIndex:
    most = max(1, -(-len(corpus) // shards))
    return SavedIndex.build(folder, _names(len(corpus)), iter(corpus), most=most, **options)


def _corpus(rng: random.Random, size: int) -> list[list[str]]:
    """Zipf words; the commonest stand in most documents, new ones appear to the end."""
    weights = [1 / (rank + 1) for rank in range(80)]
    words = [f"w{rank}" for rank in range(80)]
    return [rng.choices(words, weights, k=rng.randint(0, 25)) for _ in range(size)]


def test_shards_give_the_bits_of_one_index_and_of_the_library(tmp_path: Path) -> None:
    rng = random.Random(11)
    in_most_documents = compared = 0
    for number in range(60):
        corpus = _corpus(rng, rng.choice([14, 28, 60, 63]))
        library, whole = BM25Okapi(corpus, k1=1.2, b=0.6), SparseOkapi(corpus, k1=1.2, b=0.6)
        kept = [term for term, idf in library.idf.items() if idf > 0]
        # Their weight comes from the average idf, a sum whose last bits depend on the order of the terms.
        floored = [term for term in kept if 2 * sum(term in document for document in corpus) > len(corpus)]
        in_most_documents += len(floored)
        queries = [floored, *(rng.choices([*kept, "nowhere"], k=8) for _ in range(3))]
        for shards in (1, 2, 3, 7):
            index = _built(tmp_path / f"{number}-{shards}", corpus, shards, k1=1.2, b=0.6)
            assert len(index.shard_ends) == shards
            for query, found in zip(queries, index.search(queries, len(corpus)), strict=True):
                scores = np.zeros(len(corpus))
                for name, score in found:
                    scores[int(name[1:])] = score
                assert scores.tobytes() == library.get_scores(query).tobytes() == whole.get_scores(query).tobytes()
                compared += 1
    assert compared == 60 * 4 * 4
    assert in_most_documents > 60


def test_any_corpus_in_any_shards_is_searched_as_one() -> None:
    met = {"in most documents": 0, "several shards": 0}

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), min_size=1, max_size=16),
           st.integers(1, 9), st.integers(1, 6), st.randoms(use_true_random=False))
    def check(corpus: list[list[str]], most: int, depth: int, rng: random.Random) -> None:
        names = _names(len(corpus))
        visible = [None, np.array([rng.random() < 0.6 for _ in corpus])] * 2
        queries = [["a"], ["b", "a", "b"], ["h", "z", "c"], []]
        one = BM25Index.build(names, corpus)
        with TemporaryDirectory() as folder:
            index = SavedIndex.build(Path(folder) / "index", names, corpus, most=most)
            found = index.search(queries, depth, visible=visible)
        assert found == [one.search(query, depth, visible=mask) for query, mask in zip(queries, visible, strict=True)]
        met["in most documents"] += sum(2 * one.df(term) > len(corpus) for term in "abch")
        met["several shards"] += len(index.shard_ends) > 1

    check()
    assert min(met.values()) > 0


def test_ties_at_the_cut_fall_to_the_chunk_id_across_shards(tmp_path: Path) -> None:
    # Seven equal texts in three shards, the best text in the last one.
    corpus = [["tie", "x"]] * 7 + [["tie", "tie"]] + [["other", "y"]] * 6
    for shards in (1, 3, 7):
        (found,) = _built(tmp_path / str(shards), corpus, shards).search([["tie"]], 4)
        assert [name for name, _ in found] == ["d0007", "d0000", "d0001", "d0002"]


@pytest.mark.parametrize("corpus", [[], [[]], [[], ["x"], [], []]])
def test_nothing_and_empty_texts_are_indexed_too(tmp_path: Path, corpus: list[list[str]]) -> None:
    for shards in (1, 3):
        index = _built(tmp_path / str(shards), corpus, shards)
        assert index.search([[], ["nowhere"]], 5) == [[], []]
        assert [name for name, _ in index.search([["x"]], 5)[0]] == ["d0001"] * (["x"] in corpus)
        assert index.search([], 5) == []


def test_a_frequency_above_a_byte_and_ids_as_they_are(tmp_path: Path) -> None:
    corpus = [["w"] * 300 + ["v"], ["v", "u"], ["t", "s"], ["r", "q"]]
    ids = ["007", "7", "a b", "é"]
    index = SavedIndex.build(tmp_path / "index", ids, corpus)
    assert index.search([["w"], ["r"]], 5) == [
        [("007", float(SparseOkapi(corpus).get_scores(["w"])[0]))],
        [("é", float(SparseOkapi(corpus).get_scores(["r"])[3]))]]


def test_an_opened_index_maps_its_files(tmp_path: Path) -> None:
    _built(tmp_path / "index", _corpus(random.Random(2), 40), 2)
    for shard in SavedIndex(tmp_path / "index")._shards():
        assert not shard.rows.flags.owndata
        assert not shard.weights.flags.owndata


@pytest.mark.parametrize(("ids", "corpus", "message"), [
    (["b", "a"], [["x"], ["y"]], "id 'a' follows 'b'; ids must ascend"),
    (["a", "a"], [["x"], ["y"]], "id 'a' follows 'a'"),
    (["a", "b"], [["x"]], "1 token lists for 2 ids"),
    (["a"], [["x"], ["y"]], "2 token lists for 1 ids"),
    (["a"], ["not tokenised"], "a string where a list of tokens was expected"),
])
def test_what_cannot_be_indexed_is_refused_and_leaves_nothing(
    tmp_path: Path, ids: list[str], corpus: list[Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        SavedIndex.build(tmp_path / "index", ids, corpus, most=1)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_or_foreign_index_is_refused(tmp_path: Path) -> None:
    index = _built(tmp_path / "index", [["x"], ["y"]], 2)
    with pytest.raises(DataError, match=r"with tokenizer words-.*delete it, it is rebuilt"):
        SavedIndex(tmp_path / "index", tokenizer="other/1")
    with pytest.raises(DataError, match="not a saved BM25 index"):
        SavedIndex(tmp_path / "nothing")
    (tmp_path / "index" / "shard-1" / "weights.arrow").write_bytes(b"half")
    with pytest.raises(DataError, match=r"shard-1: damaged .* it is rebuilt"):
        index.search([["x"]], 5)


_BUILD = """
import os, sys
from pathlib import Path
from goldset.lexical import SavedIndex

def tokens():
    for number in range(400):
        if number == 300 and sys.argv[2] == "killed":
            os.kill(os.getpid(), 9)
        yield [f"w{number % 7}", f"v{number}"]

SavedIndex.build(Path(sys.argv[1]), [f"d{number:04d}" for number in range(400)], tokens(), most=100)
"""


def _processes(folder: Path, *fates: str) -> Iterator[int]:
    started = [subprocess.Popen([sys.executable, "-c", _BUILD, str(folder), fate]) for fate in fates]
    for process in started:
        yield process.wait(timeout=60)


def test_a_killed_build_leaves_no_index_and_two_at_once_leave_one(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    assert list(_processes(folder, "killed")) == [-9]
    assert not folder.exists()
    assert list(_processes(folder, "whole", "whole")) == [0, 0]
    assert list(tmp_path.iterdir()) == [folder]  # and nothing of the killed one
    corpus = [[f"w{number % 7}", f"v{number}"] for number in range(400)]
    query = ["w3", "v9"]
    assert SavedIndex(folder).search([query], 9) == [BM25Index.build(_names(400), corpus).search(query, 9)]


def test_the_key_has_all_that_can_change_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(ids: list[str], texts: list[str], **options: Any) -> str:
        return index_key(ids, texts, **{"k1": 1.5, "b": 0.75, **options})

    base = key(["a", "b"], ["x y", "z"])
    assert base == key(["a", "b"], ["x y", "z"]) == key(["a", "b"], ["x y", "z"], tokenizer=Tokenizer().version)
    others = [
        key(["a", "c"], ["x y", "z"]),
        key(["a", "b"], ["x y", "zz"]),
        key(["a", "b"], ["x", "yz"]),
        key(["a", "b"], ["x y", "z"], k1=1.2),
        key(["a", "b"], ["x y", "z"], b=0.5),
        key(["a", "b"], ["x y", "z"], most=1),
        *(key(["a", "b"], ["x y", "z"], tokenizer=tokenizer.version) for tokenizer in (
            Tokenizer("en", stem=True), Tokenizer("de", stem=True), Tokenizer("en", stop_words=True),
            Tokenizer("de", stop_words=True), Tokenizer("en", stem=True, stop_words=True))),
    ]
    monkeypatch.setattr("goldset.lexical.saved.FORMAT", "bm25/0")
    others.append(key(["a", "b"], ["x y", "z"]))
    assert len({base, *others}) == 1 + len(others)
