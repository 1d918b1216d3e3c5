"""Takes from this process, and all that it starts, the right to write files and to reach a network.

The kernel holds it (Landlock, and a network namespace in which nothing but loopback is), so neither a JVM nor a C
library gets around it. Call it before any thread is started: it holds for the threads that come.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))  # remove and make whatever can lie in a folder
_REFER = 1 << 13
_NO_NEW_PRIVILEGES = 38
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP = 0x8914, 0x1


def forbid_writing(but: Sequence[Path]) -> None:
    """From now on files can be written beneath these folders alone. Raises OSError where the kernel has no Landlock."""
    version = _call(_CREATE, None, 0, 1)
    rights = _WRITE_FILE | _CHANGE_FOLDER | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    rules = _call(_CREATE, struct.pack("Q", rights), 8, 0)
    for path in (*but, Path(os.devnull)):
        place = os.open(path, os.O_PATH)
        allowed = rights if path.is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
        _call(_ADD, rules, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    if _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    _call(_RESTRICT, rules, 0)
    os.close(rules)


def leave_network() -> None:
    """From now on there is only loopback, and nobody on it but us."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_NETWORK):  # only root may
        if _LIBC.unshare(_NEW_USER | _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "no network namespace can be made")
        with contextlib.suppress(OSError):  # it is nobody then, and may do as much as before
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))


def _call(number: int, *words: object) -> int:
    result = int(_LIBC.syscall(number, *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"no Landlock, which Linux has from 5.13 on ({errno.errorcode.get(code, code)})")
    return result
