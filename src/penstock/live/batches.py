"""What batches tell: when throughput has settled, and the fixed time and capacity behind it. Pure numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np


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


@dataclass(frozen=True, slots=True)
class Split:
    """A batch takes `fixed_s + rows / rows_per_s`."""

    fixed_s: float
    rows_per_s: float


def split(batches: Sequence[Sequence[BatchTime]]) -> Split:
    """Fixed time and capacity from batches of two sizes or more: a line through the medians.

    Medians, because one batch in ten meets a garbage collection or a commit that takes twice as long.
    """
    rows = np.array([np.median([batch.rows for batch in size]) for size in batches])
    seconds = np.array([np.median([batch.seconds for batch in size]) for size in batches])
    slope, base = np.polyfit(rows, seconds, 1)
    if slope <= 0:
        # Larger batches took no longer: all is fixed time, and the largest batch shows the least capacity.
        return Split(float(seconds.min()), float(rows.max() / seconds[rows.argmax()]))
    return Split(max(0.0, float(base)), 1 / float(slope))


@dataclass(frozen=True, slots=True)
class Use:
    """What the workers did while the batches ran."""

    cpu_s: Mapping[str, float]
    wall_s: float
    cores: float
    executors_lost: int = 0


def flags(use: Use, asked: int, got: int, converged: bool) -> list[str]:
    """Why a sample is not to be trusted; empty when it is."""
    found = []
    if got < asked:
        found.append("source ran dry")
    if use.executors_lost:
        found.append("lost an executor")
    if not converged:
        found.append("did not settle")
    busy = [cpu / (use.cores * use.wall_s) for cpu in use.cpu_s.values()] if use.wall_s else []
    if busy and max(busy) < 0.3:
        found.append("bound by the driver")
    # One worker at its limit while the others wait: adding workers will not help.
    elif len(busy) > 1 and max(busy) > 0.8 and sorted(busy)[-2] < 0.4 * max(busy):
        found.append("bound by one hot partition")
    return found
