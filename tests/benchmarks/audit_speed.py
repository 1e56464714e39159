"""Time of ``goldset --help``, time and peak memory of ``goldset audit``, as whole processes; a made-up BEIR folder.

    python tests/benchmarks/audit_speed.py            200 questions over 10,000 passages: under 3 s
    python tests/benchmarks/audit_speed.py --large    10,000 over 100,000: under 60 s and 2 GB
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import REPEATS, ROOT, AtMost, Row, arguments, finish

SMALL, LARGE = (200, 10_000, 3.0), (10_000, 100_000, 60.0)
MEMORY, DEPTH, WORDS = 2048, 100, 120


def write(folder: Path, questions: int, passages: int) -> None:
    """A BEIR folder of Zipf words, questions of eight words from their gold, and a run of 100 results a question."""
    rng = np.random.default_rng(5)
    weight = 1 / np.arange(1, 20_001)
    drawn = rng.choice(20_000, (passages, WORDS), p=weight / weight.sum())
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w") as stream:
        for i, row in enumerate(drawn):
            stream.write(json.dumps({"_id": f"d{i}", "title": "", "text": " ".join(f"w{word}" for word in row)}) + "\n")
    gold = rng.integers(passages, size=questions)
    ranks = np.minimum(np.ceil(rng.lognormal(2, 1.5, questions)).astype(int), DEPTH)
    with (folder / "queries.jsonl").open("w") as asked, (folder / "qrels" / "test.tsv").open("w") as judged, \
            (folder / "a.run").open("w") as run:
        judged.write("query-id\tcorpus-id\tscore\n")
        for i, passage in enumerate(gold):
            text = " ".join(f"w{word}" for word in rng.choice(drawn[passage], 8))
            asked.write(json.dumps({"_id": f"q{i}", "text": text}) + "\n")
            judged.write(f"q{i}\td{passage}\t1\n")
            others = iter((passage + 1 + np.arange(DEPTH) * 7) % passages)
            for rank in range(1, DEPTH + 1):
                chunk = passage if rank == ranks[i] else next(others)
                run.write(f"q{i} Q0 d{chunk} {rank} {DEPTH - rank} a\n")


def measure(*arguments: str) -> tuple[float, float]:
    """(seconds, peak MB) of one command in a process of its own."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "goldset", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 6):
        raise SystemExit(f"goldset {arguments[0]} ended with {child.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> int:
    """Measure, print, write."""
    parser = arguments(__doc__, least=SMALL[0], unit="questions")
    parser.add_argument("--large", action="store_true", help=f"{LARGE[0]:,} questions, once")
    options = parser.parse_args()
    questions, passages, bound = LARGE if options.large else (options.n, *SMALL[1:])
    started = [measure("--help")[0] for _ in range(REPEATS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "set"
        write(folder, questions, passages)
        found = [measure("audit", str(folder), "--run", f"a={folder / 'a.run'}", "--eval-k", "20", "--serving-k", "5")
                 for _ in range(1 if options.large else REPEATS)]
    work = f"goldset audit, {questions:,} questions over {passages:,} passages"
    return finish([
        Row.of_times("goldset --help", "seconds", {"goldset": started}, wanted=AtMost(0.3)),
        Row.of_times(work, "seconds", {"goldset": [seconds for seconds, _ in found]}, wanted=AtMost(bound)),
        Row(work, "MB at the peak", max(size for _, size in found), wanted=AtMost(MEMORY),
            measured={"goldset": [size for _, size in found]}),
    ], options)


if __name__ == "__main__":
    sys.exit(main())
