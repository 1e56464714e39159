"""Goldset rebuilds the labelled sets that retrieval teams measure recall against.

Importing this package loads nothing else: commands and stages import what they need when called. For notebooks there
are ``goldset.recall(gold, run, k=5)`` and ``goldset.audit(gold, run)``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldset.api import audit as audit
    from goldset.api import recall as recall

__all__ = ["__version__", "audit", "recall"]


def __getattr__(name: str) -> Any:
    """Resolve names on demand: importlib.metadata alone costs more than `--help` may take."""
    if name == "__version__":
        from importlib.metadata import version

        return version("goldset-rebuilder")
    if name in ("audit", "recall"):
        from goldset import api

        return getattr(api, name)
    raise AttributeError(f"module 'goldset' has no attribute {name!r}")
