"""A small HTTP server that tests ask, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

ServerT = TypeVar("ServerT", bound=ThreadingHTTPServer)


class QuietHandler(BaseHTTPRequestHandler):
    """Writes no line a request."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(server: ServerT) -> Iterator[ServerT]:
    """Answer until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
