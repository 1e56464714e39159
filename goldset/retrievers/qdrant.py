"""A Qdrant collection, through its own client."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from goldset.config import QdrantSystem
from goldset.errors import ConfigError, DataError, ExternalError, MissingExtra, nearest
from goldset.formats.lines import field, opaque_id
from goldset.retrievers.asking import AgainError, Manners, ask_all, asked_pause
from goldset.retrievers.base import CUT, REPEATS, Answer, repeated, tabulate
from goldset.retrievers.kept import Kept, question_keys
from goldset.retrievers.scope import KnownChunks

if TYPE_CHECKING:
    from pathlib import Path

    from qdrant_client import QdrantClient, models


Vectors = npt.NDArray[np.float32]


class EncodesQuestions(Protocol):
    """The part of ``goldset.encoder.Encoder`` that a vector store needs: the passages are in it already."""

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> Vectors:
        """Texts -> unit vectors."""
        ...

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text."""
        ...


class QdrantRetriever:
    """Searches a collection with an encoder's vectors, as production does: same client, same index, same filter.

    The chunk id is a field of a point's payload, since Qdrant's own ids are numbers or UUIDs. A question's scope
    becomes a filter on the payload; values are compared as text and as numbers, since a log writes 7 as it writes "7".

    Args:
        name: system.
        family: systems that share its model.
        system: where the collection is, and how it is asked.
        folder: the local collection's folder, absolute; None for a server.
        encoder: makes vectors of the questions.
        known: the corpus' chunks.
        quiet: no progress bar.
        client: an open client, instead of one from the configuration.
        kept: answers so far.

    Attributes:
        seconds: what each question of the last search took.
    """

    def __init__(
        self,
        name: str,
        family: str,
        *,
        system: QdrantSystem,
        folder: Path | None,
        encoder: EncodesQuestions,
        known: KnownChunks,
        quiet: bool = False,
        client: QdrantClient | None = None,
        kept: Kept | None = None,
    ) -> None:
        self.name, self.family, self.kept = name, family, kept or Kept(name)
        self.seconds: list[float | None] = []
        self._system, self._folder, self._encoder = system, folder, encoder
        self._known, self._quiet, self._given = known, quiet, client
        try:
            import qdrant_client  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtra(f"the qdrant system '{name}'", "qdrant") from error

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """Table questions -> tables run and run_status; score is the collection's, turned round for distances.

        Raises:
            ConfigError: no such collection, vector or environment variable, or vectors of another size.
            ExternalError: the server does not answer, or more questions failed than the configuration allows.
            DataError: answers came, and none of their ids is a chunk.
        """
        columns = ("question_id", "query", "scope")
        ids, queries, scopes = (questions.column(name).to_pylist() for name in columns)
        client = self._given or self._client()
        try:
            sign = self._checked(client)
            vectors = self._encoder.encode(queries, prompt=self._system.query_prompt, quiet=self._quiet)
            cut = self._encoder.cut(queries, prompt=self._system.query_prompt)
            answers = ask_all(
                self.name,
                list(zip(vectors, scopes, strict=True)),
                lambda one: self._ask(client, one[0], one[1], depth, sign),
                # The local engine is not made for two threads at once.
                Manners(self._system if self._folder is None else self._system.model_copy(update={"in_flight": 1})),
                kept=self.kept,
                keys=question_keys(queries, scopes),
                depth=depth,
                quiet=self._quiet,
            )
        finally:
            if self._given is None:
                client.close()
        self.seconds = [answer.seconds for answer in answers]
        answers = [replace(answer, detail=CUT) if beyond and answer.detail is None else answer
                   for answer, beyond in zip(answers, cut, strict=True)]
        return tabulate(self.name, self.family, ids, self.kept.checked(answers, self._known, scopes))

    def _client(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        if self._folder is not None:
            if not self._folder.is_dir():
                raise ConfigError(f"[systems.{self.name}] path: no folder {self._folder}; it is relative to the file")
            try:
                return QdrantClient(path=str(self._folder), force_disable_check_same_thread=True)
            except RuntimeError as error:
                raise ExternalError(f"[systems.{self.name}] {self._folder}: cannot be opened ({error}); "
                                    "one process at a time may use a local collection") from error
        variable = self._system.api_key_env
        if variable is not None and variable not in os.environ:
            raise ConfigError(f"[systems.{self.name}] api_key_env: the environment variable {variable} is not set; "
                              "export it, then run again")
        return QdrantClient(
            url=self._system.url,
            api_key=None if variable is None else os.environ[variable],
            timeout=max(1, round(self._system.timeout)),
            check_compatibility=False,
        )

    def _checked(self, client: QdrantClient) -> float:
        """The collection and its vector are there -> 1, or -1 where a small score is near."""
        from qdrant_client.http.exceptions import ApiException

        where = f"[systems.{self.name}]"
        try:
            names = [one.name for one in client.get_collections().collections]
            if self._system.collection not in names:
                allowed = nearest(self._system.collection, names) if names else "the server has none"
                raise ConfigError(f"{where} collection: no collection '{self._system.collection}'; {allowed}")
            vectors = client.get_collection(self._system.collection).config.params.vectors
        except ApiException as error:
            raise ExternalError(f"{where} {self._system.url}: {_why(error)}; check the address and that the server "
                                "runs") from error
        named = vectors if isinstance(vectors, Mapping) else {"": vectors}
        found = named.get(self._system.vector or "")
        if found is None:
            wanted = f"'{self._system.vector}'" if self._system.vector else "without a name"
            raise ConfigError(f"{where} vector: the collection has no vector {wanted}; it has: "
                              f"{', '.join(repr(name) for name in named if name) or 'one without a name'}")
        size = self._encoder.encode(["size"], quiet=True).shape[1]
        if found.size != size:
            raise ConfigError(f"{where} model: its vectors have {size} dimensions, the collection's {found.size}; name "
                              "the model that the collection was made with")
        return -1.0 if found.distance.value in ("Euclid", "Manhattan") else 1.0

    def _ask(
        self, client: QdrantClient, vector: Vectors, scope: str, depth: int, sign: float
    ) -> Answer:
        from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

        try:
            points = client.query_points(
                self._system.collection,
                query=vector.tolist(),
                using=self._system.vector,
                query_filter=scope_filter(scope, self._system.scope),
                limit=depth,
                with_payload=[self._system.id],
            ).points
        except UnexpectedResponse as error:
            if error.status_code == 429 or (error.status_code or 500) >= 500:
                raise AgainError(_why(error), asked_pause(error.headers.get("Retry-After"))) from error
            return Answer(status="failed", detail=_why(error))
        except ApiException as error:
            raise AgainError(_why(error)) from error
        chunks = [opaque_id(field(point.payload or {}, self._system.id)) for point in points]
        known = [chunk for chunk in chunks if chunk is not None]
        if len(known) != len(chunks):
            return Answer(status="failed", detail=f"{len(chunks) - len(known)} of {len(chunks)} points have no "
                                                  f"'{self._system.id}' in their payload")
        twice = repeated(known)
        if twice is not None:
            return Answer(status="failed", detail=f"chunk '{twice}' {REPEATS}")
        return Answer(known, [sign * point.score for point in points])


def scope_filter(scope: str, fields: Mapping[str, str]) -> models.Filter | None:
    """JSON object of a question's scope, scope key -> payload field -> filter; None where nothing is asked for.

    A list in the scope means any of its values; a key without a field is not filtered here (and is checked after).
    """
    from qdrant_client import models

    wanted = json.loads(scope)
    if not isinstance(wanted, dict):
        raise DataError(f'a question\'s scope: {type(wanted).__name__} where an object was expected, e.g. {{"tenant": '
                        '"a"}')
    must: list[models.Condition] = []
    for key, payload in fields.items():
        value = wanted.get(key)
        if value is not None:
            each = value if isinstance(value, list) else [value]
            must.append(models.Filter(should=[condition for one in each for condition in _equal(payload, one)]))
    return models.Filter(must=must) if must else None


def _equal(payload: str, value: Any) -> list[models.Condition]:
    from qdrant_client import models

    forms: list[Any] = [value]
    if isinstance(value, bool) or value in ("true", "false"):
        forms = [value in (True, "true"), str(value).lower()]
    elif isinstance(value, float) and value.is_integer():
        forms = [int(value), str(int(value))]
    elif isinstance(value, int):
        forms = [value, str(value)]
    elif isinstance(value, str) and value.lstrip("-").isdecimal() and str(int(value)) == value:
        forms = [value, int(value)]
    return [models.FieldCondition(key=payload, match=models.MatchValue(value=form)) for form in forms]


def _why(error: Exception) -> str:
    """A client's error in a few words, without what was sent."""
    status = getattr(error, "status_code", None)
    if status is not None:
        return f"HTTP {status}"
    source = getattr(error, "source", error)
    return f"{type(source).__name__}"
