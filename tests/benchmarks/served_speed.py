"""How long does served() take? 10,000 questions by 100 chunks, each gold decided by its evidence.

``python tests/benchmarks/served_speed.py`` prints N, the seconds of the fastest of three, and exits with 1 above two
seconds. N is fixed: fewer would say nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from goldset.spans import served  # noqa: E402
from tests.test_served_at_size import DEPTH, N, case  # noqa: E402

LIMIT = 2.0


def main() -> int:
    """Measure; exit code 1 above the limit."""
    tables = case()
    found = []
    for _ in range(3):
        began, cpu = time.perf_counter(), time.process_time()
        served(**tables)
        found.append((time.perf_counter() - began, time.process_time() - cpu))
    seconds, cpu = min(found)
    print(f"N = {N:,} questions by {DEPTH} chunks, each gold decided by its evidence: {seconds:.2f} s "
          f"({cpu:.2f} s of CPU; limit {LIMIT:.0f} s)")
    return int(seconds > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
