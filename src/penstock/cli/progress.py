"""Progress bars on stderr; silent when nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Done(Protocol):
    """Tells a bar how much is done so far, and, if that changes, what is being done."""

    def __call__(self, done: float, doing: str = "", /) -> None: ...


@contextlib.contextmanager
def bar(what: str, total: float | None = None) -> Iterator[Done]:
    """A bar that is told how much is done so far: `with bar("replaying", 1000) as done: done(17)`."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(what, total=total)

        def tell(done: float, doing: str = "", /) -> None:
            progress.update(task, completed=done, description=f"{what}: {doing}" if doing else what)

        yield tell


def page() -> Console:
    """Where tables go: the terminal as it is, or 120 columns for a pipe, which has no width of its own."""
    return Console() if sys.stdout.isatty() else Console(width=120)
