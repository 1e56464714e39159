"""The review page's server: from an answer's arrival to the next item, over HTTP within the process.

    python tests/benchmarks/review_speed.py           a queue of 10,000 items: 50 ms

An answer is stored, and the next item with its passage comes back in the same reply; SQLite lies on a disk.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import AtMost, Row, arguments, finish

EACH, ANSWERS = 40, 200


def answers(items: int, folder: Path) -> list[float]:
    """Milliseconds of each of ``ANSWERS`` replies in a queue of ``items``."""
    from fastapi.testclient import TestClient

    from goldset.review import ReviewService, create_app
    from tests.review.conftest import Make
    from tests.review.house import body, long_queue

    store = long_queue(Make, folder, questions=-(-items // EACH), each=EACH)
    client = TestClient(create_app(ReviewService(store), tokens=None, title="Speed"), base_url="http://127.0.0.1:8765")
    client.post("/enter", data={"who": "ada"}).raise_for_status()
    item = client.get("/api/next").json()["item"]
    spent = []
    for n in range(ANSWERS):
        sent = body(item, "no", key=f"key-{n:08}")
        began = time.perf_counter()
        reply = client.post("/api/answer", json=sent)
        spent.append(1000 * (time.perf_counter() - began))
        item = reply.raise_for_status().json()["item"]
    store.close()
    return spent


def main() -> int:
    """Measure, print, write."""
    options = arguments(__doc__, least=10_000, unit="items").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spent = answers(options.n, Path(folder))
    work = f"review page, an answer stored and the next item sent, queue of {options.n:,}"
    slow = statistics.quantiles(spent, n=20)[-1]
    return finish([
        Row.of_times(work, "milliseconds", {"goldset": spent}, wanted=AtMost(50)),
        Row(work, "milliseconds, 95th percentile", slow, measured={"goldset": spent}),
    ], options)


if __name__ == "__main__":
    sys.exit(main())
