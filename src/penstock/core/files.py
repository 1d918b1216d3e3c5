"""Files that are whole or not there, and outputs that cost nobody anything else."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from penstock.core.errors import BadInput

# Stands in every folder that Penstock made and may therefore replace or remove.
MARKER = ".made-by-penstock"


# Files that the command in work has read: it never replaces them, under whatever name. None outside of commands.
_read: set[tuple[int, int]] | None = None


def reads(path: Path) -> Path:
    """Note an input. What is no regular file (a pipe, a device) would hang or never end: it is refused."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return path  # whoever opens it says so in its own words
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise BadInput(f"{path} is no regular file: save what it holds to one")
    if _read is not None:
        _read.add((about.st_dev, about.st_ino))
    return path


@contextlib.contextmanager
def sparing_inputs() -> Iterator[None]:
    """Within the block, what was read is not replaced: around one command of a person, not around a program."""
    global _read
    before, _read = _read, set()
    try:
        yield
    finally:
        _read = before


def same_place(one: Path, other: Path) -> bool:
    """Would both be the same file?"""
    return (one.parent.resolve(), one.name) == (other.parent.resolve(), other.name)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A scratch path beside the file `path` that takes its name only when the block ends well.

    An interrupted or failed block leaves what stood under `path` as it was. What is no regular file
    (a folder, a link, a device) is never replaced; it is refused before any work is done.
    """
    writable(path)
    scratch = _scratch(path)
    try:
        yield scratch
        writable(path)  # it may have become a folder meanwhile
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path` that takes its name only when the block ends well; nothing may stand there."""
    scratch = _scratch(path)
    scratch.mkdir()
    (scratch / MARKER).touch()
    try:
        yield scratch
        scratch.rename(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def own_folder(path: Path, what: str, is_removed: bool = False) -> Path:
    """A folder for outputs of ours, made if it is missing. One with somebody else's files in it is refused.

    One that `is_removed` in the end must be ours from the beginning: an empty one may be somebody's, too.
    """
    with _refusing(path):
        if path.is_symlink():
            raise BadInput(f"cannot write {path}: it is a symbolic link; name the folder itself")
        if path.exists() and not path.is_dir():
            raise BadInput(f"cannot write {path}: it is a file, and {what} is a folder")
        is_ours = (path / MARKER).is_file()
        if path.is_dir() and not is_ours and (is_removed or any(path.iterdir())):
            raise BadInput(f"cannot write {path}: there are files in it that are not {what}; name a new folder")
        path.mkdir(parents=True, exist_ok=True)
        (path / MARKER).touch()
    return path


def remove_own(folder: Path) -> None:
    """Remove a folder that Penstock made; any other stays."""
    if not folder.is_symlink() and (folder / MARKER).is_file():
        shutil.rmtree(folder, ignore_errors=True)


def writable(path: Path) -> None:
    """Refuse a path that could not be written as a file in the end, or that this command has read."""
    with _refusing(path):
        if path.is_symlink():
            raise BadInput(f"cannot write {path}: it is a symbolic link; name the file itself")
        if path.is_dir() or path.name in ("", ".."):
            raise BadInput(f"cannot write {path}: it is a folder; name a file")
        if path.exists() and not path.is_file():
            raise BadInput(f"cannot write {path}: it is no regular file")
        if not path.parent.is_dir():
            what = "is a file" if path.parent.exists() else "does not exist"
            raise BadInput(f"cannot write {path}: the folder {path.parent} {what}")
        if path.exists() and (path.stat().st_dev, path.stat().st_ino) in (_read or ()):
            raise BadInput(f"cannot write {path}: it is also an input; name another file")
        # Root may write anywhere by permission, so a read-only or special file system is tried for real.
        probe = _scratch(path)
        probe.touch(exist_ok=False)
        probe.unlink()


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise BadInput(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None


def _scratch(path: Path) -> Path:
    """A name beside the path that nobody has."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
