"""Gaps between arrivals from a file: a number a line, or a column of a CSV or Parquet file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from penstock.core.bounds import SPAN_MOST_S
from penstock.core.errors import BadInput, unknown
from penstock.core.files import reads
from penstock.models.arrivals.window import gaps_of
from penstock.models.markov.chains import Floats

KINDS = ("iat", "times")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def read_gaps(path: Path, kind: str, unit: str = "s", column: str | None = None) -> tuple[Floats, tuple[str, ...]]:
    """Gaps in seconds, and what is to be said; `iat`: the file has gaps, `times`: timestamps, which are sorted."""
    values = _column(_table(reads(path)), path, column) * UNITS[unit]
    if kind == "iat":
        _need_range(values, path)
        return values, ()
    gaps, late = gaps_of(values)
    _need_range(gaps, path)
    return gaps, ((f"{late} timestamps were out of order: sorted",) if late else ())


def _need_range(gaps: Floats, path: Path) -> None:
    """Moments of larger gaps are no numbers any more, and no stream has them."""
    finite = gaps[np.isfinite(gaps)]
    if len(finite) and abs(finite).max() > SPAN_MOST_S:
        raise BadInput(f"{path} has a gap of {abs(finite).max():.3g} s: at most {SPAN_MOST_S:g} s; is --unit right?")


def _table(path: Path) -> pyarrow.Table:
    try:
        table = _read(path)
        table.validate(full=True)
        _ = table.column_names  # a heading that is no text is noticed here
        return table
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder; give a file of gaps or timestamps") from None
    except (pyarrow.ArrowInvalid, OSError, EOFError, zlib.error, ValueError) as error:
        raise BadInput(f"{path} cannot be read as a table of numbers: {error}") from None


def _read(path: Path) -> pyarrow.Table:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    # A first line that is a number is no heading.
    names = {"autogenerate_column_names": True} if _is_number(_first_line(path)) else {}
    return pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(**names))


def _first_line(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rb") as packed:
            return packed.readline(4096).decode(errors="replace")
    with path.open("rb") as file:
        return file.readline(4096).decode(errors="replace")


def _is_number(line: str) -> bool:
    try:
        float(line.split(",")[0])
    except ValueError:
        return False
    return True


def _column(table: pyarrow.Table, path: Path, column: str | None) -> Floats:
    if column is not None and column not in table.column_names:
        raise unknown(f"column of {path}", column, table.column_names)
    if column is None and table.num_columns != 1:
        raise BadInput(f"{path} has {table.num_columns} columns; name one with --column")
    chosen = table.column(column if column is not None else 0)
    try:
        numbers = pyarrow.compute.cast(chosen, pyarrow.float64())
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise BadInput(f"{path}: the column '{column or table.column_names[0]}' is not of numbers") from None
    if numbers.null_count:
        raise BadInput(f"{path}: {numbers.null_count} values are missing; every row needs a number")
    return np.asarray(numbers.to_numpy(), dtype=np.float64)
