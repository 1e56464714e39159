"""Time and peak memory of ``goldset audit`` as a whole process, on a made-up BEIR folder with a run.

    python tests/benchmarks/audit_speed.py            200 questions over 10,000 passages: under 3 s
    python tests/benchmarks/audit_speed.py --large    10,000 over 100,000: under 60 s and 2 GB
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SIZES = {False: (200, 10_000, 3.0), True: (10_000, 100_000, 60.0)}
MEMORY, DEPTH, WORDS = 2 << 30, 100, 120


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


def measure(folder: Path) -> tuple[float, int]:
    """(seconds, peak bytes) of one audit in a process of its own."""
    command = [sys.executable, "-m", "goldset", "audit", str(folder), "--run", f"a={folder / 'a.run'}",
               "--eval-k", "20", "--serving-k", "5"]
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 6):
        raise SystemExit(f"the audit ended with {child.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss * 1024


def main() -> int:
    """Print the times; exit code 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeat", type=int, default=0, help="default: 5, or 1 with --large")
    options = parser.parse_args()
    questions, passages, bound = SIZES[options.large]
    repeat = options.repeat or (1 if options.large else 5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "set"
        write(folder, questions, passages)
        found = [measure(folder) for _ in range(repeat)]
    times, peak = sorted(seconds for seconds, _ in found), max(size for _, size in found)
    median = statistics.median(times)
    print(f"goldset audit, {questions:,} questions over {passages:,} passages, {repeat} runs: best {times[0]:.2f} s, "
          f"median {median:.2f} s, bound {bound:.0f} s; peak {peak / (1 << 20):.0f} MiB, "
          f"bound {MEMORY >> 20} MiB")
    return int(median > bound or peak > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
