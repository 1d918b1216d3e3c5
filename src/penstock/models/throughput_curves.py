"""Throughput against workers: the curves of paper 1, and others to compare with.

Each curve is flat after its peak: nobody takes more workers where fewer do as much. `fit` takes every sample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares, nnls

from penstock.core.bounds import EVENTS_LEAST, EVENTS_MOST, between
from penstock.core.errors import BadInput

Floats = npt.NDArray[np.float64]


class Curve(Protocol):
    """Events per second of some workers; grows, or stays, with them."""

    kind: ClassVar[str]

    def rate(self, workers: float) -> float: ...


class Fittable(Curve, Protocol):
    """A curve that samples can be put through."""

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> Self: ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Every worker adds the same: what ElasticStream assumes.

    >>> Linear(50.0).rate(4)
    200.0
    """

    kind: ClassVar[str] = "linear"
    per_worker: float

    def __post_init__(self) -> None:
        between("per_worker", self.per_worker, EVENTS_LEAST, EVENTS_MOST)

    def rate(self, workers: float) -> float:
        return self.per_worker * workers

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> Linear:
        return cls(float(workers @ rates / (workers @ workers)))


@dataclass(frozen=True, slots=True)
class InverseTime:
    """One over the time of an event: serial, parallel, distribution, communication (paper 1, eq 4).

    >>> round(InverseTime(0.01617, 1.04913).rate(26), 2)
    17.69
    """

    kind: ClassVar[str] = "inverse-time"
    serial: float
    parallel: float
    distribution: float = 0.0
    communication: float = 0.0

    def __post_init__(self) -> None:
        _weights(self)
        between("the time of one event, the sum of all weights", 1 / self._at(1.0), 1 / EVENTS_MOST, 1 / EVENTS_LEAST)

    def rate(self, workers: float) -> float:
        return _from_one(workers, self._at, self._peak(max(workers, 1.0)))

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> InverseTime:
        """Non-negative least squares on the times."""
        terms = np.stack([np.ones_like(workers), 1 / workers, workers, workers**2], axis=1)
        return cls(*nnls(terms, 1 / rates)[0].tolist())

    def _at(self, workers: float) -> float:
        time = self.serial + self.parallel / workers + self.distribution * workers
        return 1 / max(time + self.communication * workers**2, 1e-300)

    def _peak(self, most: float) -> float:
        """Where the time is least, up to `most`: its slope only ever rises, so halving finds the root."""
        if self._slope(most) <= 0:
            return most
        low = high = 1.0
        while self._slope(high) <= 0:  # a bracket that does not depend on `most`: the peak is one number
            low, high = high, 2 * high
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._slope(middle) < 0 else (low, middle)
        return high

    def _slope(self, workers: float) -> float:
        return self.distribution + 2 * self.communication * workers - self.parallel / workers**2


@dataclass(frozen=True, slots=True)
class Quadratic:
    """A base, a gain for each worker, and a loss for each pair of them (paper 1, eq 5).

    >>> round(Quadratic(0.63117, 0.74233, 0.00063).rate(26), 2)
    19.51
    """

    kind: ClassVar[str] = "quadratic"
    base: float
    gain: float
    loss: float = 0.0

    def __post_init__(self) -> None:
        _weights(self)
        between("the rate of one worker, base + gain - loss", self.rate(1.0), EVENTS_LEAST, EVENTS_MOST)

    def rate(self, workers: float) -> float:
        peak = self.gain / (2 * self.loss) if self.loss else math.inf
        return _from_one(workers, lambda m: self.base + self.gain * m - self.loss * m * m, peak)

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> Quadratic:
        """Non-negative least squares on the rates."""
        terms = np.stack([np.ones_like(workers), workers, -(workers**2)], axis=1)
        return cls(*nnls(terms, rates)[0].tolist())


@dataclass(frozen=True, slots=True)
class Scalability:
    """The universal scalability law: contention bends the line, coherency turns it down."""

    kind: ClassVar[str] = "scalability"
    per_worker: float
    contention: float
    coherency: float = 0.0

    def __post_init__(self) -> None:
        between("per_worker", self.per_worker, EVENTS_LEAST, EVENTS_MOST)
        between("contention", self.contention, 0, 1)
        between("coherency", self.coherency, 0, 1)

    def rate(self, workers: float) -> float:
        peak = math.sqrt((1 - self.contention) / self.coherency) if self.coherency else math.inf
        return _from_one(workers, self._at, peak)

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> Scalability:
        """Least squares on relative errors, from the slope of the smallest sample on."""
        slope = float(np.max(rates / workers))

        def errors(weights: Floats) -> Floats:
            bent = 1 + weights[1] * (workers - 1) + weights[2] * workers * (workers - 1)
            return np.asarray(weights[0] * slope * workers / bent / rates - 1, dtype=np.float64)

        found = least_squares(errors, [1.0, 0.05, 0.001], bounds=([0.0, 0.0, 0.0], [10.0, 1.0, 1.0])).x.tolist()
        return cls(found[0] * slope, found[1], found[2])

    def _at(self, workers: float) -> float:
        bent = 1 + self.contention * (workers - 1) + self.coherency * workers * (workers - 1)
        return self.per_worker * workers / bent


@dataclass(frozen=True, slots=True)
class Table:
    """Measured rates, joined by straight lines: the ground truth.

    >>> Table((1, 2, 4), (100.0, 180.0, 240.0)).rate(3)
    210.0
    >>> Table((1, 2, 4), (100.0, 240.0, 200.0)).rate(4), Table((1, 2, 4), (100.0, 240.0, 200.0), monotone=False).rate(3)
    (240.0, 220.0)
    """

    kind: ClassVar[str] = "table"
    workers: tuple[int, ...]
    rates: tuple[float, ...]
    monotone: bool = True
    """Flat after a peak, as the curves are; false: as measured, where more workers may do less (paper 1, eq 12)."""

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in itertools.pairwise(self.workers))
        if not self.workers or len(self.workers) != len(self.rates) or self.workers[0] < 1 or not rising:
            raise BadInput("a table of capacities needs rising worker counts from 1 on, and one rate for each")
        for value in self.rates:
            between("a rate of the table", value, EVENTS_LEAST, EVENTS_MOST)

    def rate(self, workers: float) -> float:
        known = [(0, 0.0), *zip(self.workers, self.rates, strict=True)]
        best = 0.0
        for (left, below), (right, above) in itertools.pairwise(known):
            if workers <= right:
                return max(best, below + (above - below) * (workers - left) / (right - left))
            best = max(best, above) if self.monotone else 0.0
        return best if self.monotone else self.rates[-1]

    @classmethod
    def fit(cls, workers: Floats, rates: Floats) -> Table:
        """The mean of the samples of each count."""
        counts = np.unique(workers)
        means = [float(rates[workers == count].mean()) for count in counts]
        return cls(tuple(int(count) for count in counts), tuple(means))


CURVES: dict[str, type[Fittable]] = {
    curve.kind: curve for curve in (InverseTime, Quadratic, Linear, Scalability, Table)
}


def _weights(curve: InverseTime | Quadratic) -> None:
    for weight in fields(curve):
        between(weight.name, getattr(curve, weight.name), 0, EVENTS_MOST)


def _from_one(workers: float, at: Callable[[float], float], peak: float) -> float:
    """Flat after the peak; below one worker a part of what one does, so that none do nothing."""
    if workers < 1:
        return workers * _from_one(1.0, at, peak)
    return max(0.0, at(min(workers, max(peak, 1.0))))
