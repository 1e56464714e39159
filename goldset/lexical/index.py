"""A BM25 index in memory, over ids, with the statistics that the audit's formulas read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from goldset.errors import DataError
from goldset.lexical.okapi import Floats, Mask, SparseOkapi, robertson_idf, top_rows


class BM25Index:
    """A BM25 index over ids, in id order, so that the order of the input changes neither scores nor ties.

    Attributes:
        ids: chunk ids, ascending; row i of every array belongs to ``ids[i]``.
        okapi: the statistics and postings behind it.
    """

    def __init__(self, ids: Sequence[str], okapi: SparseOkapi) -> None:
        self.ids = list(ids)
        self.okapi = okapi
        self._rows: dict[str, int] | None = None

    @classmethod
    def build(
        cls, ids: Sequence[str], tokens: Iterable[Sequence[str]], *, k1: float = 1.5, b: float = 0.75
    ) -> BM25Index:
        """Ids and their tokens -> index. Ids in ascending order are streamed; others are sorted first.

        Raises:
            DataError: an id occurs twice, or there are more or fewer token lists than ids.
        """
        ordered = sorted(ids)
        twice = next((a for a, c in pairwise(ordered) if a == c), None)
        if twice is not None:
            raise DataError(f"id '{twice}' is indexed twice; ids must be unique")
        if list(ids) != ordered:
            tokens = [words for _, words in sorted(zip(ids, tokens, strict=True), key=lambda pair: pair[0])]
        okapi = SparseOkapi(tokens, k1=k1, b=b)
        if okapi.corpus_size != len(ordered):
            raise DataError(f"{okapi.corpus_size} token lists for {len(ordered)} ids; every id needs one")
        return cls(ordered, okapi)

    def scores(self, query_tokens: Sequence[str]) -> Floats:
        """Score of every id, float64, in the order of ``ids``; 0 where no term is shared."""
        return self.okapi.get_scores(query_tokens)

    def search(
        self, query_tokens: Sequence[str], depth: int, *, visible: Mask | None = None
    ) -> list[tuple[str, float]]:
        """The ``depth`` best ids that share a term, with scores; ties by id; of the ``visible`` rows if given."""
        scores = self.okapi.get_scores(query_tokens)
        if visible is not None:
            scores[~visible] = 0.0
        return [(self.ids[row], float(scores[row])) for row in top_rows(scores, depth)]

    # Statistics, for other formulas over the same index.

    @property
    def n(self) -> int:
        """Number of indexed texts."""
        return int(self.okapi.corpus_size)

    @property
    def average_length(self) -> float:
        """Mean tokens a text, empty ones included."""
        return float(self.okapi.avgdl)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each text, in the order of ``ids``."""
        return np.asarray(self.okapi.doc_len)

    def row(self, chunk_id: str) -> int | None:
        """Row of an id, None if it is not indexed."""
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self.ids)}
        return self._rows.get(chunk_id)

    def df(self, token: str) -> int:
        """Number of texts that hold a token."""
        return len(self.okapi.found(token)[0])

    def idf(self, token: str) -> float:
        """The idf behind the scores: the library's, floored to be positive; 0 for a token that no text holds."""
        column = self.okapi.terms.get(token)
        return 0.0 if column is None else float(self.okapi.term_idf[column])

    def robertson_idf(self, token: str) -> float:
        """ln(1 + (N - n + .5) / (n + .5)) (leakage audit); 0 for a token that no text holds."""
        df = self.df(token)
        return robertson_idf(self.n, df) if df else 0.0

    def tf(self, token: str, chunk_id: str) -> int:
        """How often a text holds a token; 0 also where the id is not indexed."""
        row = self.row(chunk_id)
        if row is None:
            return 0
        rows, counts, _ = self.okapi.found(token)
        at = int(np.searchsorted(rows, row))
        return int(counts[at]) if at < len(rows) and rows[at] == row else 0

    def robertson_scores(self, query_tokens: Iterable[str], *, k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 with the never-negative idf over the *distinct* query tokens, one score a text."""
        scores = np.zeros(self.n)
        for token in sorted(set(query_tokens)):
            rows, counts, _ = self.okapi.found(token)
            if len(rows):
                tf = counts.astype(np.float64)
                norm = k1 * (1 - b + b * self.lengths[rows] / self.average_length)
                scores[rows] += robertson_idf(self.n, len(rows)) * tf * (k1 + 1) / (tf + norm)
        return scores
