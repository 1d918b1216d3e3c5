"""A journal that is still written: what is new in it, again and again."""

from __future__ import annotations

import os
from collections import deque
from itertools import count
from pathlib import Path
from typing import BinaryIO, Self

from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.core.journal import Header, Journal, read_header
from penstock.core.journal_steps import StepReader
from penstock.core.loop import Step


class Follower:
    """Reads a journal as it grows: half a line waits for its end, and a rotated file is read out before the next.

    >>> import tempfile
    >>> from penstock.core.objective import Limits, Objective, Price
    >>> from penstock.core.journal import JournalWriter
    >>> path = Path(tempfile.mkdtemp()) / "run.jsonl"
    >>> with JournalWriter.at(path, Header("orders", "mst", Limits(1, 4), Objective(), Price(), 60.0)): pass
    >>> with Follower(path) as follower: follower.header.job, follower.read()
    ('orders', [])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: Header = Journal.open(path).header
        self.files = 0
        """How many files were begun: one, and one more for each rotation."""
        self.trouble = ""
        """Why nothing can be read at the moment."""
        self.damaged = 0
        """How many lines were of no use."""
        self.first_damaged = ""
        """Where the first of them stands; empty where all were good."""
        # Opened at once: a rotation that comes meanwhile gives them other names.
        self._ahead = deque(reads(part).open("rb") for part in _parts(path, self.header))
        self._bytes = sum(map(_size, self._ahead))
        self._begin(self._ahead.popleft())

    @property
    def share(self) -> float:
        """How much is read, 0…1; half a line at the end counts as read."""
        left = _size(self._file) - self._file.tell() + sum(map(_size, self._ahead))
        return 1.0 if self._drained and not self._ahead else max(0.0, 1.0 - left / max(self._bytes, left, 1))

    @property
    def changed_s(self) -> float:
        """Unix time of the last change."""
        return os.fstat(self._file.fileno()).st_mtime

    def read(self, lines: int = 1000) -> list[Step]:
        """The steps of the next lines, all of one file; none when there is nothing new."""
        # Asked before reading: what the writer put into the old file before it turned to the new one is then seen.
        moved = self._drained and not self._ahead and self._is_moved()
        before = self._number
        steps = self._steps(lines)
        if self._number > before:
            return steps
        if self._ahead:
            self._file.close()
            self._begin(self._ahead.popleft())
        elif not moved or not self._renew():
            return []
        return self._steps(lines)

    def _steps(self, lines: int) -> list[Step]:
        steps = []
        for _ in range(lines):
            line = self._line()
            if line is None:
                break
            step = self._reader.step(line)
            if step is not None:
                steps.append(step)
            else:
                self.damaged += 1
                self.first_damaged = self.first_damaged or f"line {self._number} of {Path(self._file.name).name}"
        return steps

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._file, *self._ahead):
            file.close()

    def _begin(self, file: BinaryIO) -> None:
        self._file = file
        self._reader = StepReader()
        self._number = 0
        self._drained = False
        self._line()
        self.files += 1

    def _line(self) -> str | None:
        at = self._file.tell()
        line = self._file.readline()
        self._drained = not line.endswith(b"\n")
        if self._drained:
            self._file.seek(at)
            return None
        self._number += 1
        return line.decode("utf-8", errors="replace")

    def _is_moved(self) -> bool:
        """Has another file taken the name, or was this one cut short?"""
        own = os.fstat(self._file.fileno())
        try:
            now = self.path.stat()
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}; waiting for it to come back"
            return False
        self.trouble = ""
        return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino) or now.st_size < self._file.tell()

    def _renew(self) -> bool:
        """Turn to the file that has the name now, as soon as its header is whole."""
        try:
            with self.path.open("rb") as file:
                line = file.readline().decode("utf-8", errors="replace")
            if not line.endswith("\n"):
                return False
            self.header = read_header(line, self.path)
            following = self.path.open("rb")
        except (BadInput, OSError) as error:
            self.trouble = str(error)
            return False
        self._file.close()
        self._begin(following)
        self._bytes = 0
        return True


def _parts(path: Path, header: Header) -> list[Path]:
    """The files of one journal in the order of time: run.jsonl.2, run.jsonl.1, run.jsonl."""
    parts = [path]
    for number in count(1):
        older = path.with_name(f"{path.name}.{number}")
        try:
            if Journal.open(older).header != header:
                break
        except (BadInput, OSError):
            break
        parts.append(older)
    return parts[::-1]


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
