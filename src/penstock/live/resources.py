"""What a process holds on this machine, written down before it is taken, so that it can be given back after a crash.

Each holding is a folder in a per-user folder: a lock that its owner holds while it lives (the kernel drops it
whatever ends the owner, `kill -9` too), the cgroups it made, and scratch. Every process that it starts, and all that
those start in turn, carries the holding's mark in its environment: 128 random bits, which unlike a process number are
never used twice. So only what we started is ever ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NoReturn

from penstock.core.errors import ExternalError
from penstock.live import launcher as child
from penstock.live.locks import open_lock, take

MARK = "PENSTOCK_MARK"
GONE_S = 120.0  # a killed process of 1 GB on a busy machine took 2 s to vanish; nothing can be done but wait


class Holding:
    """Processes, cgroups and scratch that one `hold` block owns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = folder.name.rpartition("-")[2]
        self.scratch = folder / "scratch"
        self._processes: list[subprocess.Popen[bytes]] = []
        # The kernel ends a child when the *thread* that started it ends, so one thread starts them all.
        # It also never sees Ctrl-C, so nothing is started and then forgotten, or given back by half.
        self._hands = ThreadPoolExecutor(1)

    def note_cgroups(self, folders: Sequence[Path]) -> None:
        """Write down cgroups that are about to be made."""
        with (self.folder / "cgroups").open("a", encoding="utf-8") as notes:
            notes.writelines(f"{folder}\n" for folder in folders)

    def start(
        self, command: Sequence[str], log: Path, cgroups: Sequence[Path] = (), settings: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C in a terminal reaches us and not it."""
        words = [sys.executable, "-ISE", child.__file__, str(os.getpid()), *map(str, cgroups), "--", *command]
        environment = {**os.environ, **(settings or {}), MARK: self.mark}
        return self._hands.submit(self._start, words, environment, log).result()

    def _start(self, words: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as said:
            process = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        self._processes.append(process)
        return process

    def release(self) -> None:
        """Give everything back. A second Ctrl-C does not stop it half-way."""
        try:
            self._hands.submit(self._release).result()
        finally:
            self._hands.shutdown(wait=False)

    def _release(self) -> None:
        end_marked(self.mark)
        for process in self._processes:
            process.wait()
        give_back(self.folder)


@contextlib.contextmanager
def hold(what: str) -> Iterator[Holding]:
    """A holding for the block; what dead owners left is given back first.

    >>> with hold("doctest") as holding:
    ...     done = holding.start(["true"], holding.scratch / "log").wait()
    >>> done, holding.folder.exists()
    (0, False)
    """
    home = runtime_folder()
    with _locked(home / "lock"):
        for folder in abandoned(home):
            end_marked(folder.name.rpartition("-")[2])
            give_back(folder)
        folder = home / f"{what}-{uuid.uuid4().hex}"
        (folder / "scratch").mkdir(parents=True)
        owner = contextlib.ExitStack()
        owner.enter_context(_locked(folder / "lock"))
    with owner, _sigterm_ends_the_block():
        holding = Holding(folder)
        try:
            yield holding
        finally:
            holding.release()


def runtime_folder() -> Path:
    """The user's own folder for holdings. Another user's folder of that name is refused."""
    folder = Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise ExternalError(f"{folder} belongs to somebody else: remove it, or set TMPDIR to a folder of yours")
    return folder


def abandoned(home: Path) -> list[Path]:
    """Holdings whose owner is dead: nobody has their lock."""
    found = []
    for folder in home.iterdir():
        if folder.is_dir() and not folder.is_symlink():
            with _opened(folder / "lock") as lock:
                if take(lock, wait=False):
                    found.append(folder)
    return found


def end_marked(mark: str, variable: str = MARK) -> None:
    """Kill every process that carries the mark, and wait until none does."""
    deadline = time.monotonic() + GONE_S
    while left := marked(mark, variable):
        if time.monotonic() > deadline:
            raise ExternalError(f"processes {', '.join(map(str, left))} of an earlier start do not end")
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def marked(mark: str, variable: str = MARK) -> list[int]:
    """Living processes that carry the mark: children, their children, and so on."""
    wanted = f"{variable}={mark}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
    return found


def give_back(folder: Path) -> None:
    """Remove a holding's cgroups and files."""
    notes = folder / "cgroups"
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ():
        remove_cgroup(Path(line))
    shutil.rmtree(folder, ignore_errors=True)


def remove_cgroup(folder: Path) -> None:
    """Remove a cgroup, once the last killed process has left it."""
    deadline = time.monotonic() + GONE_S
    while folder.is_dir():
        try:
            folder.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise ExternalError(f"the cgroup {folder} cannot be removed: {error.strerror}") from None
            time.sleep(0.02)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    with _opened(path) as lock:
        take(lock)
        yield lock


def _opened(path: Path) -> IO[str]:
    try:
        return open_lock(path)
    except OSError as error:
        raise ExternalError(f"{path} cannot be locked: {error.strerror}") from None


@contextlib.contextmanager
def _sigterm_ends_the_block() -> Iterator[None]:
    """Python dies of SIGTERM on the spot unless somebody handles it; whoever does already is left alone."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)
