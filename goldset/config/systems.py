"""[systems.NAME]: the retrievers, a class a kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from goldset.config.section import Section, refuse_password, refuse_secrets
from goldset.text import STEMMERS, STOP_WORDS, Tokenizer


class BM25System(Section):
    """Our BM25 over the corpus."""

    kind: Literal["bm25"]
    family: str = Field("lexical", description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k1: float = Field(1.5, description="term saturation", gt=0)
    b: float = Field(0.75, description="length normalisation", ge=0, le=1)
    language: str | None = Field(None, description="ISO 639-1 code, for stem and stop_words")
    stem: bool = Field(False, description="match words by their Snowball stem; needs the extra 'words'")
    stop_words: bool = Field(False, description="leave the language's function words out; needs the extra 'words'")

    @model_validator(mode="after")
    def _spoken(self) -> BM25System:
        for key, wanted, known in (("stem", self.stem, STEMMERS), ("stop_words", self.stop_words, STOP_WORDS)):
            if wanted and self.language not in known:
                has = f"language = '{self.language}' has none" if self.language else "there is no language"
                raise ValueError(f"{key} = true needs the rules of a language, and {has}; set language to one of: "
                                 + ", ".join(sorted(known)))
        if self.language and not (self.stem or self.stop_words):
            raise ValueError(f"language = '{self.language}' is read by stem and stop_words only; set one of them to "
                             "true, or leave it out")
        return self

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts questions and chunks into words."""
        return Tokenizer(self.language, self.stem, self.stop_words)


class DenseSystem(Section):
    """A sentence-transformers encoder, with exact search unless ``index`` says otherwise."""

    kind: Literal["dense"]
    family: str = Field(description="systems that share an index or a model")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    model: str = Field(description="model name, folder, or package:<module with get_model_path>")
    dtype: Literal["float32", "bfloat16", "auto"] = Field(
        "float32", description="auto: bfloat16 where the device has it")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: a GPU where there is one")
    query_prompt: str = Field("", description="put before each query")
    passage_prompt: str = Field("", description="put before each passage")
    index: Literal["exact", "hnsw", "ivf"] = Field(
        "exact", description="hnsw and ivf look at a part of the chunks: what they miss is missing from the pool, and "
        "the rebuild measures how much")
    hnsw_links: int = Field(32, description="index = hnsw: neighbours of a vector in the graph", ge=2)
    hnsw_build: int = Field(100, description="index = hnsw: vectors looked at to place one", ge=1)
    hnsw_search: int = Field(200, description="index = hnsw: vectors looked at for a question", ge=1)
    ivf_lists: int | None = Field(
        None, description="index = ivf: lists a shard is cut into; default: four times the root of its vectors", ge=1)
    ivf_probes: int = Field(32, description="index = ivf: lists looked at for a question", ge=1)

    @model_validator(mode="after")
    def _of_the_index(self) -> DenseSystem:
        for key in sorted(self.model_fields_set):
            if key.startswith(("hnsw_", "ivf_")) and not key.startswith(f"{self.index}_"):
                raise ValueError(f"{key} is read with index = '{key.partition('_')[0]}' only, and index is "
                                 f"'{self.index}'; change index, or leave the key out")
        return self


class HybridSystem(Section):
    """Reciprocal rank fusion of other systems; its family is the union of theirs."""

    kind: Literal["hybrid"]
    of: tuple[str, ...] = Field(description="names of the fused systems", min_length=2)
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    k: int = Field(60, description="rank constant", ge=1)
    weights: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        None, description="one weight a fused system; default 1 each")


