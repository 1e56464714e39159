"""What every section of a configuration file shares."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret", re.IGNORECASE)


class Section(BaseModel):
    """A section of the file: unknown keys are errors, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def refuse_password(url: str | None, instead: str) -> None:
    """The configuration is stored in every version, so an address with a password is refused; ``instead``: what to do.

    Raises:
        ValueError: without the address.
    """
    if url and "://" in url and urlsplit(url).password:
        raise ValueError(f"the address holds a password, and the configuration is stored in every version; {instead}")


def refuse_secrets(headers: dict[str, str]) -> None:
    """Headers that carry a secret must read it from the environment.

    Raises:
        ValueError: names the header, not its value.
    """
    for name, value in headers.items():
        if _SECRET_HEADER.search(name) and "$" not in value:
            raise ValueError(f"the header {name} holds its value, and the configuration is stored in every version; "
                             f'keep it in the environment: {name} = "$NAME"')
