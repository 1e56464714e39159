"""Progress on stderr: a bar with rate and time left on a terminal, nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
"""Called with the number of units just finished."""


@contextlib.contextmanager
def progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar for ``total`` units of ``what``; silent off a terminal and when ``quiet``."""
    if quiet or total <= 1 or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
