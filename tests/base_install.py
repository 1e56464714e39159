"""A base install, without extras, audits, measures and compares: python tests/base_install.py PATH/TO/goldset.

Writes a small BEIR set and two runs into a temporary folder, calls the executable, and checks exit codes, the JSON
and that nothing of the extras is installed beside it. Not collected by pytest: it looks at another environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

QUESTIONS, PASSAGES = 60, 90
EXTRAS = ("torch", "sentence_transformers", "faiss", "openai", "fastapi", "sqlalchemy", "prefect")


def write_set(folder: Path) -> None:
    """Each question has one passage; run ``a`` finds it at rank 1, run ``b`` finds every second one, at rank 4."""
    (folder / "qrels").mkdir(parents=True)
    passages = [{"_id": f"d{i}", "title": f"Locker {i}", "text": f"Locker {i} opens with key {i * 7}."}
                for i in range(PASSAGES)]
    questions = [{"_id": f"q{i}", "text": f"which key opens locker {i}"} for i in range(QUESTIONS)]
    for name, rows in (("corpus", passages), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(QUESTIONS))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, encoding="utf-8")
    for name in ("a", "b"):
        lines = []
        for i in range(QUESTIONS):
            others = [f"d{(i + step) % PASSAGES}" for step in range(1, 5)]
            served = [f"d{i}", *others] if name == "a" else [*others[:3], f"d{i}"] if i % 2 else others
            lines += [f"q{i} Q0 {chunk} {rank} {10 - rank} {name}\n" for rank, chunk in enumerate(served, 1)]
        (folder / f"{name}.run").write_text("".join(lines), encoding="utf-8")


def run(executable: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Call an installed program."""
    return subprocess.run([str(executable), *map(str, arguments)], capture_output=True, text=True)


def values(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str, int | None], float | None]:
    """(system, measure, k) -> value of a recall document."""
    return {(row["system"], row["measure"], row["k"]): row["value"] for row in json.loads(done.stdout)["measurements"]
            if row["slice"] == "all"}


def checks(executable: Path, folder: Path) -> Iterator[tuple[str, bool, Any]]:
    """(what, whether it holds, what was seen instead)."""
    data = folder / "set"
    write_set(data)
    runs = [f"--run=a={data / 'a.run'}", f"--run=b={data / 'b.run'}"]

    done = run(executable, "--help")
    yield "help", done.returncode == 0 and "audit" in done.stdout, done.stderr
    page = folder / "report.html"
    done = run(executable, "audit", data, *runs, "--eval-k", "5", "--serving-k", "5", "--html", page, "--json")
    # One gold a question, which is the set's fault and said so: an audit's verdict is 0, 1 or 6, never an error.
    yield "audit ends with a verdict", done.returncode in (0, 1, 6), (done.returncode, done.stderr)
    found = json.loads(done.stdout or "{}")
    yield "audit document", found.get("schema") == "goldset.audit/1", done.stdout[:200]
    yield "all checks ran", {row["check"] for row in found.get("findings", [])} == {
        "integrity", "circularity", "leakage", "k_mismatch", "completeness"}, found
    yield "report", page.is_file() and "<svg" in page.read_text(encoding="utf-8"), done.stderr
    done = run(executable, "audit", data, *runs)
    yield "audit in words", done.returncode in (0, 1, 6) and "Can this number be believed?" in done.stdout, done.stderr

    done = run(executable, "recall", data, *runs, "--k", "3,5", "--json")
    yield "recall", done.returncode == 0, done.stderr
    got = values(done)
    # b finds odd questions at rank 4: none within 3, half within 5.
    yield "recall of a at 3", got.get(("a", "recall", 3)) == 1.0, got
    yield "recall of b at 3", got.get(("b", "recall", 3)) == 0.0, got
    yield "recall of b at 5", got.get(("b", "recall", 5)) == 0.5, got
    done = run(executable, "recall", data, runs[0], "--k", "5", "--min", "0.9")
    yield "gate passed", done.returncode == 0, (done.returncode, done.stderr)
    done = run(executable, "recall", data, runs[1], "--k", "5", "--min", "0.9")
    yield "gate failed", done.returncode == 1, (done.returncode, done.stderr)
    done = run(executable, "compare", data, *runs, "--k", "5", "--json")
    found = json.loads(done.stdout or "{}")
    yield "compare", done.returncode == 0 and found.get("verdict") == "worse", (done.returncode, found, done.stderr)
    yield "difference", found.get("difference") == -0.5, found
    done = run(executable, "power", "--questions", "200", "--json")
    yield "power", done.returncode == 0, done.stderr

    done = run(executable, "audit", data, runs[0], "--with", "dense")
    named = "goldset-rebuilder[dense]" in done.stderr
    yield "missing extra", done.returncode == 4 and named, (done.returncode, done.stderr)
    for module in EXTRAS:
        looked = run(executable.parent / "python", "-c", f"import {module}")
        missing = looked.returncode == 1 and "ModuleNotFoundError" in looked.stderr
        yield f"{module} is not installed", missing, looked.stderr


def main() -> int:
    """Run the checks; 0 if all hold."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    executable = Path(sys.argv[1]).absolute()
    failed = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, holds, seen in checks(executable, Path(folder)):
            passed += holds
            failed += not holds
            if not holds:
                print(f"FAILED {what}: {seen}")
    print(f"base install: {passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
