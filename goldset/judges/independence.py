"""A judge and a system that share a model are not independent; every output that uses both says so."""

from __future__ import annotations

from collections.abc import Mapping


def independence(judge_family: str, systems: Mapping[str, str]) -> list[str]:
    """Families of the judge and of systems (name -> family) -> one sentence for each system that shares one.

    ``a+b`` belongs to both families. Case and outer white space do not count.
    """
    own = _elementary(judge_family)
    return [
        f"judge not independent of {name}: both use {' and '.join(sorted(own & _elementary(family)))}"
        for name, family in sorted(systems.items()) if own & _elementary(family)
    ]


def _elementary(family: str) -> set[str]:
    return {part.strip().casefold() for part in family.split("+") if part.strip()}
