"""BM25 over token lists: rank-bm25's statistics and formula, stored and scored through a sparse matrix.

``SparseOkapi`` is the library's class with another memory: postings per term instead of a dict per document,
so that a query touches only the documents that hold its terms. ``BM25Index`` adds chunk ids, an exact top-k with
ties by id, and a folder on disk.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rank_bm25 import BM25Okapi
from scipy import sparse

from goldset.errors import DataError
from goldset.store import staged_folder, write_json
from goldset.text import TOKENIZER_VERSION, content_hash

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

FORMAT = "bm25/1"


def robertson_idf(n: int, df: int) -> float:
    """ln(1 + (N - n + .5) / (n + .5)): never negative (Robertson and Spärck Jones, with the 1 added)."""
    return math.log(1 + (n - df + 0.5) / (df + 0.5))


class SparseOkapi(BM25Okapi):  # type: ignore[misc]
    """BM25Okapi whose scores come from term-major postings.

    ``get_scores`` equals the library's to the bit for every term whose idf is positive there. Where the library's
    idf (after its epsilon) is not, it is floored, so that a match never ranks below a non-match: half the smallest
    positive idf, else ln(1 + (N - n + .5) / (n + .5)). A corpus without any token scores 0.
    """

    terms: Mapping[str, int]  # term -> column, in order of first occurrence
    weights: sparse.csc_array  # documents x terms, float64: idf times saturated term frequency
    frequencies: npt.NDArray[Any]  # term frequencies, one for each stored weight
    term_idf: Floats

    def __init__(self, corpus: Iterable[Sequence[str]], *, k1: float = 1.5, b: float = 0.75) -> None:
        # The library's tokenizer argument starts a process pool; we tokenise ourselves.
        super().__init__(corpus, k1=k1, b=b)

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        counter: defaultdict[str, int] = defaultdict()
        counter.default_factory = counter.__len__
        flat, lengths = array("i"), array("q")
        for tokens in corpus:
            if isinstance(tokens, str):
                raise DataError(
                    f"document {len(lengths)} is a string where a list of tokens was expected; "
                    "tokenise it first (goldset.text.tokenize)"
                )
            flat.extend(map(counter.__getitem__, tokens))
            lengths.append(len(tokens))
        self.terms = dict(counter)
        self.doc_len = np.array(lengths, dtype=np.int64)
        self.corpus_size = len(lengths)
        self.avgdl = len(flat) / self.corpus_size if self.corpus_size else 0.0
        columns = np.frombuffer(flat, dtype=np.int32) if flat else np.empty(0, np.int32)
        starts, rows = self._fold(columns)
        return dict(zip(self.terms, np.diff(starts).tolist(), strict=True)) if len(rows) else {}

    def _fold(self, columns: Rows) -> tuple[npt.NDArray[np.int64], Rows]:
        """Token stream, document after document -> one posting for each term and document, with its frequency."""
        shape = (self.corpus_size, len(self.terms))
        ends = np.concatenate([[0], np.cumsum(self.doc_len)])
        stream = sparse.csr_array((np.ones(len(columns), np.int8), columns, ends), shape=shape)
        grouped = stream.tocsc()  # a counting sort: within a term, documents ascend, repeats adjoin
        new = np.ones(len(columns), dtype=bool)
        new[1:] = grouped.indices[1:] != grouped.indices[:-1]
        first = grouped.indptr[:-1]
        new[first[first < len(columns)]] = True
        at = np.flatnonzero(new)
        counts = np.diff(np.append(at, len(columns)))
        self.frequencies = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        starts = np.searchsorted(at, grouped.indptr).astype(np.int64)
        rows = grouped.indices[at].astype(np.int32)
        self.weights = sparse.csc_array((np.zeros(len(rows)), rows, starts), shape=shape)
        return starts, rows

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.average_idf = 0.0
        if nd:  # the library divides by the number of terms
            super()._calc_idf(nd)
        positive = [value for value in self.idf.values() if value > 0]
        floor = min(positive) / 2 if positive else None
        for term, value in self.idf.items():
            if value <= 0:
                self.idf[term] = robertson_idf(self.corpus_size, nd[term]) if floor is None else floor
        self.term_idf = np.array([self.idf[term] for term in self.terms], dtype=np.float64)
        self._fill_weights()

    def _fill_weights(self) -> None:
        """The library's expression, operation for operation: another order would change last bits, so ties."""
        if not self.avgdl:
            return
        norm = self.k1 * (1 - self.b + self.b * self.doc_len / self.avgdl)
        rows = self.weights.indices
        self.weights.data = data = np.repeat(self.term_idf, np.diff(self.weights.indptr))
        for low in range(0, len(data), 1 << 22):  # in blocks: bounds the temporaries
            block = slice(low, low + (1 << 22))
            tf = self.frequencies[block].astype(np.int64)
            data[block] *= tf * (self.k1 + 1) / (tf + norm[rows[block]])

    def postings(self, term: str) -> tuple[Rows, npt.NDArray[Any], Floats]:
        """(rows ascending, term frequencies, weights) of the documents with a term; empty if there are none."""
        column = self.terms.get(term)
        if column is None:
            return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)
        span = slice(self.weights.indptr[column], self.weights.indptr[column + 1])
        return self.weights.indices[span], self.frequencies[span], self.weights.data[span]

    def get_scores(self, query: Sequence[str]) -> Floats:
        """Score of every document, summed in the order of the query's tokens; a repeat counts again."""
        scores = np.zeros(self.corpus_size)
        for term in query:
            rows, _, weights = self.postings(term)
            scores[rows] += weights  # rows of one term are distinct
        return scores

    def get_batch_scores(self, query: Sequence[str], doc_ids: Sequence[int]) -> list[float]:
        """Scores of some documents, by row."""
        return [float(score) for score in self.get_scores(query)[np.asarray(doc_ids, dtype=np.int64)]]

    def get_top_n(self, query: Sequence[str], documents: Sequence[Any], n: int = 5) -> list[Any]:
        """The n best of ``documents``; ties by row, and a document that shares no term is left out."""
        if len(documents) != self.corpus_size:
            raise DataError(f"{len(documents)} documents for an index of {self.corpus_size}; pass the ones indexed")
        return [documents[row] for row in top_rows(self.get_scores(query), n)]


