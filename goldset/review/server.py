"""The review page over HTTP: FastAPI around ReviewService, uvicorn around that.

Loopback needs no token: whoever is on the machine gives a name. Any other address demands a token for each reviewer.
"""

# No postponed annotations here: FastAPI reads those of the endpoints, whose types are imported inside create_app.

import hmac
import re
import socket
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldset.errors import DataError, ExternalError, GoldsetError, MissingExtra, UsageError
from goldset.formats.lines import numbered_lines

from .database import AnsweredElsewhere, ReviewStore
from .passages import Passages
from .service import AnswerIn, Grow, Refused, ReviewService, Search
from .twinpage import TwinBoard, add_twins

if TYPE_CHECKING:
    from fastapi import FastAPI

_HERE = Path(__file__).parent
_COOKIE = "goldset_reviewer"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NAME = re.compile(r"[\w][\w .@+-]{0,39}")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
}


def read_tokens(path: Path | None = None, text: str | None = None) -> dict[str, str]:
    """Reviewer -> token: a file with a line ``name:token`` each, else ``text``, the value of GOLDSET_REVIEW_TOKENS.

    Raises:
        UsageError: a pair that cannot be read, a short or repeated token; the token itself is never shown.
    """
    if path is not None:
        pairs = [(f"{path}, line {number}", line.strip()) for number, line in numbered_lines(path) if line.strip()]
    else:
        parts = (text or "").split(",")
        pairs = [(f"GOLDSET_REVIEW_TOKENS, entry {n}", part.strip()) for n, part in enumerate(parts, 1) if part.strip()]
    tokens: dict[str, str] = {}
    for where, pair in pairs:
        name, _, token = pair.partition(":")
        if not _NAME.fullmatch(name.strip()) or len(token.strip()) < 12:
            raise UsageError(f"{where}: expected name:token with a token of at least 12 characters")
        if name.strip() in tokens or token.strip() in tokens.values():
            raise UsageError(f"{where}: the name '{name.strip()}' or its token appears twice; "
                             "each reviewer has their own")
        tokens[name.strip()] = token.strip()
    return tokens


def create_app(service: ReviewService, *, tokens: Mapping[str, str] | None = None, title: str = "Goldset",
               loopback: bool = True, twins: TwinBoard | None = None) -> "FastAPI":
    """The web application. ``tokens`` maps reviewers to tokens; without them a reviewer gives a name.

    With ``twins`` the page /twins lists passages that are almost the same.

    Raises:
        MissingExtra: fastapi is not installed.
    """
    try:
        from fastapi import FastAPI, Request, Response
        from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
        from fastapi.staticfiles import StaticFiles
    except ImportError as error:
        raise MissingExtra("the review page", "review") from error
    from jinja2 import Environment, FileSystemLoader

    app = FastAPI(title=title, docs_url=None, redoc_url=None, openapi_url=None)
    pages = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")

    def who(request: Request) -> str | None:
        value = urllib.parse.unquote(request.cookies.get(_COOKIE, ""))
        return _reviewer(value, tokens)

    def enter(status: int = 200, problem: str = "") -> HTMLResponse:
        page = pages.get_template("enter.html").render(title=title, problem=problem, by_token=bool(tokens))
        return HTMLResponse(page, status_code=status)

    @app.middleware("http")
    async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        # A page elsewhere that rebinds its name to this address must not reach the labels.
        if loopback and request.url.hostname not in _LOOPBACK:
            return JSONResponse({"error": "this review is served to this machine only"}, status_code=403)
        response = await call(request)
        response.headers.update(_HEADERS)
        return response

    @app.exception_handler(GoldsetError)
    async def refused(_request: Request, error: GoldsetError) -> JSONResponse:
        conflict = isinstance(error, Refused | AnsweredElsewhere)
        return JSONResponse({"error": str(error)}, status_code=409 if conflict else 500)

    @app.get("/")
    def page(request: Request) -> Response:
        name = who(request)
        if name is None:
            return enter()
        return HTMLResponse(pages.get_template("review.html").render(title=title, name=name,
                                                                     searchable=service.searchable,
                                                                     twins=twins is not None))

    if twins is not None:
        add_twins(app, pages=pages, title=title, board=twins, who=who, enter=enter)

    @app.post("/enter")
    async def sign_in(request: Request) -> Response:
        form = urllib.parse.parse_qs((await request.body())[:2000].decode("utf-8", "replace"))
        value = form.get("who", [""])[0].strip()
        if _reviewer(value, tokens) is None:
            return enter(401, "That token is not known here." if tokens else
                         "A name has letters, digits, spaces, and . @ + - _, at most 40 of them.")
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(_COOKIE, urllib.parse.quote(value), httponly=True, samesite="strict",
                            secure=request.url.scheme == "https", max_age=30 * 86_400)
        return response

    @app.post("/leave")
    def sign_out() -> Response:
        response = RedirectResponse("/", status_code=303)
        response.delete_cookie(_COOKIE)
        return response

    def signed_in(request: Request) -> str:
        name = who(request)
        if name is None:
            raise _SignedOut("sign in again: open this page anew")
        return name

    @app.exception_handler(_SignedOut)
    async def signed_out(_request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=401)

    @app.get("/api/next")
    def following(request: Request) -> dict[str, Any]:
        return service.state(signed_in(request))

    @app.post("/api/answer")
    def answer(request: Request, sent: AnswerIn) -> dict[str, Any]:
        return service.answer(signed_in(request), sent)

    @app.post("/api/undo")
    def undo(request: Request, sent: dict[str, str]) -> dict[str, Any]:
        return service.undo(signed_in(request), sent.get("key", ""))

    @app.post("/api/search")
    def search(request: Request, sent: dict[str, str]) -> dict[str, Any]:
        return service.search(signed_in(request), sent.get("question", ""), sent.get("words", "")[:500])

    return app


