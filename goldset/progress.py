"""Progress on stderr: a bar with rate and time left on a terminal, nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
"""Called with the number of units just finished."""


@contextlib.contextmanager
def progress(what: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar for ``total`` units of ``what``, with units a second and time left; silent off a terminal and if quiet."""
    if quiet or total <= 1 or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units a second, of late."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")

    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeLeft(),
                  console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
