"""Rate series from CSV and Parquet files, without a JVM: millions of rows in a second or two.

A series says how many events came in each interval that begins at its time. What its columns mean is said by
`core/columns.py`, as for `penstock trace`; the first bad row is named by its line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.core.bounds import EVENTS_MOST, SPAN_MOST_S, TICK_LEAST_S, between
from penstock.core.columns import Asked, Columns, columns_of
from penstock.core.errors import BadInput
from penstock.core.first_cells import JITTER
from penstock.core.units import show_duration
from penstock.sim.series_cells import Where, is_known, numbers, seconds
from penstock.sim.series_file import series_file
from penstock.sim.workloads import Floats, Load

CALENDAR_S = (1e8, 1e10)  # seconds since 1970 of the years 1973 to 2286: smaller ones count from another moment


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """What a file cannot say itself."""

    column: str | None = None
    every_s: float | None = None
    """The interval, for a series without times."""
    kind: str | None = None
    """Counts per interval, or rates per second: `counts`, `rates`."""
    time: str | None = None
    """The column of times, where there are several."""
    unit: str | None = None
    """The unit of times that are numbers: s, ms, us, ns, min, h, d."""
    dates: str | None = None
    """The order of dates such as 01/02/2024: `dmy`, `mdy`."""

    def __post_init__(self) -> None:
        if self.every_s is not None:
            between("every_s", self.every_s, TICK_LEAST_S)

    def asked(self, path: Path) -> Asked:
        return Asked(str(path), self.kind, self.column, self.time, self.unit, self.dates, self.every_s, "--every")


def read_series(path: Path, options: SeriesOptions | None = None) -> Load:
    """The load in a file; gaps stay gaps, and are skipped by a replay."""
    options = options or SeriesOptions()
    file = series_file(path)
    found = columns_of(file.sample, options.asked(path))
    value_name = _need_counts(found, path)
    table = file.columns([name for name in (found.time, value_name) if name is not None])
    lines = np.arange(file.first_line, file.first_line + len(table))
    if found.time is not None:  # an empty cell is a gap: the interval is there, what came in it is not known
        known = is_known(table[value_name])
        if not known.all():
            table, lines = table.filter(pa.array(known)), lines[known]
    where = Where(path, lines)
    values = _values(table[value_name], value_name, where)
    if found.time is None:
        assert options.every_s is not None
        return Load.of(_counts(values, found, options.every_s), options.every_s)
    times_s = seconds(table[found.time], found, where)
    return _spaced(times_s, values, (found, options.every_s), where)


def _need_counts(found: Columns, path: Path) -> str:
    """The column of counts; single arrivals are not counted here."""
    if found.kind == "iat":
        raise BadInput(
            f"{path} holds inter-arrival times ({found.value}), not counts: "
            f"`penstock trace {path} -o rates.parquet --every 1s` makes a series of them"
        )
    if found.value is None:
        raise BadInput(
            f"{path} has only a column of times, one arrival a row: "
            f"`penstock trace {path} -o rates.parquet --every 1s` counts them"
        )
    return found.value


def _values(column: pa.ChunkedArray, name: str, where: Where) -> Floats:
    values = numbers(column, name, where)
    if len(values) == 0:
        raise BadInput(f"{where.path} is empty: a series has at least one row")
    right = "a count of at least 0"
    where.refuse(~np.isfinite(values), f"{name} is not a finite number", right)
    where.refuse(values < 0, f"{name} is negative", right)
    where.refuse(values > EVENTS_MOST, f"{name} is too large", f"a count of at most {EVENTS_MOST:g}")
    return values


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded series as a workload; shapes that follow it add to it."""

    shape: ClassVar[str] = "trace"
    path: str
    column: str | None = None
    every_s: float | None = None
    scale: float = 1.0
    kind: str | None = None
    time: str | None = None
    unit: str | None = None
    dates: str | None = None

    def load(self, folder: Path) -> Load:
        between("trace.scale", self.scale, 0, EVENTS_MOST)
        options = SeriesOptions(self.column, self.every_s, self.kind, self.time, self.unit, self.dates)
        load = read_series(folder / self.path, options)
        return replace(load, arrivals=load.arrivals * self.scale)


def _spaced(times_s: Floats, values: Floats, known: tuple[Columns, float | None], where: Where) -> Load:
    found, every_s = known
    steps_s = np.diff(times_s)
    where.refuse(np.append(False, steps_s <= 0), "the time is not later than the one before", "in order")
    tick_s = _tick(steps_s, every_s, where)
    missing = steps_s / tick_s
    odd = np.append(False, np.abs(missing - np.round(missing)) > JITTER)
    where.refuse(odd, f"the time is not a multiple of {tick_s:g} s after the one before", "evenly spaced")
    counts = np.append(0.0, np.cumsum(np.round(missing)))
    first_s = float(times_s[0])
    is_calendar = found.time_unit is None or CALENDAR_S[0] <= first_s < CALENDAR_S[1]
    return Load(_counts(values, found, tick_s), (counts + 1.0) * tick_s, tick_s, first_s if is_calendar else None)


def _tick(steps_s: Floats, every_s: float | None, where: Where) -> float:
    if not len(steps_s):
        if every_s is None:
            raise BadInput(f"{where.path} has one row only: say how long its interval is, as in --every 60s")
        return every_s
    if every_s is not None:
        return _confirmed(every_s, float(steps_s.min()), where)
    # 0.1 s, not what is left of it between two large times.
    tick_s = float(f"{np.quantile(steps_s, 0.5, method='lower'):.9g}")
    if not TICK_LEAST_S <= tick_s <= SPAN_MOST_S:
        right = f"from {TICK_LEAST_S:g} to {SPAN_MOST_S:g} s; `penstock trace --every 1s` adds intervals up"
        raise BadInput(f"{where.path}: its intervals are {tick_s:g} s long: a replay takes {right}")
    return tick_s


def _confirmed(every_s: float, least_s: float, where: Where) -> float:
    """The interval that a person said, if some two times are that far apart: else all would be gaps."""
    if abs(least_s / every_s - 1) > JITTER:
        raise BadInput(
            f"{where.path}: --every {show_duration(every_s)}, but its times are {show_duration(least_s)} apart: "
            "leave it out, or pass --tick to have other intervals"
        )
    return every_s


def _counts(values: Floats, found: Columns, tick_s: float) -> Floats:
    """Events in each interval."""
    return values if found.per_s is None else values * (tick_s / found.per_s)
