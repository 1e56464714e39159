"""A search service over HTTP."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from goldset.config import HttpSystem
from goldset.errors import ConfigError, MissingExtra
from goldset.formats.lines import opaque_id
from goldset.retrievers.asking import FIRST_PAUSE, AgainError, Manners, ask_all, asked_pause
from goldset.retrievers.base import REPEATS, Answer, repeated, tabulate
from goldset.retrievers.kept import Kept, question_keys
from goldset.retrievers.scope import KnownChunks

if TYPE_CHECKING:
    import httpx

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_STEP = re.compile(r"([^.\[\]]+)|\[(\*|\d+)\]")
_HOLE = re.compile(r"\{(query|depth|scope(?:\.[\w-]+)?)\}")


class HttpRetriever:
    """Asks a search service, one question a request.

    Time-outs, dropped connections, 429 and 5xx are tried again, with growing pauses or the one that Retry-After names.
    One question's failure is that question's status; its text appears in no message.

    Args:
        name: system.
        family: systems that share its index or model.
        system: address, body, paths into the answer, and how it is asked.
        known: the corpus' chunks.
        quiet: no progress bar.
        pause: seconds before the first new try; it doubles.
        kept: answers so far.

    Attributes:
        seconds: what each question of the last search took.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        system: HttpSystem,
        known: KnownChunks,
        quiet: bool = False,
        pause: float = FIRST_PAUSE,
        kept: Kept | None = None,
    ) -> None:
        self.name, self.family, self.kept = name, family, kept or Kept(name)
        self.seconds: list[float | None] = []
        self._system, self._known, self._quiet = system, known, quiet
        self._manners = Manners(system, pause)

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status.

        Raises:
            ConfigError: a header needs an environment variable that is not set.
            ExternalError: not one question was answered, or more failed than the configuration allows.
            DataError: answers came, and none of their ids is a chunk.
        """
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra(f"the http system '{self.name}'", "judge") from error
        columns = ("question_id", "query", "scope")
        ids, queries, scopes = (questions.column(name).to_pylist() for name in columns)
        headers = {
            key: _from_environment(value, f"[systems.{self.name}] headers.{key}")
            for key, value in self._system.headers.items()
        }
        with httpx.Client(headers=headers, timeout=self._system.timeout) as client:
            answers = ask_all(
                self.name,
                list(zip(queries, scopes, strict=True)),
                lambda one: self._ask(client, one[0], depth, one[1]),
                self._manners,
                kept=self.kept,
                keys=question_keys(queries, scopes),
                depth=depth,
                quiet=self._quiet,
            )
        self.seconds = [answer.seconds for answer in answers]
        return tabulate(self.name, self.family, ids, self.kept.checked(answers, self._known, scopes))

    def _ask(self, client: httpx.Client, query: str, depth: int, scope: str) -> Answer:
        import httpx

        values = values_of(query, depth, scope)
        try:
            url = fill(self._system.url, values, quoted=True)
            body = None if self._system.body is None else fill_body(self._system.body, values)
        except KeyError as error:
            return Answer(status="failed", detail=f"the question's scope has no '{error.args[0]}', which the url or "
                                                  "body asks for outside a list")
        try:
            response = client.get(url) if body is None else client.post(url, json=body)
        except httpx.TransportError as error:
            raise AgainError(f"{type(error).__name__} after {self._system.timeout:g} s at most") from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            return Answer(status="failed", detail=f"the url cannot be used ({type(error).__name__})")
        if response.status_code == 429 or response.status_code >= 500:
            raise AgainError(f"HTTP {response.status_code}", asked_pause(response.headers.get("Retry-After")))
        if response.status_code != 200:
            return Answer(status="failed", detail=f"HTTP {response.status_code}")
        return self._read(response.content, depth)

    def _read(self, content: bytes, depth: int) -> Answer:
        try:
            value = json.loads(content)
            chunks = [opaque_id(item) for item in pick(value, self._system.ids)]
            scores = [None] * len(chunks) if self._system.scores is None else pick(value, self._system.scores)
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
            return Answer(status="failed", detail=f"chunk '{twice}' {REPEATS}")
        return Answer(known[:depth], [None if score is None else float(score) for score in scores[:depth]])


def values_of(query: str, depth: int, scope: str) -> dict[str, Any]:
    """What the placeholders of a template stand for; keys of the scope without a value are none."""
    found = json.loads(scope)
    keys = {f"scope.{key}": value for key, value in found.items() if value is not None}
    return {"query": query, "depth": depth, "scope": found, **keys}


def fill(template: str, values: Mapping[str, Any], *, quoted: bool = False) -> str:
    """Replace ``{name}`` by its value in one pass: braces in a value, or other names in braces, stay.

    Raises:
        KeyError: the scope does not have the key.
    """

    def put(match: re.Match[str]) -> str:
        value = _value(values, match.group(1))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return quote(text, safe="") if quoted else text

    return _HOLE.sub(put, template)


def fill_body(value: Any, values: Mapping[str, Any]) -> Any:
    """A JSON template with its placeholders filled in, at any depth.

    A string that is nothing but a placeholder becomes the number, list or object itself. An entry of a list that names
    a key which the question's scope does not have is left out, so that a filter falls away with its value.

    Raises:
        KeyError: such a key outside a list.
    """
    if isinstance(value, Mapping):
        return {key: fill_body(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        filled = []
        for item in value:
            try:
                filled.append(fill_body(item, values))
            except KeyError:
                continue
        return filled
    if not isinstance(value, str):
        return value
    whole = _HOLE.fullmatch(value)
    return _value(values, whole.group(1)) if whole else fill(value, values)


def _value(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        raise KeyError(name.removeprefix("scope."))
    return values[name]


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
