"""The table of speeds: ours beside the alternative where there is one. `make bench`.

Each benchmark runs in a process of its own, says N, and refuses a smaller one. The rows go to stdout, progress to
stderr, and everything that was measured to ``workspace/bench.json`` (``--json FILE``). ``--only NAME`` measures some
of them again and keeps the others of that file, if the machine is the same; ``--write`` puts the table into the README.
The exit code is 1 where a bound is missed or a benchmark fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests import generate_docs
from tests.benchmarks.rows import ROOT, cpu, table, write

# name -> script and arguments
BENCHMARKS: dict[str, list[str]] = {
    "bm25": ["bm25_speed.py"],
    "bm25-500k": ["bm25_speed.py", "--n", "500000"],
    "dense": ["dense_speed.py"],
    "embed": ["embed_speed.py"],
    "million": ["million_pool.py"],
    "twice": ["rebuild_twice.py"],
    "judge": ["judge_speed.py"],
    "recall": ["recall_speed.py"],
    "audit": ["audit_speed.py"],
    "review": ["review_speed.py"],
}


def run(name: str) -> list[dict[str, Any]] | None:
    """The rows of one benchmark; None where it ended without any."""
    print(f"{name}: running …", file=sys.stderr, flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "rows.json"
        script, *options = BENCHMARKS[name]
        done = subprocess.run([sys.executable, str(Path(__file__).with_name(script)), *options, "--json", str(found)],
                              stdout=subprocess.DEVNULL, cwd=ROOT)
        rows = json.loads(found.read_text())["rows"] if found.exists() else None
    outcome = f"{len(rows)} rows" if rows is not None else f"failed with exit code {done.returncode}"
    print(f"{name}: {outcome} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


def known(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows measured before on this machine, by benchmark."""
    document = json.loads(path.read_text()) if path.exists() else {"rows": []}
    here = document.get("cpu") == cpu() and document.get("python") == platform.python_version()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in document["rows"] if here else []:
        found.setdefault(row["benchmark"], []).append(row)
    return {name: rows for name, rows in found.items() if name in BENCHMARKS}


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="repeatable; default: all")
    parser.add_argument("--json", type=Path, default=ROOT / "workspace" / "bench.json", metavar="FILE")
    parser.add_argument("--write", action="store_true", help="replace the block 'speed' of README.md")
    options = parser.parse_args()
    found = known(options.json) if options.only else {}
    failed = []
    for name in options.only or BENCHMARKS:
        measured = run(name)
        if measured is None:
            failed.append(name)
        else:
            found[name] = [{"benchmark": name, **row} for row in measured]
            write(options.json, [row for part in found.values() for row in part])
    rows = [row for name in BENCHMARKS for row in found.get(name, [])]
    machine = f"{cpu()}; Python {platform.python_version()}"
    print(f"{machine}\n\n{table(rows)}\n\nAll measurements: {options.json}")
    if options.write and len(found) == len(BENCHMARKS):
        generate_docs.write_block("speed", f"{table(rows)}\n\n{machine}; `python tests/benchmarks/bench.py --write`")
    elif options.write:
        print(f"not written: {', '.join(sorted(BENCHMARKS.keys() - found.keys()))} not measured", file=sys.stderr)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed) or any(row["met"] is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
