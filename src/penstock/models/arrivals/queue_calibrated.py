"""Arrivals whose queue does what the window's own queue does: mean and 95th percentile, from light load to heavy.

Moments and correlations do not determine a queue. Here a hidden chain, fitted by likelihood, is bent until MAP/E2/1
answers as Lindley's recursion does on the window itself; but no further than the window can tell: windows drawn from
the unbent chain say how much its own queue scatters from window to window, and within that nothing is bent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.arrivals.descent import descend_thriftily
from penstock.models.arrivals.hidden import Hidden
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.lindley import Driven, driven
from penstock.models.queues.qbd import map_ph_1

LOADS = (0.3, 0.5, 0.7, 0.85)
# Draws of the service for the window, and windows drawn from the chain.
DRAWS, WINDOWS = 3, 8
# Logs of responses scatter by this much at least and at most: below is the noise of the draws themselves.
SCATTER = (0.05, 0.5)
# A window's length is taken to explain no more than this factor: else one with a single burst means an endless queue.
BIAS_MOST = 1.5
# Standard errors within which nothing is bent: with 1, samples of a known MAP were predicted at 0.76 of its response.
FREE = 1.5
# How firmly parameters keep to their likelihood's choice, against one standard error of a response.
PULL = 0.3
# The log of a tail's probability moves about three times as much as that of the percentile: −ln 0.05.
STEEP = 3.0
# Each takes four queues, 1.5 ms.
EVALUATIONS = 120


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What came of it; `cost` is half of the sum of squared residuals, in standard errors."""

    map: Map
    cost: float


@dataclass(frozen=True, slots=True)
class Target:
    """At one load: what the window's queue did, in mean service times, and how far that may be off (in logs)."""

    load: float
    service: PhaseType
    mean: float
    p95: float
    mean_error: float
    p95_error: float


def calibrate(gaps: Floats, begin: Hidden, rng: np.random.Generator) -> Calibrated:
    """The chain, bent by least squares on its rates and the odds of each transition (gaps have mean 1)."""
    seen = targets(gaps, begin, rng)
    zero = _pack(begin)

    def residuals(values: Floats) -> Floats:
        pulled = PULL * (values - zero)
        try:
            arrivals = _unpack(values, begin).map().with_rate(1.0)
        except BadInput:  # a step so far that the chain falls apart
            return np.append(np.full(2 * len(seen), 50.0), pulled)
        return np.append([part for target in seen for part in _misses(arrivals, target)], pulled)

    if not residuals(zero).any():
        return Calibrated(begin.map().with_rate(1.0), 0.0)
    values, cost = descend_thriftily(residuals, zero, EVALUATIONS)
    return Calibrated(_unpack(values, begin).map().with_rate(1.0), cost)


def targets(gaps: Floats, begin: Hidden, rng: np.random.Generator) -> list[Target]:
    """What the window's queue did, freed of what a window's length does to the chain's own queue."""
    window = driven(gaps, LOADS, rng.spawn(DRAWS))
    arrivals = begin.map().with_rate(1.0)
    drawn = [driven(arrivals.sample(len(gaps), one), LOADS, [one]) for one in rng.spawn(WINDOWS)]
    found = []
    for k, load in enumerate(LOADS):
        service = PhaseType.erlang(2, load)
        queue = map_ph_1(arrivals, service)
        exact = Driven(queue.mean_s / load, queue.percentile_s(0.95) / load)
        mean, mean_error = _corrected(window[k].mean, exact.mean, [each[k].mean for each in drawn])
        p95, p95_error = _corrected(window[k].p95, exact.p95, [each[k].p95 for each in drawn])
        found.append(Target(load, service, mean, p95, mean_error, p95_error))
    return found


def _corrected(seen: float, exact: float, drawn: Sequence[float]) -> tuple[float, float]:
    logs = np.log(drawn)
    error = min(max(float(logs.std(ddof=1)), SCATTER[0]), SCATTER[1])
    bias = min(max(exact / math.exp(float(logs.mean())), 1 / BIAS_MOST), BIAS_MOST)
    return seen * bias, error


def _misses(arrivals: Map, target: Target) -> tuple[float, float]:
    """How far the queue is off, in standard errors beyond those that are free."""
    law = map_ph_1(arrivals, target.service).law
    assert law is not None  # loads are below 1
    mean = math.log(law.moment(1) / (target.load * target.mean)) / target.mean_error
    roots, vectors = np.linalg.eig(law.generator)
    parts = (law.begin @ vectors) * np.linalg.solve(vectors, np.ones(len(roots)))
    tail = float((parts * np.exp(roots * target.load * target.p95)).sum().real)
    return _beyond(mean), _beyond(math.log(max(tail, 1e-9) / 0.05) / (STEEP * target.p95_error))


def _beyond(errors: float) -> float:
    return math.copysign(max(abs(errors) - FREE, 0.0), errors)


def _pack(model: Hidden) -> Floats:
    off = ~np.eye(len(model.mu), dtype=bool)
    odds = model.p / np.maximum(np.diag(model.p), 1e-3)[:, np.newaxis]
    return np.append(np.log(model.mu), np.log(np.maximum(odds[off], 1e-9)))


def _unpack(values: Floats, like: Hidden) -> Hidden:
    n = len(like.mu)
    p = np.eye(n)
    p[~np.eye(n, dtype=bool)] = np.exp(np.clip(values[n:], -25, 10))
    return Hidden(np.exp(np.clip(values[:n], -12, 12)), p / p.sum(axis=1, keepdims=True), like.phases)
