"""rank-bm25's BM25Okapi with another memory: postings per term instead of a dict per document.

A query touches only the documents that hold its terms. Counting, idf and weights are functions of their own, so that
an index in shards goes through the same arithmetic.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi
from scipy import sparse

from goldset.errors import DataError

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

EPSILON = 0.25  # the library's default: share of the average idf that stands for a negative one
_TOGETHER = 1 << 24  # postings that are copied to be added in one product: 200 MB
_ROWS_A_GROUP = 64
_SMALLEST = float(np.nextafter(0.0, 1.0))
_BLOCK = 1 << 18  # tokens or postings at a time: bounds the temporaries


def robertson_idf(n: int, df: int) -> float:
    """ln(1 + (N - n + .5) / (n + .5)): never negative (Robertson and Spärck Jones, with the 1 added)."""
    return math.log(1 + (n - df + 0.5) / (df + 0.5))


class Vocabulary:
    """Terms numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__

    def __len__(self) -> int:
        return len(self._numbers)

    def numbered(self) -> dict[str, int]:
        """Term -> number, in that order."""
        return dict(self._numbers)

    def read(self, corpus: Iterable[Sequence[str]]) -> tuple[Longs, Postings]:
        """Token lists -> (tokens of each document, the documents of each term known by now)."""
        flat, lengths = array("i"), array("q")
        for tokens in corpus:
            if isinstance(tokens, str):
                raise DataError(
                    f"document {len(lengths)} is a string where a list of tokens was expected; "
                    "tokenise it first (goldset.text.tokenize)"
                )
            flat.extend(map(self._numbers.__getitem__, tokens))
            lengths.append(len(tokens))
        sizes = np.array(lengths, dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        numbers = np.frombuffer(flat, dtype=np.int32) if flat else np.empty(0, np.int32)
        ones = np.ones(len(numbers), np.int8)
        stream = sparse.csr_array((ones, numbers, ends), shape=(len(sizes), len(self._numbers)))
        grouped = stream.tocsc()  # a counting sort: within a term, documents ascend, repeats adjoin
        del stream, numbers, ones, flat
        return sizes, _fold(grouped.indices, grouped.indptr)


class Postings(NamedTuple):
    """Documents of each term: those of term t are ``rows[starts[t]:starts[t + 1]]``, ascending."""

    starts: Longs
    rows: Rows
    frequencies: npt.NDArray[Any]


def _fold(documents: Rows, starts: Longs) -> Postings:
    """Document of each token, term by term -> one posting for each term and document, with its frequency."""
    new = np.ones(len(documents), dtype=bool)
    np.not_equal(documents[1:], documents[:-1], out=new[1:])
    new[starts[:-1][starts[:-1] < len(documents)]] = True
    rows = documents[new].astype(np.int32, copy=False)
    frequencies, folded = np.empty(len(rows), np.int32), np.zeros(len(starts), np.int64)
    done, open_since = 0, 0  # postings before the block; where the last of them began
    for low in range(0, len(new), _BLOCK):  # in blocks: positions take eight bytes a token
        at = np.flatnonzero(new[low : low + _BLOCK]) + low
        inside = slice(*np.searchsorted(starts, (low, low + _BLOCK)))
        folded[inside] = done + np.searchsorted(at, starts[inside])
        if len(at):
            if done:
                frequencies[done - 1] = at[0] - open_since
            frequencies[done : done + len(at) - 1] = np.diff(at)
            done, open_since = done + len(at), int(at[-1])
    if done:
        frequencies[done - 1] = len(new) - open_since
    folded[starts == len(new)] = done
    return Postings(folded, rows, frequencies.astype(np.min_scalar_type(int(frequencies.max(initial=0)))))


def floored_idf(df: Mapping[str, int], n: int, epsilon: float = EPSILON) -> tuple[dict[str, float], float]:
    """Documents of each term, in the order of first occurrence -> (idf of each, the library's average idf).

    The library's own code, whose average is a sum in that order. Where its idf (after epsilon) is not positive it is
    floored: half the smallest positive idf, else ln(1 + (N - n + .5) / (n + .5)).
    """
    library = BM25Okapi.__new__(BM25Okapi)
    library.corpus_size, library.epsilon, library.idf, library.average_idf = n, epsilon, {}, 0.0
    if df:  # the library divides by the number of terms
        library._calc_idf(df)
    idf: dict[str, float] = library.idf
    positive = [value for value in idf.values() if value > 0]
    floor = min(positive) / 2 if positive else None
    for term, value in idf.items():
        if value <= 0:
            idf[term] = robertson_idf(n, df[term]) if floor is None else floor
    return idf, library.average_idf


def weigh(postings: Postings, idf: Floats, lengths: Longs, *, average_length: float, k1: float, b: float) -> Floats:
    """Weight of each posting: the library's expression, operation for operation.

    Another order of the operations would change last bits, so ties.
    """
    weights = np.repeat(idf, np.diff(postings.starts))
    if not average_length:
        return weights
    norm = k1 * (1 - b + b * lengths / average_length)
    for low in range(0, len(weights), _BLOCK):
        block = slice(low, low + _BLOCK)
        tf = postings.frequencies[block].astype(np.int64)
        weights[block] *= tf * (k1 + 1) / (tf + norm[postings.rows[block]])
    return weights


class SparseOkapi(BM25Okapi):  # type: ignore[misc]
    """BM25Okapi whose scores come from term-major postings.

    ``get_scores`` equals the library's to the bit for every term whose idf is positive there. Where the library's
    idf (after its epsilon) is not, it is floored, so that a match never ranks below a non-match: half the smallest
    positive idf, else ln(1 + (N - n + .5) / (n + .5)). A corpus without any token scores 0.
    """

    terms: dict[str, int]  # term -> number, in order of first occurrence
    postings: Postings
    weights: Floats  # one for each posting: idf times saturated term frequency
    term_idf: Floats

    def __init__(self, corpus: Iterable[Sequence[str]], *, k1: float = 1.5, b: float = 0.75) -> None:
        # The library's tokenizer argument starts a process pool; we tokenise ourselves.
        super().__init__(corpus, k1=k1, b=b, epsilon=EPSILON)

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        vocabulary = Vocabulary()
        self.doc_len, self.postings = vocabulary.read(corpus)
        self.terms = vocabulary.numbered()
        self.corpus_size = len(self.doc_len)
        self.avgdl = int(self.doc_len.sum()) / self.corpus_size if self.corpus_size else 0.0
        return dict(zip(self.terms, np.diff(self.postings.starts).tolist(), strict=True))

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf, self.average_idf = floored_idf(nd, self.corpus_size, self.epsilon)
        self.term_idf = np.array(list(self.idf.values()), dtype=np.float64)
        self.weights = weigh(
            self.postings, self.term_idf, self.doc_len, average_length=self.avgdl, k1=self.k1, b=self.b
        )

    def found(self, term: str) -> tuple[Rows, npt.NDArray[Any], Floats]:
        """(rows ascending, term frequencies, weights) of the documents with a term; empty if there are none."""
        number = self.terms.get(term)
        if number is None:
            return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)
        span = slice(self.postings.starts[number], self.postings.starts[number + 1])
        return self.postings.rows[span], self.postings.frequencies[span], self.weights[span]

    def get_scores(self, query: Sequence[str]) -> Floats:
        """Score of every document, summed in the order of the query's tokens; a repeat counts again."""
        found = [self.found(term) for term in query]
        return add_up([(rows, weights) for rows, _, weights in found], self.corpus_size)

    def get_batch_scores(self, query: Sequence[str], doc_ids: Sequence[int]) -> list[float]:
        """Scores of some documents, by row."""
        return [float(score) for score in self.get_scores(query)[np.asarray(doc_ids, dtype=np.int64)]]

    def get_top_n(self, query: Sequence[str], documents: Sequence[Any], n: int = 5) -> list[Any]:
        """The n best of ``documents``; ties by row, and a document that shares no term is left out."""
        if len(documents) != self.corpus_size:
            raise DataError(f"{len(documents)} documents for an index of {self.corpus_size}; pass the ones indexed")
        return [documents[row] for row in top_rows(self.get_scores(query), n)]


