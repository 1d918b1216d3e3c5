"""A person's pause of a running job: a file, a call, or SIGUSR1, which pauses and, sent again, lets it go on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from types import FrameType


class Pause:
    """Is the job paused? Whatever paused it, SIGUSR1 ends it.

    >>> pause = Pause()
    >>> pause.set(True)
    >>> pause.is_on()
    True
    """

    def __init__(self, file: str = "") -> None:
        self._file = Path(file) if file else None
        self._is_set = self._is_over = False

    def is_on(self) -> bool:
        return self._is_set or (self._file is not None and self._file.is_file())

    def set(self, is_set: bool) -> None:
        """Where a file was named, it is made and removed, so that everybody sees the pause; it may not be writable."""
        self._is_set = is_set
        if self._file is not None:
            with contextlib.suppress(OSError):
                if is_set:
                    self._file.touch()
                elif not self._file.stat().st_size:  # one with something in it is not ours to remove
                    self._file.unlink()
                self._is_set = False

    def end(self) -> None:
        """Nobody looks any more. SIGUSR1 stays taken: given back, it would end the job."""
        self._is_over = True

    def listen(self) -> str:
        """Take SIGUSR1, which would end this process otherwise; returns why that cannot be, or nothing."""
        if threading.current_thread() is not threading.main_thread():
            return "attach was not called in the main thread, and a signal that nobody takes ends the process"
        handler = signal.getsignal(signal.SIGUSR1)
        is_ours = isinstance(getattr(handler, "__self__", None), Pause)
        if handler is not signal.SIG_DFL and not is_ours:
            return "the job takes it itself"
        signal.signal(signal.SIGUSR1, self._toggle)
        return ""

    def _toggle(self, _signal: int, _frame: FrameType | None) -> None:
        self.set(not self.is_on())
        if self._is_over:
            what = "nothing is controlled here any more"
        elif self.is_on():
            what = "paused, nothing is changed until SIGUSR1 comes again"
        else:
            what = "the pause is over"
        # Not by the log: the signal may have come while this very thread held the log's lock.
        with contextlib.suppress(OSError):
            os.write(2, f"penstock: {what}\n".encode())
