"""Rate series from CSV and Parquet files, without a JVM: millions of rows in a second or two.

A series says how many events came in each interval that begins at its time. What cannot be told for certain
(which column, which unit) is asked for, never guessed; the first bad row is named by its line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from penstock.core.bounds import EVENTS_MOST, INTERVALS_MOST, SPAN_MOST_S, TICK_LEAST_S, between
from penstock.core.errors import BadInput, unknown
from penstock.core.files import reads
from penstock.core.text import one_line, some_of
from penstock.sim.workloads import Floats, Load

TIME_MOST = 1e17  # microseconds since 1970 have 16 digits
_TIME_NAMES = ("timestamp", "time", "date", "ts")
_UNITS = {"_us": 1e-6, "_ms": 1e-3, "_s": 1.0, "_min": 60.0, "_hour": 3600.0, "_h": 3600.0}
_RATE_ENDINGS = ("rate", "_per_s", "_per_second", "_per_sec")


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """What a file cannot say itself."""

    column: str | None = None
    every_s: float | None = None
    """The interval, for a series without times."""


def read_series(path: Path, options: SeriesOptions | None = None) -> Load:
    """The load in a file; gaps stay gaps, and are skipped by a replay."""
    options = options or SeriesOptions()
    if options.every_s is not None:
        between("every_s", options.every_s, TICK_LEAST_S)
    table, first_line = _table(path)
    _need_plain(table, path)
    time_name = _time_column(table)
    value_name = _value_column(table, time_name, options.column, path)
    lines = np.arange(first_line, first_line + len(table))
    if time_name is not None:  # an empty cell is a gap: the interval is there, what came in it is not known
        known = _is_known(table[value_name])
        table, lines = table.filter(pa.array(known)), lines[known]
    where = _Where(path, lines)
    values = _numbers(table[value_name], value_name, where)
    if len(values) == 0:
        raise BadInput(f"{path} is empty: a series has at least one row")
    where.refuse(~np.isfinite(values), f"{value_name} is not a finite number", "a count of at least 0")
    where.refuse(values < 0, f"{value_name} is negative", "a count of at least 0")
    where.refuse(values > EVENTS_MOST, f"{value_name} is too large", f"a count of at most {EVENTS_MOST:g}")
    if time_name is None:
        return _without_times(values, value_name, options, path)
    times_s, origin_s = _times(table[time_name], time_name, where)
    return _spaced(times_s, values, value_name, (origin_s, options.every_s), where)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded series as a workload; shapes that follow it add to it."""

    shape: ClassVar[str] = "trace"
    path: str
    column: str | None = None
    every_s: float | None = None
    scale: float = 1.0

    def load(self, folder: Path) -> Load:
        between("trace.scale", self.scale, 0, EVENTS_MOST)
        load = read_series(folder / self.path, SeriesOptions(self.column, self.every_s))
        return replace(load, arrivals=load.arrivals * self.scale)


@dataclass(frozen=True, slots=True)
class _Where:
    """Names the first bad row of a file."""

    path: Path
    lines: npt.NDArray[np.int64]

    def refuse(self, bad: npt.NDArray[np.bool_], what: str, right: str) -> None:
        if bad.any():
            raise self.error(int(np.argmax(bad)), what, right)

    def error(self, row: int, what: str, right: str) -> BadInput:
        return BadInput(f"{self.path}, line {self.lines[row]}: {what}; it should be {right}")


def _table(path: Path) -> tuple[pa.Table, int]:
    """The columns of a file, those of a CSV as text; and the line of its first row."""
    try:
        if not reads(path).exists():
            raise BadInput(f"no such file: {path}")
        if path.is_file() and path.stat().st_size == 0:
            raise BadInput(f"{path} is empty: a series has a header and at least one row")
        if path.is_dir() or path.suffix == ".parquet":
            return _parquet(path), 1
        return _csv(path), 2
    except (pa.ArrowException, ValueError, KeyError) as error:  # ValueError: no text, or a null byte in the path
        raise BadInput(f"{path} is not a CSV or Parquet file that can be read: {_first_line(error)}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {_first_line(error)}") from None


def _parquet(path: Path) -> pa.Table:
    if path.is_dir() and not any(path.glob("*.parquet")):
        raise BadInput(f"{path} is a directory without Parquet files: name a file")
    return pyarrow.dataset.dataset(path, format="parquet").to_table()


def _csv(path: Path) -> pa.Table:
    with pa.input_stream(path) as stream:
        head = stream.read(65536)
    if b"\0" in head:
        raise BadInput(f"{path} is a binary file, not CSV: raw logs become a series with `penstock trace`")
    names = [name.strip().strip('"') for name in head.split(b"\n", 1)[0].decode().strip("\r\ufeff").split(",")]
    # All as text: a bad value can then be shown as it stands, with its line. Empty lines count as lines.
    convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    parse = pyarrow.csv.ParseOptions(ignore_empty_lines=False)
    table = pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert)
    if all(_is_number(name) for name in names):
        raise BadInput(f"{path} has no header: its first line should name the columns")
    return table


def _need_plain(table: pa.Table, path: Path) -> None:
    """Columns each with a name of its own, and no more rows than a replay can take."""
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{path} has several columns named '{one_line(twice[0], 60)}': each needs a name of its own")
    if len(table) > INTERVALS_MOST:
        raise BadInput(f"{path} has {len(table):,} rows: a replay takes {INTERVALS_MOST:,} at most; see penstock trace")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _time_column(table: pa.Table) -> str | None:
    """A calendar time if there is one, else a column such as t_s."""
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            return str(field.name)
    for begin in (*_TIME_NAMES, "t_"):
        for name in table.column_names:
            if name.lower().startswith(begin):
                return str(name)
    return None


