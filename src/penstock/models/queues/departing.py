"""What leaves a queue: its exact moments, and a MAP near to it."""

from __future__ import annotations

import math

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats, kron
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.qbd import Levels, map_ph_1

# Numbers present that are told apart; the last stands for all above.
LEVELS = 8


def departures(arrivals: Map, service: PhaseType, levels: int = LEVELS) -> Map:
    """The departures of MAP/PH/1, numbers present from `levels` on lumped: the rate is exact, long memory fades.

    From the last level a departure stays there as often as the stationary queue would be longer than it.
    """
    stationary = _levels(arrivals, service)
    n, m = arrivals.states, service.phases
    size, here, there = n * m, np.eye(n), np.eye(m)
    d0, d1 = np.zeros((n + levels * size, n + levels * size)), np.zeros((n + levels * size, n + levels * size))
    at = [slice(0, n)] + [slice(n + k * size, n + (k + 1) * size) for k in range(levels)]
    up, down = kron(arrivals.D1, there), kron(here, np.outer(service.exits, service.alpha))
    d0[at[0], at[0]], d0[at[0], at[1]] = arrivals.D0, kron(arrivals.D1, service.alpha[np.newaxis])
    for k in range(1, levels + 1):
        d0[at[k], at[k]] = kron(arrivals.D0, there) + kron(here, service.S)
        if k < levels:
            d0[at[k], at[k + 1]] = up
        d1[at[k], at[k - 1]] = down if k > 1 else kron(here, service.exits[:, np.newaxis])
    d0[at[levels], at[levels]] += up
    alone = _alone(stationary, levels)[:, np.newaxis]
    d1[at[levels], at[levels]] = (1 - alone) * down
    d1[at[levels], at[levels - 1]] *= alone
    off = d0 - np.diag(np.diag(d0))
    return Map(off - np.diag(off.sum(axis=1) + d1.sum(axis=1)), d1)


def departure_moment(arrivals: Map, service: PhaseType, k: int) -> float:
    """E[D^k] of the time between departures, exactly: a service, or an idle time and a service."""
    size = arrivals.states * service.phases
    empty = _left_empty(arrivals, service)
    v: Floats = np.append(empty, np.zeros(size))
    # Whatever arrives during the service does not change when it ends.
    t = _idle_then(arrivals, service, kron(arrivals.D0 + arrivals.D1, np.eye(service.phases)))
    for _ in range(k):
        v = np.asarray(np.linalg.solve(-t.T, v), dtype=np.float64)
    return math.factorial(k) * float(v.sum()) + (1 - float(empty.sum())) * service.moment(k)


def departure_joint(arrivals: Map, service: PhaseType) -> float:
    """E[D_0 D_1] of two times between departures in a row, exactly.

    The second is a service, after an idle time if the first departure left nobody: so nobody came during its service.
    """
    n = arrivals.states
    stationary, rate = _levels(arrivals, service), arrivals.rate
    stops = kron(np.eye(n), service.exits[:, np.newaxis])
    one = stationary.level(2) @ stops @ kron(np.eye(n), service.alpha[np.newaxis]) / rate
    t = _idle_then(arrivals, service, kron(arrivals.D0, np.eye(service.phases)))
    v: Floats = np.append(_left_empty(arrivals, service), one)
    for _ in range(2):
        v = np.asarray(np.linalg.solve(-t.T, v), dtype=np.float64)
    idle = float((v[n:] @ stops @ arrivals.stays).sum())
    return departure_moment(arrivals, service, 1) * service.mean_s + idle


def _levels(arrivals: Map, service: PhaseType) -> Levels:
    queue = map_ph_1(arrivals, service)
    if queue.levels is None:
        raise BadInput(f"departures of a queue with a utilisation of {queue.utilisation:.3g}: it must be below 1")
    return queue.levels


def _left_empty(arrivals: Map, service: PhaseType) -> Floats:
    """Chances that a departure leaves nobody, by arrival phase."""
    stops = kron(np.eye(arrivals.states), service.exits[:, np.newaxis])
    return np.asarray(_levels(arrivals, service).level(1) @ stops / arrivals.rate, dtype=np.float64)


def _idle_then(arrivals: Map, service: PhaseType, meanwhile: Floats) -> Floats:
    """Nobody there, then a service, during which the arrival phase moves by `meanwhile`."""
    n, m = arrivals.states, service.phases
    t = np.zeros((n + n * m, n + n * m))
    t[:n, :n], t[:n, n:] = arrivals.D0, kron(arrivals.D1, service.alpha[np.newaxis])
    t[n:, n:] = meanwhile + kron(np.eye(n), service.S)
    return t


def _alone(levels: Levels, last: int) -> Floats:
    """The chance that a queue of at least `last` is exactly that long, by phase."""
    exactly = levels.level(last)
    beyond = exactly @ np.linalg.inv(np.eye(len(exactly)) - levels.r)
    return np.asarray(np.clip(exactly / np.maximum(beyond, 1e-300), 0.0, 1.0), dtype=np.float64)
