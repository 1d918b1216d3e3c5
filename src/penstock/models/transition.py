"""How a load follows its input: a and b of f(x, u) = x + a·D + b·ΔD, and the meters' noise (paper 5 §2.3, 2.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.models.filters import Floats, measurement_noise

# An hour of many jobs shows the rate at several heights; a restart replays as much.
HORIZON_S = 3600.0
# A coefficient counts when it is three times its own uncertainty: a chance of one in 400 to be taken in by noise.
SURE = 3.0
# At a rate that changes by less than this share between samples, what changes is noise.
STEADY = 0.05


def least_squares(changes: Floats, inputs: Floats) -> tuple[Floats, Floats]:
    """a and b by least squares of x_t − x_{t−1} on (D, ΔD) of the sample before; 0 where the inputs cannot tell.

    >>> inputs = np.array([[1.0, 0.0], [3.0, 2.0], [3.0, 0.0], [1.0, -2.0]])
    >>> least_squares(0.1 * inputs[:, :1] + 0.2 * inputs[:, 1:], inputs)
    (array([0.1]), array([0.2]))
    """
    weights, _, rank, _ = np.linalg.lstsq(inputs, changes, rcond=None)
    if rank < 2:
        return np.zeros(changes.shape[1]), np.zeros(changes.shape[1])
    return np.asarray(weights[0], dtype=np.float64), np.asarray(weights[1], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one step shows: who ran, what was measured of each, and the input for one instance."""

    names: tuple[str, ...]
    z: Floats
    u: Floats


@dataclass(frozen=True, slots=True)
class Learnt:
    """What an earlier run teaches: a warm start (§2.4)."""

    a: Floats
    b: Floats
    r: Floats
    instances: float
    """The average number in that run."""


def learn(samples: Iterable[Sample]) -> Learnt | None:
    """a, b and R from a run; only samples between which nobody came or went count. None without two of them."""
    known = list(samples)
    pairs = [(old, new) for old, new in pairwise(known) if old.names == new.names and old.names]
    if not pairs:
        return None
    changes = np.array([new.z.mean(axis=0) - old.z.mean(axis=0) for old, new in pairs])
    inputs = np.array([old.u for old, _ in pairs])
    quiet = [new.z - old.z for old, new in pairs if is_steady(old.u)]
    a, b = least_squares(changes, inputs)
    noise = measurement_noise(np.concatenate(quiet) if quiet else np.empty((0, changes.shape[1])))
    return Learnt(a, b, noise, float(np.mean([len(sample.names) for sample in known])))


def is_steady(u: Floats) -> bool:
    """Does the rate hold, as far as noise goes?"""
    return bool(abs(u[1]) <= STEADY * abs(u[0]))


class Learner:
    """b while a job runs: the slope of a load over the events that a worker processes, 0 until it is sure.

    A run that is not made of steps has few changes of the rate to learn from, and the largest fill every worker; but
    each of its samples shows a load and the throughput that goes with it, of full workers too.

    >>> learner = Learner(metrics=1)
    >>> for second in range(100):
    ...     learner.add(1.0, np.array([0.1 + 0.2 * (second % 4)]), float(second % 4))
    >>> learner.slope().round(6).tolist()
    [0.2]
    """

    def __init__(self, metrics: int) -> None:
        self._count = self._v = self._vv = 0.0
        self._y, self._yy, self._vy = np.zeros(metrics), np.zeros(metrics), np.zeros(metrics)
        self._processed: float | None = None
        self._lap_s = self._worked_s = 0.0
        self._lap_loads = np.zeros(metrics)

    def follow(self, span_s: float, worked_s: float, loads: Floats, processed: float, in_batches: bool) -> None:
        """An interval: mean loads, seconds of all workers, and all that was processed so far.

        A load goes with what was done meanwhile. In batches that is known when one ends, over all intervals since the
        end before: a batch of a minute in ticks of 5 s would else show full workers that do nothing.
        """
        self._lap_s, self._worked_s = self._lap_s + span_s, self._worked_s + worked_s
        self._lap_loads = self._lap_loads + loads * span_s
        if in_batches and self._processed is not None and processed <= self._processed:
            return
        if self._processed is not None:
            self.add(self._lap_s, self._lap_loads / self._lap_s, (processed - self._processed) / self._worked_s)
        self._processed, self._lap_s, self._worked_s = processed, 0.0, 0.0
        self._lap_loads = np.zeros(len(loads))

    def add(self, span_s: float, loads: Floats, throughput: float) -> None:
        """Mean loads over the workers, and the events per second that each of them processed."""
        keep = math.exp(-span_s / HORIZON_S)
        self._count = keep * self._count + 1
        self._v = keep * self._v + throughput
        self._vv = keep * self._vv + throughput**2
        self._y = keep * self._y + loads
        self._yy = keep * self._yy + loads**2
        self._vy = keep * self._vy + loads * throughput

    def slope(self) -> Floats:
        """Never below 0, for more input makes no worker idle."""
        if self._count < 10:
            return np.zeros(len(self._y))
        spread = self._vv - self._v**2 / self._count
        if spread <= 1e-9 * self._vv:
            return np.zeros(len(self._y))
        shared = self._vy - self._v * self._y / self._count
        left = np.maximum(self._yy - self._y**2 / self._count - shared**2 / spread, 0.0) / (self._count - 2)
        slope = shared / spread
        return np.asarray(np.where(slope > SURE * np.sqrt(left / spread), slope, 0.0), dtype=np.float64)