class RunSystem(Section):
    """A TREC run file, e.g. production's results."""

    kind: Literal["run"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    path: Path = Field(description="TREC run file; gzip too")


class Service(Section):
    """A service that is asked one question a request."""

    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    version: str | None = Field(None, description="your name for the state of its index; a rebuild asks again when it "
                                "changes, and otherwise only for another sample or configuration")
    timeout: float = Field(30.0, description="seconds a request", gt=0)
    retries: int = Field(3, description="tries after the first, on 429, 5xx, time-outs and lost connections", ge=0)
    in_flight: int = Field(4, description="requests at the same time", ge=1)
    per_second: float | None = Field(None, description="most requests a second, tries included; default: no limit",
                                     gt=0)
    failed_share: float = Field(0.1, description="stop if more of the questions than this fail (one may, unless 0)",
                                ge=0, le=1)


class HttpSystem(Service):
    """A search service over HTTP."""

    kind: Literal["http"]
    url: str = Field(description="address; {query}, {depth}, {scope} and {scope.KEY} are filled in, quoted")
    body: dict[str, Any] | None = Field(None, description="JSON to POST, with the same in its strings; a list's entry "
                                        "whose {scope.KEY} a question does not have is left out")
    headers: dict[str, str] = Field({}, description="headers; $NAME is read from the environment")
    ids: str = Field(description="path to the ids in the answer, e.g. hits.hits[*]._id")
    scores: str | None = Field(None, description="path to the scores")

    @model_validator(mode="after")
    def _asks(self) -> HttpSystem:
        if "{query}" not in self.url and "{query}" not in repr(self.body):
            raise ValueError("neither url nor body holds {query}, so every question would get the same answer")
        refuse_password(self.url, "send it as a header: Authorization = \"Basic $NAME\"")
        refuse_secrets(self.headers)
        return self


class QdrantSystem(Service):
    """A Qdrant collection, searched with an encoder's vectors through its own client."""

    kind: Literal["qdrant"]
    url: str | None = Field(None, description="address of the server, e.g. http://127.0.0.1:6333")
    path: Path | None = Field(None, description="folder of a local collection, instead of url")
    api_key_env: str | None = Field(None, description="environment variable that holds the key")
    collection: str = Field(description="collection to search")
    vector: str | None = Field(None, description="named vector to search; default: the unnamed one")
    id: str = Field("chunk_id", description="payload field that holds the chunk id")
    scope: dict[str, str] = Field({}, description='scope key -> payload field it must equal, e.g. {tenant = "tenant"}')
    model: str = Field(description="encoder of the questions: name, folder, or package:<module>")
    dtype: Literal["float32", "bfloat16", "auto"] = Field("float32", description="auto: bfloat16 where the CPU has it")
    query_prompt: str = Field("", description="put before each query")

    @model_validator(mode="after")
    def _one_place(self) -> QdrantSystem:
        if (self.url is None) == (self.path is None):
            raise ValueError("needs url (a server) or path (a local folder), and not both")
        return self


class PythonSystem(Section):
    """Your own function: ``search(questions, depth)``."""

    kind: Literal["python"]
    family: str | None = Field(None, description="systems that share an index or a model; default: the system's name")
    audit_only: bool = Field(False, description="never feeds the pool; grades it")
    version: str | None = Field(None, description="your name for the state of its index; a rebuild asks again when it "
                                "changes, and otherwise only for another sample or configuration")
    entry: str = Field(description="package.module:function", pattern=r"^[\w.]+:\w+$")


class GoldSetSystem(Section):
    """An old labelled set: its gold passages are read again, its labels are not taken over."""

    kind: Literal["gold_set"]
    family: str | None = Field(None, description="what the set was made from; default: the system's name")
    path: Path = Field(description="a published version, a BEIR folder, qrels, or a file of questions with gold")
    questions: Path | None = Field(None, description="texts of the questions, where qrels stand alone (JSONL)")
    corpus: Path | None = Field(None, description="texts of the passages, where qrels stand alone (JSONL)")
    relevant_from: int | None = Field(None, description="smallest grade that counts, where grades go above 1")

    @property
    def audit_only(self) -> bool:
        """An old set is there to feed the pool."""
        return False


System = Annotated[
    BM25System | DenseSystem | HybridSystem | RunSystem | HttpSystem | QdrantSystem | PythonSystem | GoldSetSystem,
    Field(discriminator="kind"),
]
