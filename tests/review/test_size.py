"""What an answer costs the database, whatever the length of the queue. Times: tests/benchmarks/review_speed.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from goldset.review import ReviewService
from goldset.review.service import AnswerIn
from tests.review.house import body, long_queue


def _statements(make: Any, folder: Path, questions: int) -> list[list[str]]:
    """The SQL of each of five answers in a queue of 40 items a question."""
    store = long_queue(make, folder, questions=questions)
    service = ReviewService(store)
    item = service.state("ada")["item"]
    issued: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        issued.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        found = []
        for n in range(5):
            reply = service.answer("ada", AnswerIn.model_validate(body(item, "no", key=f"key-{n:08}")))
            item = reply["item"]
            found.append(list(issued))
            issued.clear()
        assert reply["progress"] == {"answered": 5, "total": 40 * questions}
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        store.close()
    return found


def test_an_answer_issues_the_same_statements_in_a_queue_of_any_length(make: Any, tmp_path: Path) -> None:
    few, many = (_statements(make, tmp_path, questions) for questions in (2, 50))
    assert few == many
    assert all(any(statement.startswith("INSERT INTO labels") for statement in each) for each in many)
