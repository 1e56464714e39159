"""Files that come with the package: the demo's data, the rubric, the configurations."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Path of a file that the project carries, e.g. ``configs/demo.toml``: in the wheel, or in the source tree."""
    packed = _HERE / "_data" / name
    return packed if packed.exists() else _HERE.parent / name
