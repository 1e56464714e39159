"""BM25 over token lists: rank-bm25's statistics and formula, stored and scored through a sparse matrix.

``SparseOkapi`` is the library's class with another memory, ``BM25Index`` adds chunk ids and statistics for the audit,
``SavedIndex`` is a folder of shards that is searched where it lies.
"""

from goldset.lexical.index import BM25Index
from goldset.lexical.okapi import SparseOkapi, robertson_idf, top_rows
from goldset.lexical.saved import SavedIndex, index_key

__all__ = ["BM25Index", "SavedIndex", "SparseOkapi", "index_key", "robertson_idf", "top_rows"]
