"""The files of a source and how each begins: enough to know its kind without starting Spark."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import BadInput

HEAD = 256 * 1024  # covers 5,000 rows of a table and the longest progress report seen (40 kB)
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
# What Spark's own codecs write first; Hadoop's codecs of the same names are other formats.
SPARK_CODECS = {b"LZ4Block": "lz4", b"\x82SNAPPY\x00": "snappy", b"ZV": "lzf"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Head:
    """How one file begins, after decompression; `codec` is None, gzip, zstd, or one of Spark's."""

    path: Path
    codec: str | None
    start: bytes
    is_all: bool

    @property
    def text(self) -> str:
        return self.start.decode("utf-8-sig", errors="replace")

    @property
    def lines(self) -> list[str]:
        """Whole lines: the last is left out where the head cut it."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return lines if self.is_all or len(lines) < 2 else lines[:-1]

    @property
    def is_binary(self) -> bool:
        return _CONTROL.search(self.text[:4096]) is not None

    @property
    def seen(self) -> str:
        """The first line for a person, cut to fit one line."""
        if self.is_binary:
            return f"bytes {self.start[:8].hex(' ')}"
        return shortened((self.text.splitlines() or [""])[0])


def shortened(line: str, width: int = 80) -> str:
    """One line of foreign text, safe to print."""
    printable = "".join(c if c.isprintable() else "?" for c in line)
    return f"'{printable}'" if len(printable) <= width else f"'{printable[: width - 1]}…'"


def files(source: Path) -> list[Path]:
    """The files of a source, a directory's in order of their names; hidden and empty ones are left out."""
    if not source.exists():
        raise BadInput(f"{source}: no such file or directory")
    if not source.is_dir():
        if source.is_file() and source.stat().st_size == 0:
            raise BadInput(f"{source}: the file is empty")
        return [source]
    visible = (
        path
        for path in sorted(source.rglob("*"))
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(source).parts)
    )
    found = [path for path in visible if path.stat().st_size > 0]
    if not found:
        raise BadInput(f"{source}: the directory holds no files with anything in them")
    return found


def head(path: Path) -> Head:
    """How a file begins."""
    try:
        with path.open("rb") as file:
            raw = file.read(HEAD)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from None
    codec, start = _decompressed(raw, path)
    if not start and codec in (None, "gzip"):
        raise BadInput(f"{path}: the file is empty")
    return Head(path, codec, start[:HEAD], len(raw) < HEAD and len(start) <= HEAD)


def _decompressed(raw: bytes, path: Path) -> tuple[str | None, bytes]:
    if raw.startswith(GZIP):
        try:
            return "gzip", zlib.decompressobj(wbits=31).decompress(raw, HEAD + 1)
        except zlib.error as error:
            raise BadInput(f"{path}: is not a whole gzip file ({error})") from None
    if raw.startswith(ZSTD):
        return "zstd", _zstd(path)
    for magic, codec in SPARK_CODECS.items():
        if raw.startswith(magic) and path.name.removesuffix(".inprogress").endswith(f".{codec}"):
            return codec, b""
    return None, raw


def _zstd(path: Path) -> bytes:
    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            return bytes(stream.read(HEAD))
    except OSError:
        return b""  # an event log still being written ends in the middle of a frame
