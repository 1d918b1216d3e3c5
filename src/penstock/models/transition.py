"""How a load follows its input: a and b of f(x, u) = x + a·D + b·ΔD, and the meters' noise (paper 5 §2.3, 2.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.models.filters import Floats, measurement_noise

# Half an hour of many jobs shows a few changes of the rate; a restart replays as much.
HORIZON_S = 3600.0
# A meter that is full does not follow its input any more.
FULL = 0.95
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
    """a and b while a job runs: least squares that forgets after an hour, and 0 until a coefficient is sure.

    >>> learner = Learner(metrics=1)
    >>> for second in range(100):
    ...     rate = 2.0 if second // 20 % 2 else 1.0
    ...     u = np.array([rate, (1.0 if second // 20 % 2 else -1.0) if second % 20 == 0 else 0.0])
    ...     learner.add(1.0, Sample(("w1",), np.array([[0.2 * (2.0 if (second - 1) // 20 % 2 else 1.0)]]), u))
    >>> a, b = learner.coefficients()
    >>> a.round(6).tolist(), b.round(2).tolist()
    ([0.0], [0.2])
    """

    def __init__(self, metrics: int) -> None:
        self._uu, self._uy, self._yy = np.zeros((2, 2)), np.zeros((2, metrics)), np.zeros(metrics)
        self._count = 0.0
        self._last: Sample | None = None

    def add(self, span_s: float, sample: Sample) -> None:
        last, self._last = self._last, sample
        if last is None or last.names != sample.names or not sample.names:
            return
        old, new = last.z.mean(axis=0), sample.z.mean(axis=0)
        if max(old[0], new[0]) > FULL:
            return
        keep, change, u = math.exp(-span_s / HORIZON_S), new - old, last.u
        self._uu = keep * self._uu + np.outer(u, u)
        self._uy = keep * self._uy + np.outer(u, change)
        self._yy = keep * self._yy + change**2
        self._count = keep * self._count + 1

    def coefficients(self) -> tuple[Floats, Floats]:
        """a and b, each 0 unless sure; b at least 0, for more input makes no worker idle."""
        nothing = np.zeros(len(self._yy))
        scale = self._uu[0, 0] * self._uu[1, 1]
        if self._count < 10 or scale <= 0 or np.linalg.det(self._uu) < 1e-9 * scale:
            return nothing, nothing
        inverse = np.linalg.inv(self._uu)
        weights = inverse @ self._uy
        left = np.maximum(self._yy - (weights * self._uy).sum(axis=0), 0.0) / (self._count - 2)
        unsure = np.sqrt(np.outer(np.diag(inverse), left))
        sure = np.where(np.abs(weights) > SURE * unsure, weights, 0.0)
        return sure[0], np.maximum(sure[1], 0.0)
