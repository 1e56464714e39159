"""Recall@10 of a run of 1,000,000 questions: the peak memory of the whole process, which must not grow with them.

``python tests/benchmarks/recall_stream.py`` writes qrels and a run with 10 results a question, lines shuffled within
blocks, and measures a tenth of them and all of them. ``--check`` ends with 1 where the peak is 500 MB or more, or the
recall is not the one that was planted. Needs 1 GB on the disk.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.benchmarks.recall_speed import once  # noqa: E402
from tests.benchmarks.rows import cpu  # noqa: E402

LEAST = 1_000_000
DEPTH = 10
MOST_MB = 500
_BLOCK = 10_000


def write_files(folder: Path, questions: int) -> tuple[Path, Path, float]:
    """Qrels (two relevant passages a question, one not) and a run -> both files, and the recall of the run."""
    draw = np.random.default_rng(7)
    folder.mkdir(parents=True, exist_ok=True)
    qrels, run = folder / "qrels.txt", folder / "a.run"
    delivered = 0
    with qrels.open("w") as labels, run.open("w") as results:
        for start in range(0, questions, _BLOCK):
            judged, ranked = [], []
            passages = draw.integers(0, 10_000_000, (min(_BLOCK, questions - start), DEPTH + 1)) * (DEPTH + 1)
            places = draw.integers(0, 2 * DEPTH, (len(passages), 2))
            pairs = zip(passages.tolist(), places.tolist(), strict=True)
            for number, (mine, (first, second)) in enumerate(pairs, start):
                ids = [f"d{passage + place}" for place, passage in enumerate(mine)]
                # The first gold stands at a random rank or nowhere, the second is never returned.
                gold = ids[first] if first < DEPTH else f"n{number}"
                delivered += first < DEPTH
                judged.append(f"q{number} 0 {gold} 1\nq{number} 0 {ids[DEPTH]} 1\nq{number} 0 m{second} 0\n")
                ranked += [f"q{number} Q0 {name} {rank} {99 - rank}.5 a\n" for rank, name in enumerate(ids[:DEPTH], 1)]
            labels.write("".join(judged[place] for place in draw.permutation(len(judged))))
            results.write("".join(ranked[place] for place in draw.permutation(len(ranked))))
    return qrels, run, delivered / questions / 2


def measure(folder: Path, questions: int) -> tuple[float, float, float, float]:
    """(seconds, MB of peak memory, recall as printed, recall as planted) of one process."""
    qrels, run, planted = write_files(folder, questions)
    command = [sys.executable, "-m", "goldset", "recall", "--qrels", str(qrels), "--run", f"a={run}", "--k", str(DEPTH),
               "--json"]
    seconds, peak, out = once(command, folder.parent / "compiled")
    found = next(row["value"] for row in json.loads(out)["measurements"] if row["measure"] == "recall")
    return seconds, peak, found, planted


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=LEAST, help=f"at least {LEAST:,}")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.questions < LEAST:
        parser.error(f"--questions {options.questions}: {LEAST:,} or more; a smaller file may be held whole")
    print(f"recall@{DEPTH} of one run, {DEPTH} results a question, lines in random order, whole process")
    print(f"{cpu()}; Python {platform.python_version()}")
    good = True
    for questions in (options.questions // 5, options.questions):
        with tempfile.TemporaryDirectory() as folder:
            seconds, peak, found, planted = measure(Path(folder) / "files", questions)
        print(f"{questions:>10,} questions  {seconds:6.1f} s   peak {peak:4.0f} MB   recall {found:.6f}, planted "
              f"{planted:.6f}")
        good &= peak < MOST_MB and abs(found - planted) < 1e-9
    return int(options.check and not good)


if __name__ == "__main__":
    sys.exit(main())
