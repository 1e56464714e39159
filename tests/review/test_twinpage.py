"""The page /twins over HTTP: who may decide, what is shown, what is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from goldset.errors import UsageError
from goldset.review import ReviewService, ReviewStore, create_app

LEFT, RIGHT = "The quay opens at seven <b>daily</b>.", "The quay opens at eight <b>daily</b>."


class Board:
    """Near twins by hand; what is decided stands in ``said``."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, str]] = []

    def listed(self) -> list[dict[str, Any]]:
        pair = {"left": "a#0-9", "right": "b#0-9", "similarity": 0.914, "left_text": LEFT, "right_text": RIGHT,
                "state": "open", "by": None, "time": None}
        if self.said:
            action, _, _, by = self.said[-1]
            pair |= {"state": {"merge": "merged", "keep": "kept", "undo": "open"}[action], "by": by,
                     "time": "2026-03-05T12:00:00+00:00"}
        return [pair]

    def decide(self, action: str, left: str, right: str, *, by: str, time: datetime) -> float:
        if left == right:
            raise UsageError("the same text")
        self.said.append((action, left, right, by))
        return 0.9


@pytest.fixture
def board() -> Board:
    return Board()


def client(board: Board | None, tmp_path: Any, *, name: str | None = "ada") -> Any:
    from fastapi.testclient import TestClient

    service = ReviewService(ReviewStore(f"sqlite:///{tmp_path / 'review.sqlite'}"))
    app = create_app(service, title="Test", twins=board)
    return TestClient(app, base_url="http://127.0.0.1", cookies={"goldset_reviewer": name} if name else {})


def test_a_pair_is_shown_with_its_difference_and_without_its_markup(board: Board, tmp_path: Any) -> None:
    page = client(board, tmp_path).get("/twins").text
    assert "91 % alike" in page
    assert "<del>seven</del>" in page
    assert "<ins>eight</ins>" in page
    assert "<b>daily" not in page
    assert "&lt;b&gt;daily" in page
    assert "1 open, 0 judged as one, 0 kept apart" in page


@pytest.mark.parametrize("action", ["merge", "keep", "undo"])
def test_a_decision_is_stored_under_the_name_of_who_is_signed_in(board: Board, tmp_path: Any, action: str) -> None:
    sent = {"action": action, "left": "a#0-9", "right": "b#0-9", "at": "pair1", "by": "somebody else"}
    done = client(board, tmp_path).post("/twins", data=sent, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/twins#pair1")
    assert board.said == [(action, "a#0-9", "b#0-9", "ada")]
    page = client(board, tmp_path).get("/twins").text
    assert {"merge": "Judged as one, ada, 2026-03-05", "keep": "Kept apart, ada, 2026-03-05",
            "undo": "Open, ada, 2026-03-05"}[action] in page


def test_nobody_decides_without_a_name(board: Board, tmp_path: Any) -> None:
    asked = client(board, tmp_path, name=None)
    assert "Your name" in asked.get("/twins").text
    assert "Your name" in asked.post("/twins", data={"action": "merge", "left": "a#0-9", "right": "b#0-9"}).text
    assert board.said == []


def test_what_makes_no_sense_is_said_on_the_page(board: Board, tmp_path: Any) -> None:
    asked = client(board, tmp_path)
    done = asked.post("/twins", data={"action": "marry", "left": "a#0-9", "right": "b#0-9"})
    assert done.status_code == 409
    assert "&#39;marry&#39; is nothing that can be decided" in done.text
    assert "the same text" in asked.post("/twins", data={"action": "merge", "left": "a", "right": "a"}).text
    assert board.said == []


def test_without_near_twins_there_is_no_page(tmp_path: Any) -> None:
    asked = client(None, tmp_path)
    assert asked.get("/twins").status_code == 404
    assert "/twins" not in asked.get("/").text
