"""A journal on any path that Spark can write (hdfs, s3a, abfs, …): kept in a file here, and sent there as it grows."""

from __future__ import annotations

import logging
import re
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput
from penstock.core.journal import Header
from penstock.live.recorder import Recorder

log = logging.getLogger("penstock")
SEND_S = 30.0  # so much of a journal may be lost with its machine
ROTATE_BYTES = 4_000_000  # object stores cannot append: a file is sent whole, about two days of steps every 15 s


def is_address(place: str | Path) -> bool:
    """Is it for Spark to write, and no path of this machine?"""
    return re.match(r"[a-z][a-z0-9+.-]+:/", str(place)) is not None


def recorder_at(spark: SparkSession, place: str | Path, header: Header, memory_s: float) -> Recorder:
    """A recorder of the journal at this path or address."""
    if is_address(place):
        return RemoteRecorder(spark, str(place), header, memory_s)
    return Recorder(Path(place), header, memory_s)


class RemoteRecorder(Recorder):
    """Writes a file here and sends it from a thread of its own: a slow store must not slow the control.

    One controller of a job is made sure of by its application and, for files, by a lock; a store has none.
    """

    def __init__(self, spark: SparkSession, address: str, header: Header, memory_s: float) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="penstock-journal-")
        path = Path(self._scratch.name) / address.rpartition("/")[2]
        self._store = Store(spark, address)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send_often, name="penstock-journal", daemon=True)
        try:
            self._store.fetch(path)
            super().__init__(path, header, memory_s, ROTATE_BYTES)
            self._send_first()
        except Py4JError as error:
            self._scratch.cleanup()
            raise BadInput(f"the journal {address} cannot be written: {_line(error)}") from None
        except BaseException:
            self._scratch.cleanup()
            raise
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._stopped.set()
        self._thread.join()
        self._scratch.cleanup()

    def _send_first(self) -> None:
        """A place that cannot be written is said before the job relies on it."""
        try:
            self._store.send(self._path)
        except BaseException:
            super().__exit__(None, None, None)
            raise

    def _send_often(self) -> None:
        said = ""
        is_last = False
        while not is_last:
            is_last = self._stopped.wait(SEND_S)
            try:
                self._store.send(self._path)
                said = ""
            except (Py4JError, OSError) as error:
                if (line := _line(error)) != said:
                    log.warning("the journal %s cannot be sent, it is tried again: %s", self._store.address, line)
                said = line


class Store:
    """One address of Spark's file systems, and the rotated files beside it."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self.address = address
        self._path: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        self._settings: Any = spark._jsc.hadoopConfiguration()
        self._sent: dict[str, tuple[int, int]] = {}

    def fetch(self, path: Path) -> None:
        """What an earlier controller sent: the journal, and the one before it."""
        for ending in ("", ".1"):
            there, unfinished = self._path(self.address + ending), self._path(f"{self.address}{ending}.new")
            files = there.getFileSystem(self._settings)
            # A crash between removing the old and renaming the new leaves the new, whole.
            found = next((each for each in (there, unfinished) if files.exists(each)), None)
            if found is not None:
                files.copyToLocalFile(False, found, self._path(f"file:{path}{ending}"), True)

    def send(self, path: Path) -> None:
        """Files that changed since the last time; rotated ones first, so that nothing is missing in between."""
        for each in sorted(path.parent.glob(f"{path.name}*"), reverse=True):
            about = each.stat()
            mark = (about.st_mtime_ns, about.st_size)
            if each.suffix == ".lock" or self._sent.get(each.name) == mark:
                continue
            there = self._path(self.address + each.name.removeprefix(path.name))
            unfinished = self._path(f"{there.toString()}.new")
            files = there.getFileSystem(self._settings)
            files.copyFromLocalFile(False, True, self._path(f"file:{each}"), unfinished)
            files.delete(there, False)
            if not files.rename(unfinished, there):
                raise OSError(f"{there.toString()} cannot be replaced")
            self._sent[each.name] = mark


def _line(error: Exception) -> str:
    """What a person can use of it: Java's own words, without its trace."""
    cause = getattr(error, "java_exception", None)
    text = cause.toString() if cause is not None else str(error)
    return (text.splitlines() or [type(error).__name__])[0][:300]
