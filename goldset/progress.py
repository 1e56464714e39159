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
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units a second over the last half minute."""

        def render(self, task: Task) -> Text:
            speed = task.speed or 0.0
            return Text(f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s" if speed else "")

    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