def _value_column(table: pa.Table, time_name: str | None, wanted: str | None, path: Path) -> str:
    names = [name for name in table.column_names if name != time_name]
    if wanted is not None:
        if wanted not in names:
            raise unknown(f"column in {path}", wanted, names)
        return wanted
    if "arrivals" in names:  # what `penstock trace` writes, beside the bytes
        return "arrivals"
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise BadInput(f"{path} has only a column of times: a series also has one of counts")
    raise BadInput(f"{path} has several columns: choose one with --column ({some_of(names)})")


def _is_known(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    known = pc.is_valid(column)
    if pa.types.is_string(column.type):
        known = pc.and_(known, pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return np.asarray(known.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _numbers(column: pa.ChunkedArray, name: str, where: _Where) -> Floats:
    kind = column.type
    if not (_is_numeric(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise BadInput(f"{where.path}: {name} is a column of {one_line(str(kind), 60)}; it should be one of numbers")
    try:
        return _floats(pc.cast(column, pa.float64()))
    except pa.ArrowInvalid:
        for row, value in enumerate(column.to_pylist()):
            if value is None or not _is_number(str(value)):
                raise where.error(row, f"{name} is '{value or ''}'", "a number") from None
        return np.array([float(value) for value in column.to_pylist()])


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _times(column: pa.ChunkedArray, name: str, where: _Where) -> tuple[Floats, float | None]:
    """Seconds, and the calendar time of the first where there is one (without a zone it is taken as UTC)."""
    if pa.types.is_string(column.type) and _is_number(column[0].as_py()):
        return _numeric_times(_numbers(column, name, where), name, where)
    if _is_numeric(column.type):
        return _numeric_times(_numbers(column, name, where), name, where)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            micros = _floats(pc.cast(pc.cast(column, kind), pa.int64()))
            where.refuse(~np.isfinite(micros), f"{name} is empty", "a time")
            return micros * 1e-6, float(micros[0]) * 1e-6
        except pa.ArrowException:
            continue
    for row, value in enumerate(column.to_pylist()):
        try:
            pc.cast(pa.array([value]), pa.timestamp("us"))
        except (pa.ArrowException, OverflowError):
            raise where.error(row, f"{name} is '{value}'", "a time such as 2024-05-01 13:45:00") from None
    raise BadInput(f"{where.path}: the times in {name} mix zones, or have one that is not known; write them in UTC")


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numeric_times(values: Floats, name: str, where: _Where) -> tuple[Floats, float | None]:
    where.refuse(~(np.abs(values) < TIME_MOST), f"{name} is not a time", "a number of seconds, milliseconds or such")
    for ending, unit_s in _UNITS.items():
        if name.lower().endswith(ending):
            return values * unit_s, None
    # Unix times: seconds since 1973 have 9 or 10 digits, milliseconds 12 or 13.
    if 1e8 <= values[0] < 1e11:
        return values, float(values[0])
    if 1e11 <= values[0] < 1e14:
        return values * 1e-3, float(values[0]) * 1e-3
    raise BadInput(f"{where.path}: the unit of {name} is not certain; name it {name}_s, {name}_ms or {name}_hour")


def _without_times(values: Floats, name: str, options: SeriesOptions, path: Path) -> Load:
    if options.every_s is None:
        raise BadInput(f"{path} has no column of times: say how long each interval is, as in --every 60s")
    return Load.of(_counts(values, name, options.every_s), options.every_s)


def _spaced(
    times_s: Floats, values: Floats, name: str, known: tuple[float | None, float | None], where: _Where
) -> Load:
    origin_s, every_s = known
    steps_s = np.diff(times_s)
    where.refuse(np.append(False, steps_s <= 0), "the time is not later than the one before", "in order")
    tick_s = _tick(steps_s, every_s, where)
    missing = steps_s / tick_s
    # A tenth of an interval is the jitter of a collector; more is another interval.
    odd = np.append(False, np.abs(missing - np.round(missing)) > 0.1)
    where.refuse(odd, f"the time is not a multiple of {tick_s:g} s after the one before", "evenly spaced")
    counts = np.append(0.0, np.cumsum(np.round(missing)))
    return Load(_counts(values, name, tick_s), (counts + 1.0) * tick_s, tick_s, origin_s)


def _tick(steps_s: Floats, every_s: float | None, where: _Where) -> float:
    if every_s is not None:
        return every_s
    if not len(steps_s):
        raise BadInput(f"{where.path} has one row only: say how long its interval is, as in --every 60s")
    # 0.1 s, not what is left of it between two large times.
    tick_s = float(f"{np.quantile(steps_s, 0.5, method='lower'):.9g}")
    if not TICK_LEAST_S <= tick_s <= SPAN_MOST_S:
        right = f"from {TICK_LEAST_S:g} to {SPAN_MOST_S:g} s; `penstock trace --every 1s` adds intervals up"
        raise BadInput(f"{where.path}: its intervals are {tick_s:g} s long: a replay takes {right}")
    return tick_s


def _counts(values: Floats, name: str, tick_s: float) -> Floats:
    """Values per interval; a column whose name says that it is a rate holds events per second."""
    return values * tick_s if name.lower().endswith(_RATE_ENDINGS) else values


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
