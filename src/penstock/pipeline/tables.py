"""How a CSV or Parquet table begins, and which of its columns are times and numbers."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core.errors import BadInput
from penstock.pipeline.head import PARQUET, Head, shortened

ROWS = 2_000
_UNIT = re.compile(r"(?:^|.*_)(s|ms|us|ns)$")
_SINCE = re.compile(r"^(s|ms|us|ns)_since_.+$")
_TIME_NAME = re.compile(r"^(t|ts|time|timestamp|epoch|unix|unixtime|date|datetime)(_.*)?$", re.IGNORECASE)
_IAT_NAME = re.compile(r"(^|_)(iat|interarrival|inter_arrival)(_|$)", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?")


@dataclass(frozen=True, slots=True)
class Table:
    """The first rows of a table, as text, column by column."""

    format: str
    names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    header: str | None = None
    delimiter: str = ","

    def sample(self, name: str) -> list[str]:
        return [value for value in self.columns[self.names.index(name)] if value]

    @property
    def times(self) -> list[str]:
        """Columns that hold points in time: ISO dates, or numbers whose name says `time` and a unit."""
        return [name for name in self.names if self.is_iso(name) or self.is_clock(name)]

    @property
    def numbers(self) -> list[str]:
        return [name for name in self.names if name not in self.times and _mostly(is_number, self.sample(name))]

    def is_iso(self, name: str) -> bool:
        return _mostly(is_iso, self.sample(name))

    def is_clock(self, name: str) -> bool:
        """A number that is a time: `t_s`, `epoch_ms`, `ms_since_midnight`."""
        named = _SINCE.match(name) or (_TIME_NAME.match(name) and _UNIT.match(name))
        return bool(named) and _mostly(is_number, self.sample(name))


def unit_of(name: str) -> str | None:
    """The unit that a column's name ends in, or begins with: `iat_us`, `ms_since_midnight`."""
    match = _SINCE.match(name) or _UNIT.match(name)
    return match[1] if match else None


def is_iat_name(name: str) -> bool:
    return _IAT_NAME.search(name) is not None


def is_time_name(name: str) -> bool:
    return _TIME_NAME.match(name) is not None


def is_iso(value: str) -> bool:
    return _ISO.fullmatch(value) is not None


def is_number(value: str) -> bool:
    """A finite number; `nan` may stand in a column of any kind."""
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def spacing_us(times: Sequence[int]) -> int | None:
    """The step of times that are evenly spaced but for holes; None where they are not.

    >>> spacing_us([0, 60, 120, 300]), spacing_us([0, 7, 12, 300]), spacing_us([0, 60])
    (60, None, None)
    """
    ordered = sorted(times)
    steps = [after - before for before, after in itertools.pairwise(ordered)]
    if len(steps) < 2 or min(steps) <= 0:
        return None
    least = min(steps)
    # Half is generous: whole seconds between random events are all multiples of one second too,
    # but less than half of them are exactly one unless the events come at about that rate.
    regular = sum(step == least for step in steps) >= max(2, 0.5 * len(steps))
    return least if regular and math.gcd(*steps) == least else None


def time_us(value: str, unit_us: float | None) -> int:
    """A sampled time in microseconds since 1970."""
    if unit_us is not None:
        return round(float(value) * unit_us)
    moment = datetime.fromisoformat(value.replace(" UTC", "Z").replace(",", "."))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)


def table(begin: Head) -> Table:
    """The first rows of a CSV or Parquet file."""
    if begin.start.startswith(PARQUET):
        return _parquet(begin)
    if begin.is_binary:
        raise BadInput(f"{begin.path}: is binary ({begin.seen}), not a CSV table")
    return _csv(begin)


def _csv(begin: Head) -> Table:
    lines = begin.lines[: ROWS + 1]
    delimiter = next((mark for mark in (",", ";", "\t") if mark in lines[0]), ",")
    first = [field.strip() for field in next(csv.reader(lines[:1], delimiter=delimiter))]
    # A header is a row in which nothing is a number or a date.
    has_header = not any(is_number(field) or is_iso(field) for field in first)
    names = first if has_header else [f"column{i + 1}" for i in range(len(first))]
    if len(set(names)) < len(names):
        raise BadInput(f"{begin.path}: two columns of the header {shortened(lines[0])} have the same name")
    rows = list(csv.reader(lines[1:] if has_header else lines, delimiter=delimiter))
    columns = tuple(tuple(row[i].strip() if i < len(row) else "" for row in rows) for i in range(len(names)))
    return Table("csv", tuple(names), columns, lines[0] if has_header else None, delimiter)


def _parquet(begin: Head) -> Table:
    try:
        with pq.ParquetFile(begin.path) as file:
            batch = next(file.iter_batches(batch_size=ROWS), None)
            names = tuple(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{begin.path}: is not a whole Parquet file ({str(error).splitlines()[0][:120]})") from None
    rows = [] if batch is None else [list(map(_text, column.to_pylist())) for column in batch.columns]
    return Table("parquet", names, tuple(map(tuple, rows)) or ((),) * len(names))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _mostly(is_such: object, values: list[str]) -> bool:
    """More than half: a few bad cells must not hide what a column is."""
    return bool(values) and callable(is_such) and 2 * sum(map(is_such, values)) > len(values)
