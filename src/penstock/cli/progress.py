"""Progress on stderr: a bar on a terminal, elsewhere a line after fifteen seconds and then every half minute."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.core.text import one_line
from penstock.core.units import show_duration

FIRST_S = 15.0
LINE_S = 30.0  # whoever reads a log of CI wants to know within a minute that it lives, and no page of lines


class Done(Protocol):
    """Tells a bar how much is done so far, and, if that changes, what is being done."""

    def __call__(self, done: float, doing: str = "", /) -> None: ...


@contextlib.contextmanager
def bar(what: str, total: float | None = None) -> Iterator[Done]:
    """A bar that is told how much is done so far: `with bar("replaying", 1000) as done: done(17)`."""
    if sys.stderr.isatty():
        with _drawn(what, total) as tell:
            yield tell
    else:
        with _written(what, total) as tell:
            yield tell


@contextlib.contextmanager
def _drawn(what: str, total: float | None) -> Iterator[Done]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(what, 80), total=total)

        def tell(done: float, doing: str = "", /) -> None:
            progress.update(task, completed=done, description=one_line(f"{what}: {doing}" if doing else what, 80))

        yield tell


@contextlib.contextmanager
def _written(what: str, total: float | None) -> Iterator[Done]:
    """A plain line now and then, from a thread: what takes long does not tell meanwhile."""
    told, over, begun_s = [what], threading.Event(), time.monotonic()

    def tell(done: float, doing: str = "", /) -> None:
        share = f", {done / total:.0%}" if total else ""
        told[0] = f"{f'{what}: {doing}' if doing else what}{share}"

    def write() -> None:
        wait_s = FIRST_S
        while not over.wait(wait_s):
            wait_s = LINE_S
            after = show_duration(round(time.monotonic() - begun_s))
            with contextlib.suppress(OSError, ValueError):  # whoever read it has gone
                print(f"{one_line(told[0], 100)} ({after})", file=sys.stderr, flush=True)

    thread = threading.Thread(target=write, name="penstock-progress", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()


def page() -> Console:
    """Where tables go: the terminal as it is, or 120 columns for a pipe, which has no width of its own.

    No markup: a file named "[/x]" is a name, and no colour.
    """
    return Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else 120)
