"""A bar with rate and time left on a terminal; not a byte anywhere else."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goldset.config import CorpusConfig
from goldset.corpus import build_corpus
from goldset.formats.corpora import read_chunks, read_documents
from goldset.spans import canonical_spans
from goldset.spans.neartwins import near_twins

ROOT = Path(__file__).resolve().parents[1]
WORK = """
import sys, time
from goldset.progress import progress
with progress("indexing words", 40, quiet="quiet" in sys.argv) as advance:
    for _ in range(40):
        time.sleep(0.02)
        advance(1)
print("done")
"""


def _on_a_terminal(*arguments: str) -> str:
    """What a process writes to a terminal on stderr."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", WORK, *arguments], stdout=subprocess.DEVNULL, stderr=theirs,
                               env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        seen += block
    os.close(ours)
    assert process.wait(timeout=30) == 0
    return seen.decode()


def test_a_bar_has_its_rate_and_the_time_left() -> None:
    seen = _on_a_terminal()
    for part in ("indexing words", "/40", "/s", "0:00:0"):
        assert part in seen
    assert _on_a_terminal("quiet") == ""


def test_off_a_terminal_there_is_none() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("packed", [False, True])
def test_corpus_and_spans_say_how_far_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """Each bar ends at its total: megabytes on disk, documents, chunks, texts."""
    bars: dict[str, list[int]] = {}

    @contextlib.contextmanager
    def noted(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
        bar = [0, total]

        def advance(done: int) -> None:
            bar[0] += done

        yield advance
        if not quiet:
            bars[what] = bar

    for module in ("formats.lines", "corpus.build", "spans.canonical", "spans.neartwins"):
        monkeypatch.setattr(f"goldset.{module}.progress", noted)
    path = tmp_path / "documents.jsonl"
    words = [random.Random(one).randbytes(150).hex() for one in range(8000)]  # 2.4 MB, which pack to half
    text = "".join(json.dumps({"doc_id": str(one), "text": " ".join(words[2000 * one :][:2000])}) + "\n"
                   for one in range(4))
    path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
    megabytes = path.stat().st_size // 10**6
    config = CorpusConfig.model_validate({"documents": str(path), "chunker": {"words": 100}})
    assert config.documents is not None
    read = read_documents(config.documents, path, quiet=False)[0]
    assert bars == {"reading documents.jsonl, MB": [megabytes, megabytes]}
    assert megabytes >= (1 if packed else 2)
    built = build_corpus(documents=read, raw_chunks=None, config=config, quiet=False)
    made = canonical_spans(documents=built.documents, chunks=built.chunks, quiet=False)
    near_twins(made.spans, quiet=False)
    assert {what: bar for what, bar in bars.items() if "reading" not in what} == {
        "cutting documents": [4, 4], "folding chunks": [80, 80], "looking for near twins": [80, 80]}
    lines = (json.dumps({"chunk_id": f"c{row}", "doc_id": "0", "text": words[row]}) for row in range(9))
    (tmp_path / "chunks.jsonl").write_text("\n".join(lines))
    given = CorpusConfig.model_validate({"chunks": "chunks.jsonl"})
    assert given.chunks is not None
    raw, _ = read_chunks(given.chunks, tmp_path / "chunks.jsonl", quiet=False)
    build_corpus(documents=None, raw_chunks=raw, config=given, quiet=False)
    assert bars["placing chunks"] == [9, 9]
    bars.clear()
    read_documents(config.documents, path)
    canonical_spans(documents=built.documents, chunks=built.chunks)
    assert bars == {}
