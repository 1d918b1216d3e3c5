"""How long to wait for a process that starts: as long as it lives and gets on, whatever else the machine does.

A fixed time is wrong twice: a busy machine fails starts that go well, and one that has ended is waited for.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.errors import ExternalError
from penstock.core.units import show_duration

SAY_S = 10.0  # a start takes 2 to 5 s on a free machine; then a person is told what is waited for, and at 30 s, 90 s, …
SAY_LATER_S = 60.0  # where no person looks: who reads stderr by machine expects the one line of an error
STILL_S = 180.0  # without a word and without work: an idle JVM uses 0.2 s of CPU in this time, one that starts 3 to 10
WORK_S = 1.0
MOST_S = 1800.0  # whatever it does
LOOK_S = 0.05
_HERTZ = os.sysconf("SC_CLK_TCK")


def say(words: str) -> None:
    print(f"penstock: {words}", file=sys.stderr, flush=True)


def say_after_s() -> float:
    """How long to wait before it is said what is waited for."""
    return SAY_S if sys.stderr.isatty() else SAY_LATER_S


@dataclass(slots=True)
class Starting:
    """Something that starts: what it is called, where it logs, and its processes."""

    what: str
    log: Path
    processes: Callable[[], Iterable[int]]
    exit_code: Callable[[], int | None] = lambda: None
    """None while it lives."""
    failure: ExternalError | None = None
    """Why it was given up."""
    _begun_s: float = field(default_factory=time.monotonic)
    _moved_s: float = field(default_factory=time.monotonic)
    _signs: tuple[float, int] = (0.0, 0)
    _say_s: float = field(default_factory=say_after_s)

    def wait(self, ready: Callable[[], bool]) -> None:
        """Return when it is ready; raise when it never will be."""
        while not ready():
            self.check()
            time.sleep(LOOK_S)

    def check(self) -> None:
        """Raise if it has ended or stands still; after a while, say what is waited for."""
        now_s, cpu_s, said = time.monotonic(), self._cpu_s(), self._said()
        if self.exit_code() is not None:
            raise self._failed("did not start")
        if cpu_s - self._signs[0] >= WORK_S or cpu_s < self._signs[0] or said != self._signs[1]:
            self._moved_s, self._signs = now_s, (cpu_s, said)
        if now_s - self._moved_s > STILL_S:
            raise self._failed(f"did not start: it has stood still for {show_duration(now_s - self._moved_s)}")
        if now_s - self._begun_s > MOST_S:
            raise self._failed(f"did not start within {show_duration(MOST_S)}")
        if now_s - self._begun_s > self._say_s:
            self._say_s *= 3
            took = f"{now_s - self._begun_s:.0f} s so far, {cpu_s:.0f} s of CPU used"
            say(f"waiting for {self.what} to start ({took})")

    @contextlib.contextmanager
    def beside(self, end: Callable[[], object]) -> Iterator[None]:
        """While a block waits inside a call that cannot be watched: `end` what it waits for when it stands still."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_S):
                try:
                    self.check()
                except ExternalError:
                    end()
                    return

        watcher = threading.Thread(target=look, name="penstock-start", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _failed(self, how: str) -> ExternalError:
        self.failure = ExternalError(f"{self.what} {how}: {last_words(self.log) or 'it said nothing'}")
        return self.failure

    def _cpu_s(self) -> float:
        return sum(map(cpu_s_of, self.processes()))

    def _said(self) -> int:
        try:
            return self.log.stat().st_size
        except OSError:
            return 0


def cpu_s_of(process: int) -> float:
    """CPU that a process and its ended children used; 0 if it is gone."""
    try:
        # The name, in brackets, may hold blanks; after it, fields 14 to 17 are the times.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _HERTZ
    except (OSError, ValueError):
        return 0.0


def last_words(log: Path) -> str:
    """The last line of a log that tells of an error, or its last line."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "rror" in line]
    return (telling or lines or [""])[-1][:300]
