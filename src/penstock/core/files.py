"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.core.errors import BadInput


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A scratch path beside `path` that takes its name only when the block ends well.

    An interrupted or failed block leaves what stood under `path` as it was. The scratch may become a
    file or a directory. A path that cannot be written is refused before any work is done.
    """
    writable(path)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield scratch
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        scratch.replace(path)
    finally:
        discard(scratch)


def discard(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def writable(path: Path) -> None:
    """Refuse a path that could not be written in the end."""
    folder = path.parent
    if not folder.is_dir():
        raise BadInput(f"cannot write {path}: the folder {folder} does not exist")
    # Root may write anywhere by permission, so a read-only or special file system is tried for real.
    probe = folder / f".{path.name}.{os.getpid()}.probe"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None
