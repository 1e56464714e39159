"""The page /twins: passages that are almost the same, and what people decide about them."""

# No postponed annotations here: FastAPI reads those of the endpoints, whose types are imported inside add_twins.

import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from goldset.errors import GoldsetError, UsageError
from goldset.spans.neartwins import segments

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from fastapi.responses import HTMLResponse
    from jinja2 import Environment

SHOWN = 100


class TwinBoard(Protocol):
    """Where near twins are listed and decided; ``goldset.pipeline.twins.Twins`` is one."""

    def listed(self) -> list[dict[str, Any]]:
        """Pairs with left, right, similarity, state, by, time and both texts, most alike first."""
        ...

    def decide(self, action: str, left: str, right: str, *, by: str, time: datetime) -> float:
        """Store merge, keep or undo; GoldsetError where that makes no sense."""
        ...


def add_twins(app: "FastAPI", *, pages: "Environment", title: str, board: TwinBoard,
              who: "Callable[[Request], str | None]", enter: "Callable[[], HTMLResponse]") -> None:
    """Serve the page; nobody decides without a name."""
    from fastapi import Request, Response
    from fastapi.responses import HTMLResponse, RedirectResponse

    def shown(name: str, problem: str = "", status: int = 200) -> HTMLResponse:
        pairs = board.listed()
        for pair in pairs[:SHOWN]:
            pair["segments"] = segments(pair["left_text"], pair["right_text"])
        counts = {state: sum(pair["state"] == state for pair in pairs) for state in ("open", "merged", "kept")}
        page = pages.get_template("twins.html").render(title=title, name=name, pairs=pairs[:SHOWN], counts=counts,
                                                       more=len(pairs) - SHOWN, problem=problem)
        return HTMLResponse(page, status_code=status)

    @app.get("/twins")
    def twins(request: Request) -> Response:
        name = who(request)
        return enter() if name is None else shown(name)

    @app.post("/twins")
    async def decide(request: Request) -> Response:
        name = who(request)
        if name is None:
            return enter()
        form = urllib.parse.parse_qs((await request.body())[:8000].decode("utf-8", "replace"))
        action, left, right = (form.get(field, [""])[0] for field in ("action", "left", "right"))
        try:
            if action not in ("merge", "keep", "undo"):
                raise UsageError(f"'{action}' is nothing that can be decided; merge, keep and undo are")
            board.decide(action, left, right, by=name, time=datetime.now(UTC))
        except GoldsetError as error:
            return shown(name, str(error), 409)
        at = form.get("at", [""])[0]
        return RedirectResponse(f"/twins#{at}" if at.isalnum() else "/twins", status_code=303)
