"""Buckets of equal time that merge in pairs when there are too many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# More points than a wide screen has pixels. Merging halves them, so there are 1,024 at least once it has begun.
BUCKETS_MAX = 2048
LEAST_SPAN_S = 1e-6
LOW, HIGH, SUM, WEIGHT = range(4)


class Buckets:
    """Least, greatest and time-weighted mean of named values by time. A value that is NaN is absent."""

    def __init__(self) -> None:
        self.width_s = 0.0
        self._start_s = 0.0
        self._end_s = self._last_middle_s = -np.inf
        self._tables: dict[str, Array] = {}
        self._time = np.zeros(BUCKETS_MAX)
        self._resumes = np.zeros(BUCKETS_MAX, dtype=np.bool_)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, table in self._tables.items() if table[WEIGHT].any())

    @property
    def starts_s(self) -> Array:
        starts: Array = self._start_s + np.flatnonzero(self._time).astype(np.float64) * self.width_s
        return starts

    @property
    def end_s(self) -> float:
        """The end of the last interval; the last bucket may reach beyond."""
        return self._end_s

    @property
    def resumes(self) -> npt.NDArray[np.bool_]:
        return self._resumes[self._time > 0]

    def band(self, name: str) -> tuple[Array, Array, Array]:
        """Low, high and mean of the buckets that have seen any time."""
        table = self._tables[name][:, self._time > 0]
        known = table[WEIGHT] > 0
        low, high = (np.where(known, table[row], np.nan) for row in (LOW, HIGH))
        with np.errstate(invalid="ignore"):
            mean = np.where(known, table[SUM] / np.where(known, table[WEIGHT], 1.0), np.nan)
        # Rounding of the sum must not put the mean of three equal values outside of them.
        return low, high, np.clip(mean, low, high)

    def fill(self, ends_s: Array, spans_s: Array, columns: Mapping[str, Array]) -> None:
        """Take intervals, in the order of time, and their values."""
        spans_s = np.maximum(spans_s, LEAST_SPAN_S)
        if not self.width_s:
            self._start_s = float(ends_s[0] - spans_s[0])
            self.width_s = float(spans_s.min())
        middles_s = ends_s - spans_s / 2
        # A gap wider than all there was so far may need many doublings: 1 s steps, then a year, are 14.
        while self._places(middles_s).max() >= BUCKETS_MAX:
            self._merge_pairs()
        places = self._places(middles_s)
        self._mark_gaps(ends_s, spans_s, middles_s)
        np.add.at(self._time, places, spans_s)
        for name, values in columns.items():
            self._note(name, places, spans_s, values)

    def _places(self, middles_s: Array) -> npt.NDArray[np.int64]:
        return np.maximum((middles_s - self._start_s) // self.width_s, 0).astype(np.int64)

    def _mark_gaps(self, ends_s: Array, spans_s: Array, middles_s: Array) -> None:
        before_s = np.concatenate(([self._end_s], ends_s[:-1]))
        middles_before_s = np.concatenate(([self._last_middle_s], middles_s[:-1]))
        # Half a span of tolerance: the ticks of a live run are not exact.
        jumps = (ends_s - before_s > 1.5 * spans_s) & np.isfinite(before_s)
        after, before = self._places(middles_s[jumps]), self._places(middles_before_s[jumps])
        self._resumes[after[after > before]] = True
        self._end_s, self._last_middle_s = float(ends_s[-1]), float(middles_s[-1])

    def _note(self, name: str, places: npt.NDArray[np.int64], spans_s: Array, values: Array) -> None:
        if name not in self._tables:
            self._tables[name] = np.zeros((4, BUCKETS_MAX))
            self._tables[name][LOW], self._tables[name][HIGH] = np.inf, -np.inf
        known = np.isfinite(values)
        if not known.all():
            places, spans_s, values = places[known], spans_s[known], values[known]
        table = self._tables[name]
        np.minimum.at(table[LOW], places, values)
        np.maximum.at(table[HIGH], places, values)
        np.add.at(table[SUM], places, values * spans_s)
        np.add.at(table[WEIGHT], places, spans_s)

    def _merge_pairs(self) -> None:
        self.width_s *= 2
        # A gap inside a bucket can no longer be seen; one before its first value still can.
        left_has_time = self._time[::2] > 0
        self._resumes = _padded(np.where(left_has_time, self._resumes[::2], self._resumes[1::2]), fill=0.0) > 0
        self._time = _padded(self._time[::2] + self._time[1::2], fill=0.0)
        for table in self._tables.values():
            table[LOW] = _padded(np.minimum(table[LOW, ::2], table[LOW, 1::2]), fill=np.inf)
            table[HIGH] = _padded(np.maximum(table[HIGH, ::2], table[HIGH, 1::2]), fill=-np.inf)
            for row in (SUM, WEIGHT):
                table[row] = _padded(table[row, ::2] + table[row, 1::2], fill=0.0)


def _padded(half: npt.NDArray[np.generic], fill: float) -> Array:
    return np.concatenate((half.astype(np.float64), np.full(BUCKETS_MAX // 2, fill)))
