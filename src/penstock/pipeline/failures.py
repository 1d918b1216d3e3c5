"""Spark's errors in one line: bad input where the data are to blame, a failed world elsewhere."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.core.errors import BadInput, ExternalError

_TRUNCATED = re.compile(
    r"Unexpected end of (input|ZLIB|file)|EOFException|Truncated source|premature EOF", re.IGNORECASE
)
_DAMAGED = re.compile(
    r"incorrect (data|header) check|not in GZIP|not in gzip|ZipException|invalid (block|code|stored|distance)"
)
_FILE = re.compile(r"file:/*(/[^\s,]+)")
_DISK = re.compile(r"No space left on device")
_CAUSE = re.compile(r"Caused by: [\w.$]+: (.+)")


@contextlib.contextmanager
def plain(source: Path) -> Iterator[None]:
    """Turn what Spark raises within the block into one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise translated(str(error), source) from None


def translated(text: str, source: Path) -> BadInput | ExternalError:
    """The error for a person behind a Java stack trace.

    >>> print(translated("java.io.EOFException: Unexpected end of input stream", Path("a.log.gz")))
    a.log.gz: the file is truncated (its compressed data end too early)
    """
    found = _FILE.search(text)
    path = unquote(found[1]).rstrip(".") if found else str(source)
    if _DISK.search(text):
        return ExternalError("no space left on the disk while Spark was writing")
    if _TRUNCATED.search(text):
        return BadInput(f"{path}: the file is truncated (its compressed data end too early)")
    if _DAMAGED.search(text):
        return BadInput(f"{path}: the file is damaged (its compressed data make no sense)")
    causes = _CAUSE.findall(text)
    first = next((line for line in text.splitlines() if line.strip()), "no reason given")
    return ExternalError(f"Spark failed on {source}: {(causes[-1] if causes else first)[:300]}")