class _SignedOut(DataError):
    """The request carries no known reviewer."""


def _reviewer(value: str, tokens: Mapping[str, str] | None) -> str | None:
    if not tokens:
        return value if _NAME.fullmatch(value) else None
    given = value.encode("utf-8", "surrogatepass")
    return next((name for name, token in tokens.items() if hmac.compare_digest(token.encode(), given)), None)


def serve(store: ReviewStore, *, host: str = "127.0.0.1", port: int = 8765, tokens: Mapping[str, str] | None = None,
          announce: Callable[[str], None] = lambda address: None, title: str = "Goldset", rubric_version: str = "1.0",
          campaign: str = "rebuild", passages: Passages | None = None, search: Search | None = None,
          grow: Grow | None = None, twins: TwinBoard | None = None) -> None:
    """Serve the review page until interrupted; ``announce`` is told its address once it accepts connections.

    ``search`` (words -> span ids) with ``passages`` gives the page a search box over the corpus; ``grow`` (queue,
    labels -> rows) is asked for the next wave when somebody has nothing left, and needs ``passages`` too. ``twins``
    gives it the page /twins. Port 0 takes any free port.

    Raises:
        UsageError: an address beyond this machine without tokens.
        ExternalError: the port is taken.
        MissingExtra: fastapi or uvicorn is not installed.
    """
    loopback = host in _LOOPBACK
    if not loopback and not tokens:
        raise UsageError(f"host '{host}' can be reached from other machines and needs a token for each reviewer: set "
                         "GOLDSET_REVIEW_TOKENS=name:token,… or give a file of name:token lines, or serve on 127.0.0.1")
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("the review page", "review") from error
    service = ReviewService(store, reviewers=tuple(tokens or ()), rubric_version=rubric_version, campaign=campaign,
                            passages=passages, search=search, grow=grow)
    app = create_app(service, tokens=tokens, title=title, loopback=loopback, twins=twins)
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{listener.getsockname()[1]}/")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ExternalError(f"{host}:{port}: cannot listen there ({error.strerror}); "
                            "choose another --port, or 0 for any free one") from error
    return listener
