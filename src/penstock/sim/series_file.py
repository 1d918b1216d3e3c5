"""CSV and Parquet files for a replay, read by Arrow: how they begin, then the columns that are used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from penstock.core.bounds import INTERVALS_MOST
from penstock.core.csv_head import CsvHead, csv_head
from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.core.first_cells import ROWS, Sample
from penstock.core.text import one_line

HEAD = 65536  # 200 rows of 320 bytes


@dataclass(frozen=True, slots=True)
class SeriesFile:
    """A table whose beginning is known; the cells of a CSV are text."""

    path: Path
    sample: Sample
    first_line: int
    """The line of the first row, as an editor counts it."""
    read: Callable[[Sequence[str]], pa.Table]

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns, whole."""
        with _plain_errors(self.path):
            table = self.read(names)
        if len(table) > INTERVALS_MOST:
            most = f"a replay takes {INTERVALS_MOST:,} at most; see penstock trace"
            raise BadInput(f"{self.path} has {len(table):,} rows: {most}")
        return table


def series_file(path: Path) -> SeriesFile:
    """A file, and how it begins."""
    with _plain_errors(path):
        return _opened(path)


def _opened(path: Path) -> SeriesFile:
    if not reads(path).exists():
        raise BadInput(f"no such file: {path}")
    if path.is_file() and path.stat().st_size == 0:
        raise BadInput(f"{path} is empty: a series has a header and at least one row")
    return _parquet(path) if path.is_dir() or path.suffix == ".parquet" else _csv(path)


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError, KeyError) as error:  # ValueError: no text, or a null byte in the path
        raise BadInput(f"{path} is not a CSV or Parquet file that can be read: {_first_line(error)}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {_first_line(error)}") from None


def _parquet(path: Path) -> SeriesFile:
    if path.is_dir() and not any(path.glob("*.parquet")):
        raise BadInput(f"{path} is a directory without Parquet files: name a file")
    data = pyarrow.dataset.dataset(path, format="parquet")
    names = data.schema.names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{path} has several columns named '{one_line(twice[0], 60)}': each needs a name of its own")
    begin = data.head(ROWS)
    sample = Sample.of(names, [texts(column) for column in begin.columns])
    return SeriesFile(path, sample, 1, lambda names: data.to_table(columns=list(names)))


def texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """The values of a column as text; what has no text is none."""
    try:
        return [value or "" for value in pc.cast(column, pa.string()).to_pylist()]
    except (pa.ArrowException, UnicodeDecodeError):  # lists, structs, bytes
        return [""] * len(column)


def _csv(path: Path) -> SeriesFile:
    with pa.input_stream(path) as stream:
        begin = stream.read(HEAD)
    if b"\0" in begin:
        raise BadInput(f"{path} is a binary file, not CSV: raw logs become a series with `penstock trace`")
    lines = begin.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n", ROWS + 2)
    whole = [line for line in (lines[:-1] if len(lines) > 1 and len(begin) == HEAD else lines) if line.strip()]
    if not whole:
        raise BadInput(f"{path} is empty: a series has a header and at least one row")
    found = csv_head(whole, str(path))
    return SeriesFile(path, found.sample, len(found.before) + 1, lambda names: _cells(path, found, names))


def _cells(path: Path, found: CsvHead, names: Sequence[str]) -> pa.Table:
    # All as text: a bad value can then be shown as it stands, with its line. Empty lines count as lines.
    convert = pyarrow.csv.ConvertOptions(
        include_columns=list(names), column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    parse = pyarrow.csv.ParseOptions(delimiter=found.delimiter, ignore_empty_lines=False)
    how = pyarrow.csv.ReadOptions(column_names=list(found.sample.names), skip_rows=len(found.before))
    return pyarrow.csv.read_csv(path, read_options=how, parse_options=parse, convert_options=convert)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
