"""A search service over HTTP."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from goldset.errors import ConfigError, ExternalError, MissingExtra
from goldset.formats.lines import opaque_id
from goldset.progress import progress
from goldset.retrievers.base import Answer, check_known, repeated, tabulate

if TYPE_CHECKING:
    import httpx

IN_FLIGHT = 4
LONGEST_PAUSE = 30.0  # seconds, also where the server asks for more
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_STEP = re.compile(r"([^.\[\]]+)|\[(\*|\d+)\]")


class HttpRetriever:
    """Asks a search service, four questions at a time.

    Time-outs, dropped connections, 429 and 5xx are tried again, with growing pauses. One question's failure is that
    question's status; its text appears in no message.

    Args:
        name: system.
        family: systems that share its index or model.
        url: address; ``{query}``, ``{depth}`` and ``{scope}`` are filled in, quoted.
        body: JSON to POST with the same placeholders in its strings; without it the request is a GET. A string that is
            nothing but ``{depth}`` or ``{scope}`` becomes the number or the object.
        headers: ``$NAME`` is read from the environment.
        ids: path to the ids in the answer, e.g. ``hits.hits[*]._id``.
        scores: path to as many scores.
        timeout: seconds a request.
        retries: tries after the first.
        known: ids of the corpus' chunks.
        quiet: no progress bar.
        pause: seconds before the first new try; it doubles.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        url: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        ids: str,
        scores: str | None,
        timeout: float,
        retries: int,
        known: Collection[str],
        quiet: bool = False,
        pause: float = 0.5,
    ) -> None:
        self.name, self.family = name, family
        self._url, self._body, self._headers = url, body, headers
        self._ids, self._scores = ids, scores
        self._timeout, self._retries, self._pause = timeout, retries, pause
        self._known, self._quiet = known, quiet

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status.

        Raises:
            ConfigError: a header needs an environment variable that is not set.
            ExternalError: not one question was answered.
            DataError: answers came, and none of their ids is a chunk.
        """
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra(f"the http system '{self.name}'", "judge") from error
        ids = questions.column("question_id").to_pylist()
        asked = list(zip(questions.column("query").to_pylist(), questions.column("scope").to_pylist(), strict=True))
        headers = {
            key: _from_environment(value, f"[systems.{self.name}] headers.{key}")
            for key, value in self._headers.items()
        }
        answers: list[Answer] = []
        with (
            httpx.Client(headers=headers, timeout=self._timeout) as client,
            ThreadPoolExecutor(IN_FLIGHT) as workers,
            progress(f"asking {self.name}", len(ids), quiet=self._quiet) as advance,
        ):
            for answer in workers.map(lambda one: self._ask(client, one[0], depth, one[1]), asked):
                answers.append(answer)
                advance(1)
        if answers and all(answer.status == "failed" for answer in answers):
            raise ExternalError(
                f"[systems.{self.name}]: none of {len(answers)} questions was answered, the first with: "
                f"{answers[0].detail}; check the url and that the service runs"
            )
        return tabulate(self.name, self.family, ids, check_known(self.name, answers, self._known))

    def _ask(self, client: httpx.Client, query: str, depth: int, scope: str) -> Answer:
        import httpx

        url = fill(self._url, query=quote(query, safe=""), depth=str(depth), scope=quote(scope, safe=""))
        failure = ""
        for attempt in range(self._retries + 1):
            wait = min(self._pause * 2**attempt, LONGEST_PAUSE)
            try:
                if self._body is None:
                    response = client.get(url)
                else:
                    response = client.post(url, json=fill_body(self._body, query=query, depth=depth, scope=scope))
            except httpx.TransportError as error:
                failure = f"{type(error).__name__} after {self._timeout:g} s at most"
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                return Answer(status="failed", detail=f"the url cannot be used ({type(error).__name__})")
            else:
                if response.status_code == 200:
                    return self._read(response.content, depth)
                failure = f"HTTP {response.status_code}"
                if response.status_code != 429 and response.status_code < 500:
                    break
                wait = _asked_pause(response.headers.get("Retry-After"), wait)
            if attempt < self._retries:
                time.sleep(wait)
        return Answer(status="failed", detail=f"{failure} (tried {attempt + 1} times)")

    def _read(self, content: bytes, depth: int) -> Answer:
        try:
            value = json.loads(content)
            chunks = [opaque_id(item) for item in pick(value, self._ids)]
            scores = [None] * len(chunks) if self._scores is None else pick(value, self._scores)
        except (ValueError, LookupError) as error:
            return Answer(status="failed", detail=f"the answer cannot be read: {error.args[0]}")
        known = [chunk for chunk in chunks if chunk is not None]
        if len(known) != len(chunks) or len(scores) != len(chunks):
            return Answer(
                status="failed",
                detail=f"{len(chunks)} ids, of which {len(known)} are text or whole numbers, and {len(scores)} scores",
            )
        if not all(score is None or (isinstance(score, int | float) and abs(score) < float("inf")) for score in scores):
            return Answer(status="failed", detail="a score in the answer is not a finite number")
        twice = repeated(known)
        if twice is not None:
            return Answer(status="failed", detail=f"chunk '{twice}' stands twice in the list")
        return Answer(known[:depth], [None if score is None else float(score) for score in scores[:depth]])


def fill(template: str, **values: str) -> str:
    """Replace ``{name}`` by its value in one pass: braces in a value, or elsewhere in the template, stay."""
    names = "|".join(map(re.escape, values))
    return re.sub(rf"\{{({names})\}}", lambda match: values[match.group(1)], template)


def fill_body(value: Any, *, query: str, depth: int, scope: str) -> Any:
    """A JSON template with its placeholders filled in, at any depth."""
    if isinstance(value, Mapping):
        return {key: fill_body(item, query=query, depth=depth, scope=scope) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill_body(item, query=query, depth=depth, scope=scope) for item in value]
    if value == "{depth}":
        return depth
    if value == "{scope}":
        return json.loads(scope)
    return fill(value, query=query, depth=str(depth), scope=scope) if isinstance(value, str) else value


def pick(value: Any, path: str) -> list[Any]:
    """Values at a path of names, ``[n]`` and ``[*]``, e.g. ``hits.hits[*]._id``.

    Raises:
        LookupError: the answer lacks a part of the path; the message has the part.
    """
    found = [value]
    for name, index in _STEP.findall(path):
        step: list[Any] = []
        for item in found:
            if name and isinstance(item, dict) and name in item:
                step.append(item[name])
            elif index == "*" and isinstance(item, list):
                step.extend(item)
            elif index.isdigit() and isinstance(item, list) and int(index) < len(item):
                step.append(item[int(index)])
            else:
                raise LookupError(f"no '{name or f'[{index}]'}' of the path '{path}' in it")
        found = step
    # A path to one list reads like a path to its items.
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _from_environment(value: str, where: str) -> str:
    def read(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if name not in os.environ:
            raise ConfigError(f"{where}: the environment variable {name} is not set; export it, then run again")
        return os.environ[name]

    return _VARIABLE.sub(read, value)


def _asked_pause(header: str | None, default: float) -> float:
    """Seconds of a Retry-After header, at most 30; dates are not read."""
    return min(float(header), LONGEST_PAUSE) if header and header.strip().isdigit() else default