def top_rows(scores: Floats, depth: int) -> npt.NDArray[np.int64]:
    """Rows of the ``depth`` best positive scores, best first, equal scores by row: exact and reproducible."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > depth:
        found = scores[rows]
        cut = np.partition(found, len(found) - depth)[len(found) - depth]
        above, ties = rows[found > cut], rows[found == cut]
        rows = np.concatenate([above, ties[: depth - len(above)]])
    return rows[np.lexsort((rows, -scores[rows]))]


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
        return len(self.okapi.postings(token)[0])

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
        rows, counts, _ = self.okapi.postings(token)
        at = int(np.searchsorted(rows, row))
        return int(counts[at]) if at < len(rows) and rows[at] == row else 0

    def robertson_scores(self, query_tokens: Iterable[str], *, k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 with the never-negative idf over the *distinct* query tokens, one score a text."""
        scores = np.zeros(self.n)
        for token in sorted(set(query_tokens)):
            rows, counts, _ = self.okapi.postings(token)
            if len(rows):
                tf = counts.astype(np.float64)
                norm = k1 * (1 - b + b * self.lengths[rows] / self.average_length)
                scores[rows] += robertson_idf(self.n, len(rows)) * tf * (k1 + 1) / (tf + norm)
        return scores

    # On disk: three Arrow files that are mapped, not read, and meta.json.

    def save(self, folder: Path) -> None:
        """Write the index as a folder, aside then renamed; a folder that exists is left as it is."""
        okapi = self.okapi
        with staged_folder(folder) as aside:
            _write(aside / "ids.arrow", {"id": pa.array(self.ids, pa.string()), "length": okapi.doc_len})
            _write(
                aside / "terms.arrow",
                {
                    "term": pa.array(list(okapi.terms), pa.string()),
                    "idf": okapi.term_idf,
                    "end": okapi.weights.indptr[1:].astype(np.int64),
                },
            )
            _write(
                aside / "postings.arrow",
                {"row": okapi.weights.indices, "tf": okapi.frequencies, "weight": okapi.weights.data},
            )
            write_json(
                aside / "meta.json",
                {
                    "format": FORMAT,
                    "tokenizer": TOKENIZER_VERSION,
                    "k1": okapi.k1,
                    "b": okapi.b,
                    "epsilon": okapi.epsilon,
                    "texts": self.n,
                    "average_length": okapi.avgdl,
                    "average_idf": okapi.average_idf,
                },
            )

    @classmethod
    def load(cls, folder: Path) -> BM25Index:
        """A saved index; postings stay on disk, mapped into memory.

        Raises:
            DataError: the folder is missing, damaged, or of another format or tokenizer.
        """
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            ids, terms, postings = (_read(folder / f"{name}.arrow") for name in ("ids", "terms", "postings"))
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise DataError(f"{folder}: not a saved BM25 index ({error}); delete it, it is rebuilt") from error
        wanted = {"format": FORMAT, "tokenizer": TOKENIZER_VERSION}
        if any(meta.get(key) != value for key, value in wanted.items()):
            raise DataError(
                f"{folder}: index of {meta.get('format')} with tokenizer {meta.get('tokenizer')}, "
                f"this version reads {FORMAT} with {TOKENIZER_VERSION}; delete it, it is rebuilt"
            )
        okapi = SparseOkapi.__new__(SparseOkapi)
        okapi.k1, okapi.b, okapi.epsilon = meta["k1"], meta["b"], meta["epsilon"]
        okapi.corpus_size, okapi.avgdl, okapi.average_idf = meta["texts"], meta["average_length"], meta["average_idf"]
        okapi.tokenizer, okapi.doc_freqs = None, []
        okapi.doc_len, okapi.term_idf = _numpy(ids, "length"), _numpy(terms, "idf")
        names = terms.column("term").to_pylist()
        okapi.terms = {term: column for column, term in enumerate(names)}
        okapi.idf = dict(zip(names, okapi.term_idf.tolist(), strict=True))
        okapi.frequencies = _numpy(postings, "tf")
        starts = np.concatenate([[0], _numpy(terms, "end")]).astype(np.int64)
        matrix = sparse.csc_array((okapi.corpus_size, len(names)), dtype=np.float64)
        # Set one by one: the constructor would copy the mapped arrays to unify index types.
        matrix.indptr, matrix.indices, matrix.data = starts, _numpy(postings, "row"), _numpy(postings, "weight")
        okapi.weights = matrix
        return cls(ids.column("id").to_pylist(), okapi)


def index_key(ids: Sequence[str], texts: Iterable[str], *, k1: float, b: float) -> str:
    """Name of the folder of a saved index: hash of all that can change it, the tokenizer's version included."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(content_hash(FORMAT, TOKENIZER_VERSION, k1, b).encode())
    for chunk_id, text in zip(ids, texts, strict=True):
        for part in (chunk_id, text):
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


def _write(path: Path, columns: dict[str, Any]) -> None:
    table = pa.table(
        {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)  # one batch: the columns come back as single mapped arrays


def _read(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _numpy(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column = table.column(name)
    values: npt.NDArray[Any] = column.chunk(0).to_numpy() if column.num_chunks else column.to_numpy()
    return values
