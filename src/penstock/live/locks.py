"""Lock files: held until a process ends, whatever ends it, and never opened through a link."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO


def open_lock(path: Path) -> IO[str]:
    """The file, made if it is not there. A link is refused: it could lead to a file of somebody else."""
    try:
        place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "its lock is a link: remove it", str(path)) from None
        raise
    return os.fdopen(place, "r+")


def take(lock: IO[str], wait: bool = True) -> bool:
    """Have it alone; False if somebody else has it and is not to be waited for."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
