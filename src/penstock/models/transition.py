"""How a load follows its input: a and b of f(x, u) = x + a·D + b·ΔD, and the meters' noise (paper 5 §2.3, 2.4)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.models.filters import Floats, measurement_noise
from penstock.models.meter_lag import LAGS, PAPERS_LAG, MeterLag, lagged

# An hour of many jobs shows the rate at several heights; a restart replays as much.
HORIZON_S = 3600.0
# A coefficient counts when it is three times its own uncertainty: a chance of one in 400 to be taken in by noise.
SURE = 3.0
# Throughputs that differ by more than this share of the larger are a jump.
JUMP = 0.5
# A capacity model's word on one event's load may be off by this share.
UNSURE = 0.5
# Where it says this much more than all that was measured, it is not believed: meters err.
TOLERANCE = 1.25


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
    lag: float = PAPERS_LAG
    """How many samples the meter is behind its input; a part of one mixes two."""


def learn(samples: Iterable[Sample], lag: float | None = None) -> Learnt | None:
    """a, b, R and the meter's lag from a run; None without two samples between which nobody came or went.

    The paper regresses on the input of the sample before: with a meter on time it finds that nothing moves the load.
    So the lag is chosen from the data (`lag=1` is the paper's), and what is steady was so for as long as a meter lags.
    """
    known, meter = list(samples), MeterLag(lag)
    changes, quiet, inputs = [], [], []
    old: Sample | None = None
    for new in known:
        meter.follow(new.names, new.z, new.u)
        if old is not None and old.names == new.names and old.names:
            changes.append(new.z.mean(axis=0) - old.z.mean(axis=0))
            inputs.append(meter.inputs())
            quiet += [new.z - old.z] if meter.is_quiet else []
        old = new
    if not changes:
        return None
    a, b = least_squares(np.array(changes), np.array([lagged(each, meter.lag) for each in inputs]))
    noise = measurement_noise(np.concatenate(quiet) if quiet else np.empty((0, len(changes[0]))))
    return Learnt(a, b, noise, float(np.mean([len(sample.names) for sample in known])), meter.lag)


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
        self._recent: deque[float] = deque(maxlen=LAGS)

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
            throughput = (processed - self._processed) / self._worked_s
            if in_batches or not self._jumped(throughput):
                self.add(self._lap_s, self._lap_loads / self._lap_s, throughput)
        self._processed, self._lap_s, self._worked_s = processed, 0.0, 0.0
        self._lap_loads = np.zeros(len(loads))

    def _jumped(self, throughput: float) -> bool:
        """Is this one far from those that a late meter may still show? One such lap halved b in the paper's square."""
        far = any(abs(throughput - each) > JUMP * max(throughput, each) for each in self._recent)
        self._recent.append(throughput)
        return far

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
        """What the line alone says, 0 until it is sure. Never below 0, for more input makes no worker idle."""
        slope, variance = self._line()
        if slope is None or self._count < 10:
            return np.zeros(len(self._y))
        return np.asarray(np.where(slope > SURE * np.sqrt(variance), slope, 0.0), dtype=np.float64)

    def believed(self, model: float | None) -> Floats:
        """The slope, beside what a capacity model says of a worker's load for each event (`workers / capacity`).

        No event costs more than a worker's whole load spread over its events. A model that says so is not learnt yet:
        then an event costs anything up to that, half of it in the middle. Either may be off by half, and the slope
        counts by its own error: live, in ticks of 20 s, it alone was not sure for five minutes or more, and the filter
        did without the rate.
        """
        prior = self._prior(math.inf if model is None else model)
        slope, variance = self._line()
        if slope is None:
            return prior
        doubt = (UNSURE * prior) ** 2 + 1e-18
        return np.asarray(np.maximum((slope * doubt + prior * variance) / (doubt + variance), 0.0), dtype=np.float64)

    def _prior(self, model: float) -> Floats:
        if self._vv <= 0:
            return np.full(len(self._y), model if model < math.inf else 0.0)
        most = self._vy / self._vv
        return np.where(model <= most * TOLERANCE, np.minimum(model, most), most / 2)

    def _line(self) -> tuple[Floats | None, Floats]:
        """The slope of a line through all laps, and its variance; none where they cannot tell."""
        spread = self._vv - self._v**2 / self._count if self._count > 2 else 0.0
        if spread <= 1e-9 * self._vv:
            return None, np.zeros(len(self._y))
        shared = self._vy - self._v * self._y / self._count
        left = np.maximum(self._yy - self._y**2 / self._count - shared**2 / spread, 0.0) / (self._count - 2)
        return shared / spread, left / spread
