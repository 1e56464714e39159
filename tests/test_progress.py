"""A bar with rate and time left on a terminal; not a byte anywhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

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
