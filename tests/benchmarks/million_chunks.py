"""How long do canonical spans take? ``python tests/benchmarks/million_chunks.py`` folds a million chunks.

Windows of 120 words by 50 over invented prose, a thousand chunks a document. Prints N and the seconds; a smaller N is
refused, since ratios at small sizes say nothing about the fold.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from goldset.schemas import schema_of  # noqa: E402
from goldset.spans import canonical_spans  # noqa: E402

LEAST = 1_000_000
LIMIT = 60.0
WORDS, STEP, A_DOCUMENT = 120, 50, 1000


def corpus(chunks: int) -> tuple[pa.Table, pa.Table]:
    """Documents of random words in sentences of 8 to 24, and their windows."""
    rng = np.random.default_rng(1)
    vocabulary = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), size)) for size in rng.integers(2, 11, 20_000)]
    words_each = STEP * (A_DOCUMENT - 1) + WORDS
    ids: list[str] = []
    texts: list[str] = []
    columns: dict[str, list[Any]] = {name: [] for name in schema_of("chunks").names}
    for number in range(-(-chunks // A_DOCUMENT)):
        words = [vocabulary[i] for i in rng.integers(0, len(vocabulary), words_each)]
        for end in np.cumsum(rng.integers(8, 25, words_each // 8)):
            if end < words_each:
                words[end] += "."
                words[end - 7] = words[end - 7].capitalize()
        starts = np.concatenate([[0], np.cumsum([len(word) + 1 for word in words])]).tolist()
        text, name = " ".join(words), f"d{number:05d}"
        ids.append(name)
        texts.append(text)
        for first in range(0, words_each - WORDS + 1, STEP):
            start, end = starts[first], starts[first + WORDS] - 1
            row = (f"{name}:{first}", name, start, end, text[start:end], 0, "verified")
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    schema = schema_of("documents")
    documents = pa.table({"doc_id": ids, "text": texts, "title": [None] * len(ids), "url": [None] * len(ids),
                          "sha256": ids, "metadata": ["{}"] * len(ids)}).cast(schema)
    return documents, pa.table({name: pa.array(values, schema_of("chunks").field(name).type)
                                for name, values in columns.items()})


def main() -> int:
    """Measure; exit code 1 above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=LEAST)
    options = parser.parse_args()
    if options.chunks < LEAST:
        parser.error(f"N = {options.chunks:,} is too few; at least {LEAST:,}")
    documents, chunks = corpus(options.chunks)
    began, cpu = time.perf_counter(), time.process_time()
    made = canonical_spans(documents=documents, chunks=chunks)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"N = {len(chunks):,} chunks in {len(documents):,} documents: {len(made.spans):,} spans in {seconds:.1f} s "
          f"({cpu:.1f} s of CPU; limit {LIMIT:.0f} s), peak memory {peak:.1f} GB, "
          f"{made.report['cuts_at_sentence']:,} of {made.report['cuts']:,} cuts between sentences")
    return int(seconds > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
