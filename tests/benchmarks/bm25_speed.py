"""BM25 beside rank_bm25 and bm25s, on chunks of 100 Zipf words.

``python tests/benchmarks/bm25_speed.py`` measures at 100,000 chunks, ``--n 500000`` at 500,000: seconds a question
(ours with its exact top 50, rank_bm25's ``get_scores`` alone, whose scores must be ours to the bit), CPU and memory of
the build, and a fresh process that opens the saved index and answers 180 questions. Builds run in processes of their
own; their token lists exist before the clock starts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import REPEATS, AtLeast, AtMost, Row, arguments, finish, in_turn
from tests.benchmarks.words import ASKED, names, questions, token_lists

LEAST = 100_000
DEPTH = 50
LIBRARY = f"rank_bm25 {version('rank-bm25')}"
BM25S = f"bm25s {version('bm25s')}"


def resident() -> float:
    """MB of memory that the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def build(tool: str, count: int) -> dict[str, float]:
    """Build one index in this process -> seconds of CPU, MB retained and at the peak, both above the token lists."""
    import bm25s  # noqa: F401 - imports come first: code is not index
    import rank_bm25  # noqa: F401

    import goldset.lexical  # noqa: F401

    corpus = list(token_lists(count))
    ids = names(count)
    gc.collect()
    gc.freeze()  # the lists are not the index's to trace
    before, began = resident(), time.process_time()
    index = _built(tool, ids, corpus)
    seconds = time.process_time() - began
    gc.collect()
    return {"seconds": seconds, "retained": resident() - before,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - before, "kept": float(index is not None)}


def _built(tool: str, ids: list[str], corpus: list[list[str]]) -> Any:
    if tool == "goldset":
        from goldset.lexical import BM25Index

        return BM25Index.build(ids, corpus)
    if tool == LIBRARY:
        from rank_bm25 import BM25Okapi

        return BM25Okapi(corpus)
    import bm25s

    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(corpus, show_progress=False)
    return index


def opened(folder: Path) -> float:
    """Seconds that this process took from its start to the answers of 180 questions."""
    from goldset.lexical import SavedIndex

    found = SavedIndex(folder).search(questions(), DEPTH)
    assert all(len(answer) == DEPTH for answer in found)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - _started()


def _started() -> float:
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def in_a_process(*arguments_: str) -> Any:
    """What this script prints when it is started for one measurement."""
    done = subprocess.run([sys.executable, __file__, *arguments_], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments_)}: {done.stderr}")
    return json.loads(done.stdout)


def questions_row(count: int, asked_there: int) -> Row:
    """Seconds a question; bit-equal scores are a condition of the comparison."""
    import bm25s
    from rank_bm25 import BM25Okapi

    from goldset.lexical import BM25Index

    corpus = list(token_lists(count))
    index, library, asked = BM25Index.build(names(count), corpus), BM25Okapi(corpus), questions()
    other = bm25s.BM25(k1=1.5, b=0.75)
    other.index(corpus, show_progress=False)
    del corpus
    sample = asked[:asked_there]
    for query in sample:
        if index.scores(query).tobytes() != library.get_scores(query).tobytes():
            raise SystemExit(f"scores of {query} differ: nothing was compared")
    times = in_turn({
        "goldset": lambda: [index.search(query, DEPTH) for query in asked],
        LIBRARY: lambda: [library.get_scores(query) for query in sample],
        BM25S: lambda: other.retrieve(asked, k=DEPTH, show_progress=False, backend_selection="numpy"),
    }, clock=time.process_time)
    each = {tool: [seconds / (len(sample) if tool == LIBRARY else ASKED) for seconds in values]
            for tool, values in times.items()}
    return Row.of_times(
        f"BM25, {ASKED} questions, top {DEPTH}, {count:,} chunks", "ms of CPU a question",
        {tool: [1000 * second for second in values] for tool, values in each.items()}, wanted=AtLeast(150),
        note=f"scores equal to the bit; rank_bm25 computes scores alone, for the first {len(sample)} questions; "
        "bm25s scores by another formula")


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is missed."""
    parser = arguments(__doc__, least=LEAST, unit="chunks")
    parser.add_argument("--build", help=argparse.SUPPRESS)  # one measurement, in a process of its own
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build or options.open:
        print(json.dumps(build(options.build, options.n) if options.build else opened(options.open)))
        return 0
    builds: dict[str, list[dict[str, float]]] = {tool: [] for tool in ("goldset", LIBRARY, BM25S)}
    for _ in range(REPEATS):
        for tool, measured in builds.items():
            measured.append(in_a_process("--build", tool, "--n", str(options.n)))

    def of(part: str) -> dict[str, list[float]]:
        return {tool: [one[part] for one in measured] for tool, measured in builds.items()}

    with tempfile.TemporaryDirectory() as folder:
        from goldset.lexical import SavedIndex

        SavedIndex.build(Path(folder) / "index", names(options.n), token_lists(options.n))
        openings = [in_a_process("--open", str(Path(folder) / "index")) for _ in range(REPEATS)]
    size = f"{options.n:,} chunks"
    rows = [
        questions_row(options.n, 18 if options.n < 500_000 else 6),
        Row.of_times(f"BM25 build, {size}", "s of CPU", of("seconds"), wanted=AtMost(1.5)),
        Row.of_times(f"BM25 index in memory, {size}", "MB", of("retained"), wanted=AtMost(1)),
        Row.of_times(f"BM25 build, {size}, peak memory", "MB", of("peak"), wanted=AtMost(1.5)),
        Row.of_times(f"BM25 from disk, fresh process: open, {ASKED} questions, {size}", "s", {"goldset": openings},
                     wanted=AtMost(2)),
    ]
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
