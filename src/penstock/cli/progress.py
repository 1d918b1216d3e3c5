"""Progress bars on stderr; silent when nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.core.text import one_line


class Done(Protocol):
    """Tells a bar how much is done so far, and, if that changes, what is being done."""

    def __call__(self, done: float, doing: str = "", /) -> None: ...


@contextlib.contextmanager
def bar(what: str, total: float | None = None) -> Iterator[Done]:
    """A bar that is told how much is done so far: `with bar("replaying", 1000) as done: done(17)`."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(one_line(what, 80), total=total)

        def tell(done: float, doing: str = "", /) -> None:
            progress.update(task, completed=done, description=one_line(f"{what}: {doing}" if doing else what, 80))

        yield tell


def page() -> Console:
    """Where tables go: the terminal as it is, or 120 columns for a pipe, which has no width of its own.

    No markup: a file named "[/x]" is a name, and no colour.
    """
    return Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else 120)
