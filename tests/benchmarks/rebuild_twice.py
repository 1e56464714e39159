"""What a second rebuild does again: ``python tests/benchmarks/rebuild_twice.py``. Counted, not timed.

1,000 documents of three sentences. Between two rebuilds the first one's queue is answered, one document in a hundred
changes, and the window moves by a week. The same project, smaller, is tests/pipeline/test_incremental.py.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import AtMost, Row, arguments, finish
from tests.pipeline.test_incremental import NAMES, two_rebuilds

LEAST = 1000


def main() -> int:
    """Count and print; exit code 1 under ``--check`` where a bound is missed."""
    parser = arguments(__doc__, least=LEAST, unit="documents")
    options = parser.parse_args()
    if options.n > len(NAMES):
        parser.error(f"--n {options.n}: there are names for {len(NAMES):,} documents")
    with tempfile.TemporaryDirectory() as folder:
        twice = two_rebuilds(Path(folder), options.n)
        first, second = twice.first, twice.second
        new = second.candidates() - first.candidates()
        again = second.items(open_only=True) & first.items()
    work = f"second rebuild, 1 % of {options.n:,} documents changed, window moved a week"
    return finish([
        Row(work, "texts embedded", second.embedded, AtMost(0.05), "the first rebuild", first.embedded),
        Row(work, "pairs judged", len(second.judged), AtMost(1), "pairs that are new", len(new)),
        Row(work, "pairs that people are asked again", len(again), AtMost(0)),
    ], options)


if __name__ == "__main__":
    sys.exit(main())
