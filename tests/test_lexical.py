"""BM25: bit-equal to the library, floored where that is not positive, exact and reproducible at the cut."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from goldset.errors import DataError
from goldset.lexical import BM25Index, SparseOkapi, robertson_idf, top_rows
from goldset.text import tokenize


def _corpus(rng: random.Random) -> list[list[str]]:
    size, vocabulary = rng.randint(1, 40), rng.randint(1, 60)
    skew = rng.choice([0.4, 1.0, 1.6])
    weights = [1 / (rank + 1) ** skew for rank in range(vocabulary)]
    words = [f"w{rank}" for rank in range(vocabulary)]
    return [rng.choices(words, weights, k=rng.randint(0, 25)) for _ in range(size)]


def test_scores_equal_the_library_to_the_bit_where_its_idf_is_positive() -> None:
    rng = random.Random(5)
    compared = in_most_documents = exactly_half = 0
    for _ in range(1000):
        corpus = _corpus(rng)
        if not any(corpus):
            continue
        k1, b = rng.choice([(1.5, 0.75), (0.9, 0.4), (1.2, 0.0), (2.0, 0.9)])  # b = 1 divides by zero in the library
        library = BM25Okapi(corpus, k1=k1, b=b)
        ours = SparseOkapi(iter(corpus), k1=k1, b=b)
        assert list(ours.terms) == list(library.idf)
        df = {term: sum(term in document for document in corpus) for term in library.idf}
        kept = [term for term, idf in library.idf.items() if idf > 0]
        in_most_documents += sum(2 * df[term] > len(corpus) for term in kept)
        exactly_half += sum(2 * df[term] == len(corpus) for term in library.idf)
        for _ in range(3):
            # Tokens repeat, and one is in no document: both must behave as in the library.
            query = rng.choices([*kept, "nowhere"], k=rng.randint(1, 9))
            assert ours.get_scores(query).tobytes() == library.get_scores(query).tobytes()
            compared += 1
    # The comparison must have met the interesting terms: epsilon-floored ones, and those of idf 0.
    assert compared > 2900
    assert in_most_documents > 500
    assert exactly_half > 100


def test_any_corpus_in_any_order_equals_the_library_fed_in_the_order_of_the_ids() -> None:
    met = {"in more than half of the documents": 0, "compared": 0}

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.lists(st.sampled_from("aabcdefghijklmnop"), max_size=10), min_size=3, max_size=14),
           st.lists(st.sampled_from("aabcdefgz"), max_size=7), st.randoms(use_true_random=False))
    def check(corpus: list[list[str]], query: list[str], rng: random.Random) -> None:
        if not any(corpus):
            return
        library = BM25Okapi(corpus)
        mixed = [(f"d{number:02d}", words) for number, words in enumerate(corpus)]
        rng.shuffle(mixed)
        index = BM25Index.build([name for name, _ in mixed], [words for _, words in mixed])
        assert index.ids == sorted(index.ids)
        kept = [term for term in query if library.idf.get(term, 1) > 0]  # the floor is tested apart
        assert index.scores(kept).tobytes() == library.get_scores(kept).tobytes()
        met["in more than half of the documents"] += sum(2 * index.df(term) > len(corpus) for term in set(kept))
        met["compared"] += bool(kept)

    check()
    assert min(met.values()) > 0


def test_a_match_is_above_a_non_match_where_the_library_says_zero_or_less() -> None:
    # "windy" in 2 of 4 documents: ln(2.5) - ln(2.5) = 0. The others, in 1 of 4: ln(3.5/1.5) = .847298,
    # half of that is the floor.
    corpus = [["windy", "day"], ["windy", "night"], ["calm", "sea"], ["blue", "sky"]]
    assert BM25Okapi(corpus).get_scores(["windy"]).tolist() == [0, 0, 0, 0]
    index = BM25Index.build(["d1", "d2", "d3", "d4"], corpus)
    assert index.idf("windy") == pytest.approx(math.log(3.5 / 1.5) / 2, abs=1e-12)
    assert [found for found, _ in index.search(["windy"], 10)] == ["d1", "d2"]
    assert index.scores(["windy"])[2:].tolist() == [0, 0]


def test_without_any_positive_idf_the_floor_is_the_robertson_idf() -> None:
    # Two documents, both with both words: the library's idf is negative and its epsilon floor too.
    corpus = [["windy", "day"], ["windy", "day", "day"]]
    assert max(BM25Okapi(corpus).get_scores(["windy"])) < 0
    index = BM25Index.build(["a", "b"], corpus)
    # ln(1 + (2 - 2 + .5) / (2 + .5)) = ln(1.2)
    assert index.idf("windy") == pytest.approx(math.log(1.2), abs=1e-12)
    assert [found for found, _ in index.search(["windy"], 5)] == ["a", "b"]  # a is shorter


def test_two_documents_of_the_same_word_tie_by_id() -> None:
    index = BM25Index.build(["b", "a", "c"], [["windy"], ["windy"], ["other", "words"]])
    assert [found for found, _ in index.search(["windy"], 5)] == ["a", "b"]
    assert [found for found, _ in index.search(["windy"], 1)] == ["a"]


@pytest.mark.parametrize("corpus", [[], [[]], [[], [], []]])
def test_an_empty_corpus_and_empty_documents_find_nothing(corpus: list[list[str]]) -> None:
    index = BM25Index.build([f"d{i}" for i in range(len(corpus))], corpus)
    assert index.search(["real"], 10) == []
    assert index.scores(["real"]).tolist() == [0.0] * len(corpus)
    assert index.n == len(corpus)
    assert index.average_length == 0


def test_an_empty_document_among_others_counts_in_the_average_only() -> None:
    index = BM25Index.build(["empty", "full"], [tokenize("\u200b "), tokenize("real text")])
    assert [found for found, _ in index.search(["real"], 10)] == ["full"]
    assert index.search(tokenize(""), 10) == []
    assert index.average_length == 1.0  # (0 + 2) / 2
    full_length = BM25Index.build(["empty", "full"], [[], ["real"]], b=1.0)
    assert np.isfinite(full_length.scores(["real"])).all()


def test_scripts_without_spaces_are_found_by_bigrams() -> None:
    texts = {"doc1": "床前明月光", "doc2": "低头思故乡", "doc3": "Wi-Fi の設定", "doc4": "printer"}
    index = BM25Index.build(list(texts), [tokenize(text) for text in texts.values()])
    assert [found for found, _ in index.search(tokenize("故乡"), 10)] == ["doc2"]
    assert [found for found, _ in index.search(tokenize("設定 wi-fi"), 10)] == ["doc3"]
    assert tokenize("🍟➕🍔") == []
    assert index.search(tokenize("🍟➕🍔"), 10) == []


def test_strings_instead_of_token_lists_are_refused() -> None:
    with pytest.raises(DataError, match="a string where a list of tokens was expected"):
        BM25Index.build(["a"], ["not tokenised"])


def test_ids_must_be_unique_and_as_many_as_texts() -> None:
    with pytest.raises(DataError, match="id 'a' is indexed twice"):
        BM25Index.build(["a", "a"], [["x"], ["y"]])
    with pytest.raises(DataError, match="1 token lists for 2 ids"):
        BM25Index.build(["a", "b"], [["x"]])


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 45))
def test_top_rows_is_a_stable_sort_cut_at_the_depth(values: list[int], depth: int) -> None:
    scores = np.array(values, dtype=np.float64)
    positive = [row for row, value in enumerate(values) if value > 0]
    wanted = sorted(positive, key=lambda row: (-values[row], row))
    assert top_rows(scores, depth).tolist() == wanted[:depth]


@given(st.integers(0, 9999), st.integers(1, 40), st.sampled_from([0.02, 0.3, 1.0]))
def test_top_rows_of_many_rows_is_the_same_sort(seed: int, depth: int, share: float) -> None:
    # More groups of 64 rows than the depth: the cheap bar is used. Few values, so many ties.
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 6, 3000) * (rng.random(3000) < share) / 3
    wanted = sorted(np.flatnonzero(scores).tolist(), key=lambda row: (-scores[row], row))
    assert top_rows(scores, depth).tolist() == wanted[:depth]


@pytest.mark.parametrize("block", [1, 2, 7])
def test_blocks_change_no_bit(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = random.Random(block)
    for _ in range(30):
        corpus = _corpus(rng)
        whole = SparseOkapi(corpus)
        with monkeypatch.context() as patch:
            patch.setattr("goldset.lexical.okapi._BLOCK", block)
            cut = SparseOkapi(corpus)
        for part in ("starts", "rows", "frequencies"):
            one, other = getattr(whole.postings, part), getattr(cut.postings, part)
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
        assert whole.weights.tobytes() == cut.weights.tobytes()


@pytest.mark.parametrize("together", [0, 5, 40])
def test_a_very_long_query_is_added_in_the_same_order(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    rng = random.Random(together)
    monkeypatch.setattr("goldset.lexical.okapi._TOGETHER", together)
    for _ in range(50):
        corpus = [*_corpus(rng), ["w1"], ["v"], ["u"]]
        library = BM25Okapi(corpus)
        kept = [term for term, idf in library.idf.items() if idf > 0]
        query = rng.choices([*kept, "nowhere"], k=30)
        assert SparseOkapi(corpus).get_scores(query).tobytes() == library.get_scores(query).tobytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=12), st.randoms())
def test_the_order_of_the_input_changes_nothing(corpus: list[list[str]], rng: random.Random) -> None:
    ids = [f"d{i:02d}" for i in range(len(corpus))]
    mixed = list(zip(ids, corpus, strict=True))
    rng.shuffle(mixed)
    one = BM25Index.build(ids, corpus)
    other = BM25Index.build([name for name, _ in mixed], [words for _, words in mixed])
    for query in (["a"], ["a", "b", "b"], ["g", "f", "z"]):
        assert one.scores(query).tobytes() == other.scores(query).tobytes()
        assert one.search(query, 5) == other.search(query, 5)
        shared = {name for name, words in zip(ids, corpus, strict=True) if set(words) & set(query)}
        assert {name for name, _ in one.search(query, 100)} == shared  # all that share a term, no others


def test_only_visible_rows_are_returned() -> None:
    index = BM25Index.build(["a", "b", "c"], [["x"], ["x"], ["x", "y"]])
    assert [found for found, _ in index.search(["x"], 5, visible=np.array([False, True, True]))] == ["b", "c"]


def test_statistics_of_the_leakage_audit() -> None:
    # METHODS 13, 25: N = 1000, df 10 and 500, average length, k1 1.2, b .75.
    filler = [f"f{i}" for i in range(1000)]
    corpus = [(["rare"] if i < 10 else [filler[i]]) + (["half"] if i % 2 else ["other"]) for i in range(1000)]
    ids = [f"d{i:04d}" for i in range(1000)]
    index = BM25Index.build(ids, corpus)
    assert (index.df("rare"), index.df("half"), index.n, index.average_length) == (10, 500, 1000, 2.0)
    assert index.robertson_idf("rare") == pytest.approx(4.557380, abs=1e-6)
    assert index.robertson_idf("half") == pytest.approx(0.693147, abs=1e-6)
    assert index.robertson_idf("nowhere") == 0
    scores = index.robertson_scores(["rare", "half", "rare", "nowhere"])
    assert scores[0] == pytest.approx(4.557380, abs=1e-6)  # d0000 holds rare once and not half
    assert scores[0] / (2.2 * (4.557380 + 0.693147)) == pytest.approx(0.394539, abs=1e-6)
    assert (index.tf("rare", "d0000"), index.tf("rare", "d0010"), index.tf("rare", "absent")) == (1, 0, 0)
    assert robertson_idf(1000, 10) == index.robertson_idf("rare")
