"""Speeds of workers as they were recorded: a table of time, worker, speed."""

from __future__ import annotations

import bisect
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.sim.series_file import series_file, texts

NUMBER_MOST = 1e12
"""Of a table: seconds since 1970 are 1.8e9, and speeds may be operations a second."""
PART_MOST = 10.0
"""A worker that is faster than ten of its kind's rated speed is one whose speed is told in another unit."""


class RecordedSpeeds:
    """Readings by name, each valid until the next one; before the first, the first.

    >>> RecordedSpeeds({"w1": [(0.0, 1.0), (60.0, 0.5)]}).speed("w1", 59.0)
    1.0
    """

    def __init__(self, readings: Mapping[str, Sequence[tuple[float, float]]], stand_ins: bool = False) -> None:
        """With `stand_ins`, a name that was not recorded has the readings of one that was, always the same."""
        if not readings or not all(readings.values()):
            raise BadInput("recorded speeds need at least one reading of each worker")
        self._times = {name: [time_s for time_s, _ in rows] for name, rows in readings.items()}
        self._speeds = {name: [speed for _, speed in rows] for name, rows in readings.items()}
        for name, times in self._times.items():
            if any(after <= before for before, after in pairwise(times)):
                raise BadInput(f"readings of '{name}' are not in the order of time, or two have the same")
        self._changes = sorted({time_s for times in self._times.values() for time_s in times})
        self._stand_ins = stand_ins

    @property
    def table(self) -> Mapping[str, Sequence[float]]:
        """All readings by name, in the order of time."""
        return self._speeds

    def speed(self, name: str, time_s: float) -> float:
        recorded = self._recorded(name)
        return self._speeds[recorded][max(0, bisect.bisect_right(self._times[recorded], time_s) - 1)]

    def next_s(self, time_s: float) -> float:
        place = bisect.bisect_right(self._changes, time_s)
        return self._changes[place] if place < len(self._changes) else math.inf

    def relative(self) -> RecordedSpeeds:
        """The same as parts of the best reading of all, as the paper has them."""
        return self._mapped(0.0, max(max(speeds) for speeds in self._speeds.values()))

    def from_zero(self) -> RecordedSpeeds:
        """The same with the earliest reading of all at time 0."""
        return self._mapped(min(times[0] for times in self._times.values()), 1.0)

    def _mapped(self, begin_s: float, best: float) -> RecordedSpeeds:
        rows = {name: zip(times, self._speeds[name], strict=True) for name, times in self._times.items()}
        found = {name: [(time_s - begin_s, speed / best) for time_s, speed in each] for name, each in rows.items()}
        return RecordedSpeeds(found, self._stand_ins)

    def _recorded(self, name: str) -> str:
        if name in self._times:
            return name
        if not self._stand_ins:
            raise unknown("worker in the recorded speeds", name, self._times)
        names = sorted(self._times)
        return names[zlib.crc32(name.encode()) % len(names)]


@dataclass(frozen=True, slots=True)
class SpeedsFile:
    """`[variability]` of a scenario with a file: workers are as fast as those in the table were, which begins with it.

    A worker that is not in the table has the readings of one that is, always the same.
    """

    file: str
    relative: bool = False
    """Divide by the best reading of all: for tables of operations a second."""

    def speeds(self, folder: Path) -> RecordedSpeeds:
        found = read_speeds(folder / self.file, stand_ins=True).from_zero()
        if self.relative:
            return found.relative()
        best = max(max(readings) for readings in found.table.values())
        if best > PART_MOST:
            raise BadInput(
                f"{folder / self.file} has a speed of {best:g}: parts of a worker's rated speed, or relative = true"
            )
        return found


def read_speeds(path: Path, stand_ins: bool = False) -> RecordedSpeeds:
    """A CSV or Parquet file with the columns time (in seconds, of any epoch), worker and speed; rows in any order."""
    opened, columns = series_file(path), ("time", "worker", "speed")
    if missing := [name for name in columns if name not in opened.sample.names]:
        raise BadInput(f"{path} has no column {', '.join(missing)}: speeds are a table of time, worker, speed")
    cells = opened.columns(columns)
    times, workers, speeds = (texts(cells.column(name)) for name in columns)
    readings: dict[str, list[tuple[float, float]]] = {}
    for row, worker in enumerate(workers):
        where = f"{path}, line {opened.first_line + row}"
        if not worker:
            raise BadInput(f"{where}: no worker is named")
        time_s = _number(times[row], f"{where}: time", 0.0)
        readings.setdefault(worker, []).append((time_s, _number(speeds[row], f"{where}: speed", 1e-9)))
    if not readings:
        raise BadInput(f"{path} has a header and no row")
    try:
        return RecordedSpeeds({worker: sorted(rows) for worker, rows in readings.items()}, stand_ins)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _number(text: str, what: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{what} is '{text[:40]}': it must be a number") from None
    if not math.isfinite(value):
        raise BadInput(f"{what} is {value}: it must be a number")
    between(what, value, least, NUMBER_MOST)
    return value
