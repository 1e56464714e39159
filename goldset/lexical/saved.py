"""A BM25 index as a folder: Arrow files that are mapped, not read, in shards that are built and searched one by one.

    meta.json            format, tokenizer, k1, b, rows of each shard
    ids.arrow            chunk ids, ascending
    terms.arrow          terms in the order of their first occurrence in the whole corpus, with their idf
    shard-0/terms.arrow     numbers of the terms that the shard holds, and where their postings end
    shard-0/postings.arrow  row within the shard and term frequency
    shard-0/weights.arrow   idf times saturated term frequency, one a posting

The statistics behind idf and length normalisation are those of the whole corpus, merged in the order of the rows, so
the scores are those of one index over everything, to the bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError
from goldset.lexical.okapi import Floats, Longs, Mask, Postings, Rows, Vocabulary, add_up, floored_idf, top_rows, weigh
from goldset.progress import Advance
from goldset.shards import SHARD, merge_found, shard_slices
from goldset.store import staged_folder, write_json
from goldset.text import TOKENIZER_VERSION, content_hash

FORMAT = "bm25/2"


class _Shard(NamedTuple):
    """The arrays of one shard, mapped."""

    low: int  # its first row in the corpus
    size: int
    terms: Rows  # numbers, ascending
    ends: Longs
    rows: Rows
    weights: Floats

    def scores(self, terms: Rows) -> Floats:
        """Score of every row of the shard, summed in the order of the query's terms; a repeat counts again."""
        held = []
        for term, place in zip(terms.tolist(), np.searchsorted(self.terms, terms).tolist(), strict=True):
            if place < len(self.terms) and self.terms[place] == term:
                span = slice(int(self.ends[place - 1]) if place else 0, int(self.ends[place]))
                held.append((self.rows[span], self.weights[span]))
        return add_up(held, self.size)


class SavedIndex:
    """An index that stays on disk; ``build`` writes it, the constructor opens it.

    Raises:
        DataError: the folder is missing, damaged, or of another format or tokenizer.
    """

    def __init__(self, folder: Path, *, tokenizer: str = TOKENIZER_VERSION) -> None:
        self._folder = folder
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            self._ids, self._terms = _read(folder / "ids.arrow")["id"], _read(folder / "terms.arrow")["term"]
        except (OSError, ValueError, KeyError, pa.ArrowInvalid) as error:
            raise DataError(f"{folder}: not a saved BM25 index ({error}); delete it, it is rebuilt") from error
        wanted = {"format": FORMAT, "tokenizer": tokenizer}
        if any(meta.get(key) != value for key, value in wanted.items()):
            raise DataError(
                f"{folder}: index of {meta.get('format')} with tokenizer {meta.get('tokenizer')}, "
                f"this version reads {FORMAT} with {tokenizer}; delete it, it is rebuilt"
            )
        self.shard_ends: list[int] = meta["shard_ends"]

    @classmethod
    def build(
        cls,
        folder: Path,
        ids: Sequence[str],
        tokens: Iterable[Sequence[str]],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        tokenizer: str = TOKENIZER_VERSION,
        most: int = SHARD,
    ) -> SavedIndex:
        """Ascending ids and their tokens -> folder, written aside and renamed; one that exists is left as it is.

        Args:
            folder: where the index goes.
            ids: chunk ids, ascending, none twice.
            tokens: one list an id; read once, a shard at a time.
            k1: term saturation.
            b: length normalisation.
            tokenizer: what cut the tokens; an index of another one is not opened.
            most: rows of a shard.

        Raises:
            DataError: ids do not ascend, or there are more or fewer token lists than ids.
        """
        wrong = next(((a, c) for a, c in pairwise(ids) if a >= c), None)
        if wrong is not None:
            raise DataError(f"id '{wrong[1]}' follows '{wrong[0]}'; ids must ascend and be unique")
        slices = shard_slices(len(ids), most)
        with staged_folder(folder) as aside:
            lengths, idf = _count(aside, iter(tokens), slices)
            if len(lengths) != len(ids):
                raise DataError(f"{len(lengths)} token lists for {len(ids)} ids; every id needs one")
            average = int(lengths.sum()) / len(ids) if len(ids) else 0.0
            for number, part in enumerate(slices):
                _weigh(aside / f"shard-{number}", idf, lengths[part], average_length=average, k1=k1, b=b)
            _write(aside / "ids.arrow", {"id": pa.array(ids, pa.string())})
            write_json(
                aside / "meta.json",
                {
                    "format": FORMAT,
                    "tokenizer": tokenizer,
                    "k1": k1,
                    "b": b,
                    "average_length": average,
                    "shard_ends": [part.stop for part in slices],
                },
            )
        return cls(folder, tokenizer=tokenizer)

    def __len__(self) -> int:
        return len(self._ids)

    def search(
        self,
        queries: Sequence[Sequence[str]],
        depth: int,
        *,
        visible: Sequence[Mask | None] | None = None,
        advance: Advance = lambda done: None,
    ) -> list[list[tuple[str, float]]]:
        """Queries as tokens -> for each, the ``depth`` best ids that share a term, with scores; ties by id.

        Args:
            queries: tokens of each query.
            depth: length of a list, at most.
            visible: for each query the rows that may be returned; None means all of them.
            advance: called with the number of queries just finished in one shard.
        """
        wanted = self._numbers(queries)
        masks = visible or [None] * len(queries)
        parts: list[list[tuple[Longs, Floats]]] = [[] for _ in queries]
        for shard in self._shards():
            for terms, mask, found in zip(wanted, masks, parts, strict=True):
                scores = shard.scores(terms)
                if mask is not None:
                    scores[~mask[shard.low : shard.low + shard.size]] = 0.0
                rows = top_rows(scores, depth)
                found.append((rows + shard.low, scores[rows]))
                advance(1)
        answers = []
        for found in parts:
            rows, scores = merge_found(found, depth)
            answers.append(list(zip(self._ids.take(pa.array(rows)).to_pylist(), scores.tolist(), strict=True)))
        return answers

    def _numbers(self, queries: Sequence[Sequence[str]]) -> list[Rows]:
        """Numbers of the tokens that the corpus knows, in order, a query each."""
        tokens = pa.array([token for query in queries for token in query], pa.string())
        known = pc.index_in(tokens, value_set=self._terms).fill_null(-1).to_numpy(zero_copy_only=False)
        split = np.split(known.astype(np.int32), np.cumsum([len(query) for query in queries])[:-1]) if queries else []
        return [numbers[numbers >= 0] for numbers in split]

    def _shards(self) -> Iterator[_Shard]:
        """One at a time: the next is mapped when the last has been let go."""
        for number, (low, high) in enumerate(pairwise([0, *self.shard_ends])):
            folder = self._folder / f"shard-{number}"
            try:
                terms, postings, weights = (_read(folder / f"{name}.arrow") for name in
                                            ("terms", "postings", "weights"))
            except (OSError, pa.ArrowInvalid) as error:
                raise DataError(f"{folder}: damaged ({error}); delete {self._folder}, it is rebuilt") from error
            yield _Shard(low, high - low, _numpy(terms, "term"), _numpy(terms, "end"), _numpy(postings, "row"),
                         _numpy(weights, "weight"))


