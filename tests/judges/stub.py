"""An OpenAI-compatible server on loopback whose answers a test decides. Not a test itself."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from tests.serving import QuietHandler, serving


@dataclass
class Answer:
    """What the server sends back; ``hang`` holds the connection until the server ends."""

    status: int = 200
    content: str | None = '{"relevant": true, "quote": ""}'
    finish: str = "stop"
    refusal: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    usage: dict[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 90, "completion_tokens": 10,
                                                                  "total_tokens": 100})
    raw: str | None = None
    hang: bool = False
    delay: float = 0.0


@dataclass
class Stub:
    """The running server: its address, and what it was asked."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def answered(self) -> int:
        """Requests answered with status 200."""
        with self.lock:
            return self.statuses.count(200)


@contextmanager
def serve(decide: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Stub]:
    """Serve until the block ends; ``decide(number from 1, request body)`` gives each answer."""
    stub = Stub()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["_authorization"] = self.headers.get("Authorization")
            with stub.lock:
                stub.requests.append(body)
                stub.times.append(time.monotonic())
                answer = decide(len(stub.requests), body)
            if answer.hang:
                stub.ended.wait(60)
                self.close_connection = True
                return
            if answer.delay:
                stub.ended.wait(answer.delay)
            payload = (json.dumps(_payload(answer, body)) if answer.raw is None else answer.raw).encode()
            with stub.lock:
                stub.statuses.append(answer.status)
            try:
                self.send_response(answer.status)
                headers = {"Content-Type": "text/html" if answer.raw else "application/json",
                           "Content-Length": str(len(payload)), **answer.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with serving(server):
        try:
            yield stub
        finally:
            stub.ended.set()


def _payload(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": answer.error or {"message": f"stub says {answer.status}", "type": "stub", "code": None}}
    message = {"role": "assistant", "content": answer.content, "refusal": answer.refusal}
    payload = {"id": "stub", "object": "chat.completion", "created": 1, "model": f"{body['model']}-2026",
               "choices": [{"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}]}
    return payload if answer.usage is None else {**payload, "usage": answer.usage}
