"""What leaves a queue, as a MAP again."""

from __future__ import annotations

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
    queue = map_ph_1(arrivals, service)
    if queue.levels is None:
        raise BadInput(f"departures of a queue with a utilisation of {queue.utilisation:.3g}: it must be below 1")
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
    alone = _alone(queue.levels, levels)[:, np.newaxis]
    d1[at[levels], at[levels]] = (1 - alone) * down
    d1[at[levels], at[levels - 1]] *= alone
    off = d0 - np.diag(np.diag(d0))
    return Map(off - np.diag(off.sum(axis=1) + d1.sum(axis=1)), d1)


def _alone(levels: Levels, last: int) -> Floats:
    """The chance that a queue of at least `last` is exactly that long, by phase."""
    exactly = levels.level(last)
    beyond = exactly @ np.linalg.inv(np.eye(len(exactly)) - levels.r)
    return np.asarray(np.clip(exactly / np.maximum(beyond, 1e-300), 0.0, 1.0), dtype=np.float64)
