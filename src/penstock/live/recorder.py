"""The journal of a live controller: gone on with after a restart, kept to a size, written by one controller alone."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from penstock.core.errors import BadInput, ExternalError
from penstock.core.job import Job
from penstock.core.journal import Header, Journal, JournalWriter
from penstock.core.loop import Step
from penstock.live.locks import open_lock, take
from penstock.policies.guards import OPTIONS, safety
from penstock.policies.registry import Named

log = logging.getLogger("penstock")
ROTATE_BYTES = 64_000_000  # about a month of steps every 15 s
KEPT = 4


def live_header(
    job: Job, policy: str, origin_s: float, facts: Mapping[str, object], rules: Mapping[str, object]
) -> Header:
    """What a journal says before its steps. A later version may have other safety rules, and must replay this run with
    its own: all are told, those of `rules` over those that a job has by itself. Parameters are no rules."""
    return Header(
        job=job.name,
        policy=policy,
        limits=job.limits,
        objective=job.objective,
        price=job.price,
        tick_s=job.tick_s,
        origin_s=origin_s,
        parameters=dict(Named.parse(policy).parameters),
        facts=dict(facts),
        kinds=job.kinds,
        rules={**safety(job), **{key: value for key, value in rules.items() if key in OPTIONS}},
    )


class Recorder:
    """Appends steps to a journal; `past` is what a policy must see again after a restart."""

    def __init__(self, path: Path, header: Header, memory_s: float = 0.0, rotate_bytes: int = ROTATE_BYTES) -> None:
        self._path, self._rotate_bytes = path, rotate_bytes
        self._lock = _locked(path)
        try:
            self.header, self.past = _before(path, header, memory_s)
            self._writer = self._opened(has_header=bool(self.past) or _has_header(path))
        except BaseException:
            self._lock.close()
            raise

    def write(self, step: Step) -> None:
        try:
            self._writer.write(step)
            if self._path.stat().st_size > self._rotate_bytes:
                self._rotate()
        except OSError as error:
            raise ExternalError(f"the journal {self._path} cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
        self._lock.close()

    def _opened(self, has_header: bool) -> JournalWriter:
        try:
            file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise BadInput(f"the journal {self._path} cannot be written: {error.strerror or error}") from None
        if has_header and not _ends_whole(self._path):
            file.write("\n")  # a crash cut the last line short; it must not spoil the next
        return JournalWriter(file, None if has_header else self.header, flush=True)

    def _rotate(self) -> None:
        """journal.jsonl becomes journal.jsonl.1, that .2, and so on; the oldest goes."""
        self._writer.__exit__(None, None, None)
        try:
            for number in range(KEPT - 1, 0, -1):
                older = self._path.with_name(f"{self._path.name}.{number}")
                if older.exists():
                    older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        finally:
            self._writer = self._opened(has_header=_has_header(self._path))


def check_journal(path: Path) -> None:
    """Refuse a file that no controller could go on with: before a cluster is started for it, which takes 20 s."""
    if path.is_dir():
        raise BadInput(f"the journal {path} cannot be written: it is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"the journal {path} cannot be written: its folder does not exist")
    if _has_header(path):
        Journal.open(path)


def _locked(path: Path) -> IO[str]:
    """Held until this process ends, whatever ends it."""
    try:
        file = open_lock(path.with_name(f"{path.name}.lock"))
    except OSError as error:
        raise BadInput(f"the journal {path} cannot be written: {error.strerror or error}") from None
    if not take(file, wait=False):
        file.close()
        raise BadInput(f"the journal {path} is written by another controller: a job has one") from None
    return file


def _before(path: Path, header: Header, memory_s: float) -> tuple[Header, Sequence[Step]]:
    """What an earlier controller of the same job wrote: its header, and the steps to be seen again."""
    if not path.exists() or path.stat().st_size == 0:
        return header, ()
    journal = Journal.open(path)
    if journal.header.job != header.job:
        raise BadInput(f"the journal {path} is of the job {journal.header.job}, not {header.job}: choose another file")
    tail: deque[Step] = deque()
    older = path.with_name(f"{path.name}.1")
    for part in (*((Journal.open(older),) if older.exists() else ()), journal):
        for step in part:
            tail.append(step)
            while len(tail) > 1 and tail[0].seen.time_s < step.seen.time_s - memory_s:
                tail.popleft()
        if part.damaged:
            log.warning("%s: damaged, %d lines of it are left out", part.path, part.damaged)
    return journal.header, tuple(tail)


def _has_header(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
