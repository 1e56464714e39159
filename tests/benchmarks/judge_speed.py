"""The judge's client beside a bare asyncio client, on one server: ``python tests/benchmarks/judge_speed.py``.

A server of our own in another process answers each chat completion after half a second, as a hosted model does, with 32
requests in flight. Ours is the whole ``judge_candidates``: prompts, the openai client, parsing, metering, and every
verdict on disk. The bare client writes requests of that size to 32 connections and reads the answers, nothing more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.rows import ROOT, AtLeast, Row, arguments, finish, in_turn

LEAST = 960
IN_FLIGHT = 32
DELAY = 0.5
ANSWER = {"id": "a", "object": "chat.completion", "created": 1, "model": "m",
          "choices": [{"index": 0, "message": {"role": "assistant", "content": '{"relevant": true, "quote": ""}'},
                       "finish_reason": "stop", "logprobs": None}],
          "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}}


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The body of one HTTP message; empty where the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    sizes = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return await reader.readexactly(int(sizes[0]))


def _message(first: str, body: bytes) -> bytes:
    return f"{first}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def serve() -> None:
    """Answer until the process is ended; the port goes to stdout."""
    answer = _message("HTTP/1.1 200 OK", json.dumps(ANSWER).encode())

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await _read(reader):
            await asyncio.sleep(DELAY)
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def server() -> Iterator[int]:
    """A server in a process of its own; its port."""
    process = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def ours(port: int, pairs: int) -> None:
    """Judge so many pairs into a new store."""
    from goldset.config import Budget
    from goldset.judges import VerdictStore
    from tests.judges.chatting import make, run

    with tempfile.TemporaryDirectory() as folder:
        store = VerdictStore(Path(folder) / "verdicts.sqlite")
        judge = make(f"http://127.0.0.1:{port}/v1", store, in_flight=IN_FLIGHT)
        states = run(judge, store, pairs, Budget()).column("status").to_pylist()
        store.close()
    if states != ["ok"] * pairs:
        raise SystemExit(f"{pairs - states.count('ok')} of {pairs} pairs have no verdict: nothing was compared")


def bare(port: int, requests: list[bytes]) -> None:
    """Send the requests on 32 connections, each as soon as the last one's answer is there."""

    async def worker(waiting: Iterator[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in waiting:
            writer.write(_message("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1", body))
            json.loads(await _read(reader))
        writer.close()

    async def all_workers() -> None:
        waiting = iter(requests)
        await asyncio.gather(*(worker(waiting) for _ in range(IN_FLIGHT)))

    asyncio.run(all_workers())


def bodies(pairs: int) -> list[bytes]:
    """Requests of the size that the judge's are."""
    text = "word " * 150
    chat: dict[str, Any] = {"model": "m", "temperature": 0, "max_tokens": 200}
    return [json.dumps({**chat, "messages": [{"role": "user", "content": f"{number} {text}"}]}).encode()
            for number in range(pairs)]


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is missed."""
    parser = arguments(__doc__, least=LEAST, unit="pairs")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    requests = bodies(options.n)
    with server() as port:
        ours(port, IN_FLIGHT)  # imports are not judging
        times = in_turn({"goldset": lambda: ours(port, options.n), "bare asyncio": lambda: bare(port, requests)})
    rates = {tool: [options.n / seconds for seconds in values] for tool, values in times.items()}
    work = f"judge client, {options.n:,} pairs, {IN_FLIGHT} in flight, a server that answers after {DELAY:g} s"
    return finish([Row.of_times(work, "answers a second", rates, better="large", wanted=AtLeast(0.9))], options)


if __name__ == "__main__":
    sys.exit(main())