def add_up(terms: Sequence[tuple[Rows, Floats]], size: int) -> Floats:
    """(Rows, weights) of each term of a query -> score of each of ``size`` rows, added in the order of the terms."""
    ends = np.cumsum([0, *(len(rows) for rows, _ in terms)])
    together = int(np.searchsorted(ends, _TOGETHER, side="right")) - 1
    if together:
        rows, weights = (np.concatenate(parts) for parts in zip(*terms[:together], strict=True))
        # A column a term: the product with ones adds column after column, several times faster than indexing.
        starts = ends[: together + 1].astype(np.int32)  # as the rows, or they are copied
        matrix = sparse.csc_array((weights, rows, starts), shape=(size, together))
        scores: Floats = matrix @ np.ones(together)
    else:
        scores = np.zeros(size)
    for rows, weights in terms[together:]:  # of a very long query; not in a second product, which would add sums
        scores[rows] += weights
    return scores


def top_rows(scores: Floats, depth: int) -> Longs:
    """Rows of the ``depth`` best positive scores, best first, equal scores by row: exact and reproducible."""
    rows = np.flatnonzero(scores >= _low_bar(scores, depth))
    if len(rows) > depth:
        found = scores[rows]
        cut = np.partition(found, len(found) - depth)[len(found) - depth]
        above, ties = rows[found > cut], rows[found == cut]
        rows = np.concatenate([above, ties[: depth - len(above)]])
    return rows[np.lexsort((rows, -scores[rows]))]


def _low_bar(scores: Floats, depth: int) -> float:
    """A positive score that at least ``depth`` rows reach, if so many are positive; cheap, and close to the cut.

    Rows are put into groups, any groups: so many of them have a best row that reaches the ``depth``-th of all best.
    """
    groups = len(scores) // _ROWS_A_GROUP
    if groups >= depth:
        best = scores[: groups * _ROWS_A_GROUP].reshape(_ROWS_A_GROUP, groups).max(axis=0)
        bar = float(np.partition(best, groups - depth)[groups - depth])
        if bar > 0:
            return bar
    return _SMALLEST
