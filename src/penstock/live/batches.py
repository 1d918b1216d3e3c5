"""What batches tell: when throughput has settled, and the fixed time and capacity behind it. Pure numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.core.errors import ExternalError


@dataclass(frozen=True, slots=True)
class BatchTime:
    """One micro-batch as Spark reports it."""

    number: int
    rows: int
    seconds: float

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> BatchTime:
        """From a StreamingQueryProgress, which is a dict since Spark 4."""
        return cls(progress["batchId"], progress["numInputRows"], progress["durationMs"]["triggerExecution"] / 1e3)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


def has_converged(rates: Sequence[float], window: int = 5, agreeing: int = 4, within: float = 0.05) -> bool:
    """Whether `agreeing` of the last `window` samples lie near the one before (paper 1 §3.2: K of N, ±δ)."""
    if len(rates) < window + 1:
        return False
    steps = pairwise(rates[-window - 1 :])
    return sum(abs(later - earlier) <= within * earlier for earlier, later in steps) >= agreeing


def has_settled(batches: Sequence[BatchTime]) -> bool:
    """Whether batches of one size came to go at one speed, at some time since the first.

    A sample is the median of the last five batches: single ones scatter by 8 % on a quarter of a core, and would
    never agree within 5 %.
    """
    rates = [batch.rate for batch in batches]
    medians = [float(np.median(rates[max(0, at - 5) : at])) for at in range(1, len(rates) + 1)]
    return any(has_converged(medians[:end]) for end in range(len(medians) + 1))


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


@dataclass(frozen=True, slots=True)
class Use:
    """What the executors did while the batches ran."""

    busy: Mapping[str, float]
    """Share of the time in which each had a task."""
    lost: int = 0


def flags(use: Use, asked: int, got: int, settled: bool) -> list[str]:
    """Why a sample is not to be trusted; empty when it is."""
    found = []
    if got < asked:
        found.append("source ran dry")
    if use.lost:
        found.append("lost an executor")
    if not settled:
        found.append("did not settle")
    busy = sorted(use.busy.values())
    if busy and busy[-1] < 0.3:
        found.append("bound by the driver")
    # One executor at work while the others wait: adding workers will not help.
    elif len(busy) > 1 and busy[-1] > 0.6 and busy[-2] < 0.4 * busy[-1]:
        found.append("bound by one hot partition")
    return found
