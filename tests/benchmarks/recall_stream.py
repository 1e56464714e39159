"""1,000,000 questions in every form that comes apart: the peak memory of the process, which must not grow with them.

``python tests/benchmarks/recall_stream.py`` writes a BEIR folder (two relevant passages a question, one not, lines
shuffled within blocks, every text twice) and runs with 10 results a question as TREC, JSONL and Parquet. Each case is
measured on a fifth of the questions and on all of them. ``--check`` ends with 1 where a peak is 500 MB or more, or a
number is not the one that was planted; ``--only NAME`` measures one case. Needs 3 GB on the disk.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.benchmarks.recall_speed import once  # noqa: E402
from tests.benchmarks.rows import cpu  # noqa: E402

LEAST = 1_000_000
DEPTH = 10
HALF = DEPTH // 2
MOST_MB = 500
_BLOCK = 10_000
CASES: dict[str, tuple[str, ...]] = {
    "qrels and a TREC run": ("recall", "--qrels", "set/qrels/test.tsv", "--run", "a=a.run", "--k", str(DEPTH)),
    "BEIR folder, JSONL, several k, slices, curve": (
        "recall", "set", "--run", "a=a.jsonl", "--k", f"1,{HALF},{DEPTH}", "--by", "language", "--curve"),
    "BEIR folder, Parquet": ("recall", "set", "--run", "a=a.parquet", "--k", str(DEPTH)),
    "BEIR folder, comparison of a TREC run with Parquet": (
        "compare", "set", "--run", "a=a.run", "--run", "b=b.parquet", "--k", str(HALF)),
}
"""What is measured -> the arguments of ``goldset``."""


@dataclass
class Planted:
    """How often the first gold stands in the list, among its first half, and among its second half."""

    found: int = 0
    early: int = 0
    late: int = 0


def write_files(folder: Path, questions: int) -> Planted:
    """The BEIR folder ``set``, runs a.run, a.jsonl, a.parquet, and b.parquet, the same lists upside down."""
    draw = np.random.default_rng(7)
    (folder / "set" / "qrels").mkdir(parents=True)
    planted = Planted()
    schema = pa.schema([("qid", pa.string()), ("docid", pa.string()), ("rank", pa.int32()), ("score", pa.float64())])
    names = ("set/qrels/test.tsv", "set/queries.jsonl", "set/corpus.jsonl", "a.run", "a.jsonl")
    files = [(folder / name).open("w") for name in names]
    tables = [pq.ParquetWriter(folder / f"{name}.parquet", schema) for name in "ab"]
    files[0].write("query-id\tcorpus-id\tscore\n")
    for start in range(0, questions, _BLOCK):
        count = min(_BLOCK, questions - start)
        lines: list[list[str]] = [[] for _ in files]
        rows: list[tuple[str, str, int, float]] = []
        passages = draw.integers(0, 10_000_000, (count, DEPTH + 1)) * (DEPTH + 1)
        places = draw.integers(0, 2 * DEPTH, (count, 2))
        for number, (mine, (first, second)) in enumerate(zip(passages.tolist(), places.tolist(), strict=True), start):
            ids = [f"d{passage + place}" for place, passage in enumerate(mine)]
            # The first gold stands at a random rank or nowhere, the second is never returned.
            gold = ids[first] if first < DEPTH else f"n{number}"
            planted.found += first < DEPTH
            planted.early += first < HALF
            planted.late += HALF <= first < DEPTH
            question = f"q{number}"
            lines[0].append(f"{question}\t{gold}\t1\n{question}\t{ids[DEPTH]}\t1\n{question}\tm{second}\t0\n")
            lines[1].append(json.dumps({"_id": question, "text": f"question {number // 2}",
                                        "metadata": {"language": "en" if number % 3 else "de"}}) + "\n")
            lines[2].append("".join(f'{{"_id": "{name}", "title": "", "text": "x"}}\n' for name in (gold, ids[DEPTH])))
            for rank, name in enumerate(ids[:DEPTH], 1):
                rows.append((question, name, rank, 99.5 - rank))
        lines[3] = [f"{question} Q0 {name} {rank} {score} a\n" for question, name, rank, score in rows]
        lines[4] = [f'{{"qid": "{question}", "docid": "{name}", "rank": {rank}, "score": {score}}}\n'
                    for question, name, rank, score in rows]
        for file, parts in zip(files, lines, strict=True):
            file.write("".join(parts[place] for place in draw.permutation(len(parts))))
        columns = [list(column) for column in zip(*rows, strict=True)]
        tables[0].write_table(pa.table(columns, schema=schema))
        columns[2] = [DEPTH + 1 - rank for rank in columns[2]]
        tables[1].write_table(pa.table(columns, schema=schema))
    for writer in (*files, *tables):
        writer.close()
    return planted


def wrong(case: str, found: dict[str, Any], planted: Planted, questions: int) -> list[str]:
    """What a document says that was not planted; recall is half of what is found, since half of the gold is never."""
    if case.endswith("comparison of a TREC run with Parquet"):
        wanted = {"recall_a": planted.early / questions / 2, "recall_b": planted.late / questions / 2, "n": questions,
                  "units": questions / 2, "discordant": planted.found}
        told = {name: found[name] for name in wanted}
    else:
        rows = {(row["measure"], row["k"], row["slice"]): row for row in found["measurements"]}
        wanted = {"recall": planted.found / questions / 2, "n": questions}
        told = {"recall": rows["recall", DEPTH, "all"]["value"], "n": rows["recall", DEPTH, "all"]["n"]}
        if "slices" in found:
            told |= {"slices": sum(rows["recall", DEPTH, f"language={name}"]["n"] for name in ("de", "en")),
                     "curve": found["curve"][DEPTH - 1]["value"]}
            wanted |= {"slices": questions, "curve": wanted["recall"]}
    return [f"{name} {told[name]}, planted {value}" for name, value in wanted.items() if abs(told[name] - value) > 1e-9]


def measure(folder: Path, questions: int, only: str | None = None) -> Iterator[tuple[str, float, float, list[str]]]:
    """(case, seconds, MB of peak memory, what came out otherwise than planted) of one process each."""
    planted = write_files(folder, questions)
    for case, arguments in CASES.items():
        if only and only not in case:
            continue
        given = [argument.replace("=", f"={folder}/") if "=" in argument else str(folder / argument)
                 if argument.startswith("set") else argument for argument in arguments]
        seconds, peak, out = once([sys.executable, "-m", "goldset", *given, "--json"], folder.parent / "compiled")
        yield case, seconds, peak, wrong(case, json.loads(out), planted, questions)


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=LEAST, help=f"at least {LEAST:,}")
    parser.add_argument("--only", help="a part of the name of a case")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.questions < LEAST:
        parser.error(f"--questions {options.questions}: {LEAST:,} or more; a smaller file may be held whole")
    print(f"{DEPTH} results a question, lines in random order, whole process")
    print(f"{cpu()}; Python {platform.python_version()}")
    good = True
    for questions in (options.questions // 5, options.questions):
        with tempfile.TemporaryDirectory() as name:
            for case, seconds, peak, odd in measure(Path(name) / "files", questions, options.only):
                print(f"{questions:>10,} questions  {seconds:6.1f} s   peak {peak:4.0f} MB   {case}"
                      + "".join(f"; {line}" for line in odd), flush=True)
                good &= peak < MOST_MB and not odd
    return int(options.check and not good)


if __name__ == "__main__":
    sys.exit(main())
