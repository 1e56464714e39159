"""A configuration error in one sentence: the file, the key as the file writes it, the value, what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from goldset.errors import nearest


def explain(path: Path, item: Any, root: type[BaseModel]) -> str:
    """One of pydantic's errors about the file at ``path``, read with the model ``root`` -> one sentence."""
    where, model = _walk(item["loc"], root)
    key = ".".join(where)
    if item["type"] == "extra_forbidden":
        return f"{path}: unknown key '{key}'; {nearest(where[-1], model.model_fields if model else ())}"
    if item["type"] == "missing":
        return f"{path}: the key '{key}' is missing; configs/reference.toml describes it"
    message = item["msg"].removeprefix("Value error, ")
    value = item.get("input")
    shown = f" is {value!r}" if isinstance(value, str | int | float | bool) else ""
    place = f"'{key}'{shown}: " if key else ""
    return f"{path}: {place}{message[:1].lower() + message[1:]}"


def _walk(loc: tuple[int | str, ...], root: type[BaseModel]) -> tuple[list[str], type[BaseModel] | None]:
    """Pydantic's location -> (keys as the file writes them, the section that holds the last one).

    Pydantic puts the chosen kind of a system or judge into the location; the file does not.
    """
    here: list[type[BaseModel]] = [root]
    where: list[str] = []
    holder: type[BaseModel] | None = None
    for part in loc:
        kinds = {kind: model for model in here if "kind" in model.model_fields
                 for kind in getattr(model.model_fields["kind"].annotation, "__args__", ())}
        if len(here) > 1 and part in kinds:
            here = [kinds[part]]
            continue
        where.append(str(part))
        holder = here[0] if len(here) == 1 else None
        if holder is not None and part in holder.model_fields:
            here = _sections(holder.model_fields[str(part)].annotation)
    return where, holder


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The section models inside an annotation such as ``dict[str, A | B]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _sections(inner)]
