"""Documents and chunk files -> tables documents and chunks; each offset verified, located, stitched or declared."""

from goldset.corpus.build import CorpusTables, build_corpus
from goldset.corpus.chunker import cut_document

__all__ = ["CorpusTables", "build_corpus", "cut_document"]