def _count(aside: Path, tokens: Iterator[Sequence[str]], slices: Sequence[slice]) -> tuple[Longs, Floats]:
    """Write terms and postings of each shard, terms.arrow of the corpus -> (length of each text, idf of each term)."""
    vocabulary, df, lengths = Vocabulary(), np.zeros(0, np.int64), []
    for number, part in enumerate(slices):
        last = part.stop == slices[-1].stop  # also takes what is too much, to be counted and refused
        sizes, postings = vocabulary.read(tokens if last else islice(tokens, part.stop - part.start))
        here = np.diff(postings.starts)
        df = np.concatenate([df, np.zeros(len(vocabulary) - len(df), np.int64)]) + here
        held = np.flatnonzero(here)
        folder = aside / f"shard-{number}"
        folder.mkdir()
        _write(folder / "terms.arrow", {"term": held.astype(np.int32), "end": postings.starts[held + 1]})
        _write(folder / "postings.arrow", {"row": postings.rows, "tf": postings.frequencies})
        lengths.append(sizes)
    sizes = np.concatenate(lengths)
    terms = vocabulary.numbered()
    idf, _ = floored_idf(dict(zip(terms, df.tolist(), strict=True)), len(sizes))
    values = np.array(list(idf.values()), dtype=np.float64)
    _write(aside / "terms.arrow", {"term": pa.array(list(terms), pa.string()), "idf": values})
    return sizes, values


def _weigh(folder: Path, idf: Floats, lengths: Longs, *, average_length: float, k1: float, b: float) -> None:
    """Write the weights of one shard."""
    terms, postings = _read(folder / "terms.arrow"), _read(folder / "postings.arrow")
    starts = np.concatenate([[0], _numpy(terms, "end")]).astype(np.int64)
    held = Postings(starts, _numpy(postings, "row"), _numpy(postings, "tf"))
    weights = weigh(held, idf[_numpy(terms, "term")], lengths, average_length=average_length, k1=k1, b=b)
    _write(folder / "weights.arrow", {"weight": weights})


def index_key(
    ids: Sequence[str],
    texts: Iterable[str],
    *,
    k1: float,
    b: float,
    tokenizer: str = TOKENIZER_VERSION,
    most: int = SHARD,
) -> str:
    """Name of the folder of a saved index: hash of all that can change it, the tokenizer included."""
    digest = hashlib.blake2b(digest_size=16)
    ends = [part.stop for part in shard_slices(len(ids), most)]
    digest.update(content_hash(FORMAT, tokenizer, k1, b, ends).encode())
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
