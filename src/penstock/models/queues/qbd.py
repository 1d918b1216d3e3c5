"""MAP/PH/1: one server, first come first served, Markovian arrivals, phase-type service (paper 4 §V-A).

The chain of (number present, arrival phase, service phase) is a quasi-birth-death process. G, by logarithmic
reduction, gives N = (−U)⁻¹; from it the response time is phase-type again. Seen backwards in time (y, the stationary
phases of the customer in service, is known in closed form), its generator has no negative rate, so nothing is ever
subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.markov.absorbing import Absorbing, solve_m
from penstock.models.markov.chains import Floats, kron, stationary
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType

# 44 rounds were the most seen, for a chain that almost falls apart; each round squares the error.
ROUNDS = 200
# The chance that is still missing from G when the rounds end.
MISSING = 1e-18
NEAR_LIMIT = 0.995


@dataclass(frozen=True, eq=False)
class Response:
    """What a queue does in the long run. With a utilisation of 1 or more it grows without end: times are infinite."""

    utilisation: float
    rate: float
    """Arrivals per second."""
    service_s: float
    law: Absorbing | None
    """The response time's distribution; None where it is infinite."""
    levels: Levels | None = None

    @property
    def is_stable(self) -> bool:
        return self.law is not None

    @property
    def is_near_limit(self) -> bool:
        """So near to 1 that a rounding of the rate decides: 1 / (1 − ρ) is 200 and more."""
        return self.utilisation > NEAR_LIMIT

    @cached_property
    def mean_s(self) -> float:
        """From arrival to departure, service included."""
        return self.law.moment(1) if self.law else math.inf

    @property
    def wait_s(self) -> float:
        return self.mean_s - self.service_s

    @property
    def mean_number(self) -> float:
        """Present, the one in service included (Little)."""
        return self.rate * self.mean_s

    def moment(self, k: int) -> float:
        """E[R^k]."""
        return self.law.moment(k) if self.law else math.inf

    def percentile_s(self, p: float) -> float:
        """What a share p of the arrivals do not exceed: 0.95 for the 95th percentile."""
        if not 0 < p < 1:
            raise BadInput(f"percentile {p:g}: it is a share above 0 and below 1, such as 0.95")
        return self.law.percentile(p) if self.law else math.inf

    def exceeds(self, bound_s: float) -> float:
        """The share of arrivals whose response takes longer."""
        return self.law.tail(bound_s) if self.law else 1.0


@dataclass(frozen=True, eq=False)
class Levels:
    """The stationary numbers present: x_0 (by arrival phase), x_1, and x_{n+1} = x_n R."""

    x0: Floats
    x1: Floats
    r: Floats

    @property
    def empty(self) -> float:
        """The probability that nobody is present."""
        return float(self.x0.sum())

    @property
    def variance(self) -> float:
        """Of the number present."""
        z = np.linalg.inv(np.eye(len(self.r)) - self.r)
        mean = float((self.x1 @ z @ z).sum())
        second = float((self.x1 @ (2 * z @ z @ z - z @ z)).sum())
        return second - mean**2

    def level(self, n: int) -> Floats:
        """Probabilities of n present, by phase."""
        return self.x0 if n == 0 else np.asarray(self.x1 @ np.linalg.matrix_power(self.r, n - 1), dtype=np.float64)


def map_ph_1(arrivals: Map, service: PhaseType) -> Response:
    """Mean, distribution and percentiles of the response time, and the number present.

    >>> queue = map_ph_1(Map([[-0.5]], [[0.5]]), PhaseType.exponential(1.0))  # M/M/1: 1 / (μ − λ) = 2 s
    >>> round(queue.mean_s, 12), round(queue.percentile_s(0.95), 6), queue.utilisation  # −2 ln 0.05
    (2.0, 5.991465, 0.5)
    """
    rate, service_s = arrivals.rate, service.mean_s
    load = rate * service_s
    if load >= 1:
        return Response(load, rate, service_s, None)
    starts, stops = (
        kron(arrivals.D1, service.alpha[np.newaxis]),
        kron(np.eye(arrivals.states), service.exits[:, np.newaxis]),
    )
    up, local, down = _blocks(arrivals, service)
    # N = (−U)⁻¹, U = L + F G: expected times in a level's phases before the level below is first met.
    n = solve_m(local + up @ first_passage(up, local, down), down.sum(axis=1), np.eye(len(up)))
    # What an idle server's phases do until it is idle again.
    x0 = (1 - load) * stationary(arrivals.D0 + starts @ n @ stops)
    levels = Levels(x0, x0 @ starts @ n, up @ n)
    return Response(load, rate, service_s, _law(arrivals, service, n @ up @ down, x0 @ starts), levels)


def _blocks(arrivals: Map, service: PhaseType) -> tuple[Floats, Floats, Floats]:
    """Rates to the level above (F), within a level (L; its diagonal is never read) and to the level below (B)."""
    here, there = np.eye(arrivals.states), np.eye(service.phases)
    up = kron(arrivals.D1, there)
    local = kron(arrivals.D0, there) + kron(here, service.S)
    return up, local, kron(here, np.outer(service.exits, service.alpha))


def _law(arrivals: Map, service: PhaseType, grows: Floats, idle_starts: Floats) -> Absorbing:
    """The response time. T = I⊗S + N F B moves the age of the one in service; y = λ π⊗α(−S)⁻¹ are its stationary
    phases, y(−T) = what starts at an idle server. Backwards in time, Tᵀ scaled by y is a chain that ends."""
    t = kron(np.eye(arrivals.states), service.S) + grows
    y = arrivals.rate * np.outer(arrivals.at_arrivals, service.in_phases).ravel()
    ends = np.tile(service.exits, arrivals.states)
    met = y > 0  # phases in which no arrival ever leaves the chain are in no customer's life
    if not met.all():
        t, y, ends, idle_starts = t[np.ix_(met, met)], y[met], ends[met], idle_starts[met]
    rates = np.ascontiguousarray(t.T * y / y[:, np.newaxis])
    return Absorbing(y * ends / arrivals.rate, rates, idle_starts / y)


def first_passage(up: Floats, local: Floats, down: Floats) -> Floats:
    """G, by logarithmic reduction: the phase in which the level below is first met; solves B + L G + F G² = 0."""
    n = len(up)
    both = solve_m(local, (up + down).sum(axis=1), np.hstack([up, down]))
    h, k = both[:, :n], both[:, n:]
    g, t = k.copy(), h.copy()
    for _ in range(ROUNDS):
        crossed, hh, kk = h @ k + k @ h, h @ h, k @ k
        both = solve_m(crossed, (hh + kk).sum(axis=1), np.hstack([hh, kk]))
        h, k = both[:, :n], both[:, n:]
        g += t @ k
        t = t @ h
        if t.sum(axis=1).max() < MISSING:
            return np.asarray(g / g.sum(axis=1, keepdims=True), dtype=np.float64)
    raise BadInput("MAP/PH/1: the arrival process almost falls apart into separate ones; no queue can be computed")
