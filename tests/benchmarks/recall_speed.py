"""Whole-process recall@10 of one run from disk: goldset beside ir-measures and pytrec-eval on the same files.

``python tests/benchmarks/recall_speed.py`` writes qrels and a run of 10,000 questions with 100 results each, then
starts every tool afresh five times, in turn. The bound is on the faster of the two others.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import REPEATS, AtMost, Row, arguments, finish

LEAST = 10_000
DEPTH = 100
MOST_MB = 400
K = 10

PYTREC_EVAL = """
import sys, pytrec_eval
with open(sys.argv[1]) as lines: qrels = pytrec_eval.parse_qrel(lines)
with open(sys.argv[2]) as lines: run = pytrec_eval.parse_run(lines)
found = pytrec_eval.RelevanceEvaluator(qrels, {"recall.10"}).evaluate(run)
print(f"{sum(row['recall_10'] for row in found.values()) / len(found):.6f}")
"""
IR_MEASURES = """
import sys, ir_measures
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
print(f"{ir_measures.calc_aggregate([ir_measures.R @ 10], qrels, run)[ir_measures.R @ 10]:.6f}")
"""


def write_files(folder: Path, questions: int) -> tuple[Path, Path]:
    """Qrels (ten judged passages a question, three of them relevant) and a run in TREC form; seeded, no ties."""
    draw = np.random.default_rng(7)
    qrels, run = folder / "qrels.txt", folder / "a.run"
    with qrels.open("w") as labels, run.open("w") as results:
        for number in range(questions):
            passages = draw.choice(1_000_000, DEPTH + 5, replace=False)
            for grade, passage in enumerate(passages[np.sort(draw.choice(DEPTH + 5, 10, replace=False))]):
                labels.write(f"q{number} 0 d{passage} {int(grade % 3 == 0 and grade < 9)}\n")
            for rank, passage in enumerate(passages[:DEPTH], 1):
                results.write(f"q{number} Q0 d{passage} {rank} {200 - rank}.5 a\n")
    return qrels, run


def commands(qrels: Path, run: Path) -> dict[str, list[str]]:
    """Tool -> the command that a user would start."""
    files = [str(qrels), str(run)]
    return {
        "goldset": [sys.executable, "-m", "goldset", "recall", "--qrels", files[0], "--run", f"a={files[1]}",
                    "--k", str(K)],
        "pytrec-eval": [sys.executable, "-c", PYTREC_EVAL, *files],
        "ir-measures": [sys.executable, "-c", IR_MEASURES, *files],
    }


def once(command: list[str], compiled: Path) -> tuple[float, float, str]:
    """Start a process -> (seconds of wall time, MB of peak memory, what it printed).

    ``compiled`` holds the byte code of all tools, as their installation would: the first start writes it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} … ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024, out


def value_of(tool: str, out: str) -> float:
    """The recall that a tool printed."""
    if tool != "goldset":
        return float(out)
    line = next(line for line in out.splitlines() if f"recall@{K} " in line or f"recall at {K} " in line)
    return float(next(part for part in line.split() if part.startswith(("0.", "1."))))


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is missed."""
    options = arguments(__doc__, least=LEAST, unit="questions").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), options.n)
        tools = commands(*files)
        for command in tools.values():  # files into the page cache, byte code onto disk: the same start for all
            once(command, Path(folder) / "compiled")
        seconds: dict[str, list[float]] = {tool: [] for tool in tools}
        memory: dict[str, list[float]] = {tool: [] for tool in tools}
        values = {}
        for _ in range(REPEATS):
            for tool, command in tools.items():
                took, peak, out = once(command, Path(folder) / "compiled")
                seconds[tool].append(took)
                memory[tool].append(peak)
                values[tool] = value_of(tool, out)
    if max(values.values()) - min(values.values()) > 1e-3:
        raise SystemExit(f"the tools disagree on the value: {values}; nothing was compared")
    fastest = min((tool for tool in tools if tool != "goldset"), key=lambda tool: statistics.median(seconds[tool]))
    order = ["goldset", fastest, *(tool for tool in tools if tool not in ("goldset", fastest))]
    work = f"recall@{K} of one run, {options.n:,} questions x {DEPTH}, whole process"
    return finish([
        Row.of_times(work, "s", {tool: seconds[tool] for tool in order}, wanted=AtMost(1)),
        Row(work, "MB at the peak", max(memory["goldset"]), AtMost(MOST_MB), measured={"goldset": memory["goldset"]}),
    ], options)


if __name__ == "__main__":
    sys.exit(main())
