"""Goldset rebuilds the labelled sets that retrieval teams measure recall against.

Importing this package loads nothing else: commands and stages import what they need when called.
"""

from typing import Any

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    """Resolve ``__version__`` on demand: importlib.metadata costs more than `--help` may take."""
    if name == "__version__":
        from importlib.metadata import version

        return version("goldset-rebuilder")
    raise AttributeError(f"module 'goldset' has no attribute {name!r}")
