"""[systems.NAME]: the retrievers, a class a kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from goldset.config.section import Section


class BM25System(Section):
    """Our BM25 over the corpus."""

    kind: Literal["bm25"]
    family: str = Field("lexical", description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k1: float = Field(1.5, description="term saturation", gt=0)
    b: float = Field(0.75, description="length normalisation", ge=0, le=1)


class DenseSystem(Section):
    """A sentence-transformers encoder with exact search."""

    kind: Literal["dense"]
    family: str = Field(description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    model: str = Field(description="model name, folder, or package:<module with get_model_path>")
    dtype: Literal["float32", "bfloat16", "auto"] = Field("float32", description="auto: bfloat16 where the CPU has it")
    query_prompt: str = Field("", description="put before each query")
    passage_prompt: str = Field("", description="put before each passage")


class HybridSystem(Section):
    """Reciprocal rank fusion of other systems; its family is the union of theirs."""

    kind: Literal["hybrid"]
    of: tuple[str, ...] = Field(description="names of the fused systems", min_length=2)
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k: int = Field(60, description="rank constant", ge=1)
    weights: tuple[float, ...] | None = Field(None, description="one weight a fused system; default 1 each")


class RunSystem(Section):
    """A TREC run file, e.g. production's results."""

    kind: Literal["run"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    path: Path = Field(description="TREC run file; gzip too")


class HttpSystem(Section):
    """A search service."""

    kind: Literal["http"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    url: str = Field(description="address; {query} and {depth} are filled in")
    body: dict[str, Any] | None = Field(None, description="JSON to POST; strings may hold {query}, {depth}, {scope}")
    headers: dict[str, str] = Field({}, description="headers; $NAME is read from the environment")
    ids: str = Field(description="path to the ids in the answer, e.g. hits.hits[*]._id")
    scores: str | None = Field(None, description="path to the scores")
    timeout: float = Field(30.0, description="seconds a request", gt=0)
    retries: int = Field(3, description="tries after the first", ge=0)


class PythonSystem(Section):
    """Your own function: ``search(questions, depth)``."""

    kind: Literal["python"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    entry: str = Field(description="package.module:function", pattern=r"^[\w.]+:\w+$")


System = Annotated[
    BM25System | DenseSystem | HybridSystem | RunSystem | HttpSystem | PythonSystem, Field(discriminator="kind")
]
