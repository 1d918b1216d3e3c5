"""What batches tell: when throughput has settled, and the fixed time and capacity behind it. Pure numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.core.errors import ExternalError
from penstock.models.samples import NOT_SETTLED, NOT_TESTED

LONGER = 1.25  # batches on a quarter of a core: 3 s beside 1.6 s in a quick sample, 8 s beside 2.4 s else


@dataclass(frozen=True, slots=True)
class BatchTime:
    """One micro-batch as Spark reports it, and how fast the machine was meanwhile."""

    number: int
    rows: int
    seconds: float
    """What the batch really took."""
    speed: float = 1.0
    """Of the machine, as a share of what it can be."""

    @classmethod
    def of(cls, progress: Mapping[str, Any], speed: float = 1.0) -> BatchTime:
        """From a StreamingQueryProgress, which is a dict since Spark 4."""
        seconds = progress["durationMs"]["triggerExecution"] / 1e3
        return cls(progress["batchId"], progress["numInputRows"], seconds, speed)

    @property
    def corrected(self) -> BatchTime:
        """As it would have been on the undisturbed machine: for comparisons between moments, not for promises."""
        return BatchTime(self.number, self.rows, self.seconds * self.speed)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


def has_converged(rates: Sequence[float], window: int = 5, agreeing: int = 4, within: float = 0.05) -> bool:
    """Whether `agreeing` of the last `window` samples lie near the one before (paper 1 §3.2: K of N, ±δ).

    For comparison with `live/settling.py`: of 4,000 simulated series of 18 batches with a scatter of 8 % it passes 33 %
    of the steady ones, and 26 % of those that drift by 4 % a batch.
    """
    if len(rates) < window + 1:
        return False
    steps = pairwise(rates[-window - 1 :])
    return sum(abs(later - earlier) <= within * earlier for earlier, later in steps) >= agreeing


@dataclass(frozen=True, slots=True)
class Split:
    """A batch takes `fixed_s + rows / rows_per_s`."""

    fixed_s: float
    rows_per_s: float


def split(batches: Sequence[Sequence[BatchTime]]) -> Split:
    """Fixed time and capacity from batches of two sizes or more: a line through the middle ones of each size.

    One batch in ten meets a garbage collection or a commit that takes twice as long, so the ends do not count; a mean
    of the rest scatters less than a median.
    """
    rows = np.array([_middle([batch.rows for batch in size]) for size in batches])
    seconds = np.array([_middle([batch.seconds for batch in size]) for size in batches])
    if rows.min() == rows.max():
        raise ExternalError(f"batches of one size ({rows[0]:.0f} rows) do not tell the fixed time: the app is too slow")
    # Batches scatter in proportion to their length, so each length counts by its inverse.
    slope, base = np.polyfit(rows, seconds, 1, w=1 / seconds)
    if slope <= 0:
        # Larger batches took no longer: all is fixed time, and the largest batch shows the least capacity.
        return Split(float(seconds.min()), float(rows.max() / seconds[rows.argmax()]))
    if base < 0:  # the best line through the origin
        return Split(0.0, float((rows / seconds) @ (rows / seconds) / (rows / seconds).sum()))
    return Split(float(base), 1 / float(slope))


def _middle(values: Sequence[float]) -> float:
    """The mean without the lowest and the highest fifth."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cut = len(ordered) // 5
    return float(ordered[cut : len(ordered) - cut].mean())


def tells_rows(long: Sequence[BatchTime], short: Sequence[BatchTime]) -> bool:
    """Whether batches of five times the rows took so much longer that the time for rows is more than scatter (8 %)."""
    return _middle([batch.seconds for batch in long]) >= LONGER * _middle([batch.seconds for batch in short])


@dataclass(frozen=True, slots=True)
class Use:
    """What the executors did while the batches ran."""

    busy: Mapping[str, float]
    """Share of the time in which each had a task."""
    lost: int = 0


def flags(use: Use, asked: int, got: int, settled: bool | None) -> list[str]:
    """Why a sample is not to be trusted; empty when it is. `settled` is None where that was not tested."""
    found = []
    if got < asked:
        found.append("source ran dry")
    if use.lost:
        found.append("lost an executor")
    if not settled:
        found.append(NOT_TESTED if settled is None else NOT_SETTLED)
    busy = sorted(use.busy.values())
    if busy and busy[-1] < 0.3:
        found.append("bound by the driver")
    # One executor at work while the others wait: adding workers will not help.
    elif len(busy) > 1 and busy[-1] > 0.6 and busy[-2] < 0.4 * busy[-1]:
        found.append("bound by one hot partition")
    return found
