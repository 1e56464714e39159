"""A Prefect server for the schedules: the embedded one that flows start for themselves has no scheduler."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from goldset.errors import ExternalError

USUAL_PORT = 4200  # Prefect's own default; any free port where it is taken
START_SECONDS = 120
STOP_SECONDS = 15


@contextlib.contextmanager
def scheduling_server() -> Iterator[str]:
    """The address of the API: of the server that PREFECT_API_URL names, else of one that lives as long as the block.

    Raises:
        ExternalError: the server did not start; the message names its log.
    """
    if named := PREFECT_API_URL.value():
        yield str(named)
        return
    port = _free_port()
    address = f"http://127.0.0.1:{port}/api"
    log = Path(PREFECT_HOME.value()) / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        # A session of its own: Ctrl-C must reach the schedules first, which pause themselves through the server.
        server = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
    try:
        _wait(server, address, log)
        os.environ["PREFECT_API_URL"] = address  # for the processes of the scheduled runs
        with temporary_settings({PREFECT_API_URL: address}):
            yield address
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _free_port() -> int:
    for port in (USUAL_PORT, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise ExternalError("no free port on 127.0.0.1 for Prefect's server; start one elsewhere and name it in "
                        "PREFECT_API_URL")


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=5).status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    raise ExternalError(f"{log}: Prefect's server did not start on {address}; read there why, or start one "
                        "yourself and name it in PREFECT_API_URL")
