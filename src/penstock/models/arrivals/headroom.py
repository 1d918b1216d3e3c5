"""What bursts cost: the capacity that keeps an objective, beside that of a Poisson stream of the same rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.errors import BadInput
from penstock.models.markov.map import Map, poisson
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.qbd import map_ph_1

# Halvings of the interval in which the capacity is: 1e-6 of it is left.
HALVINGS = 24


@dataclass(frozen=True, slots=True)
class Headroom:
    """Rows per second that a server must be able to do."""

    bound_s: float
    percentile: float | None
    """None: the bound is on the mean."""
    capacity: float
    poisson: float
    """What a Poisson stream of the same rate would need."""

    @property
    def ratio(self) -> float:
        return self.capacity / self.poisson


def headroom(arrivals: Map, bound_s: float, percentile: float | None = 0.95) -> Headroom:
    """Capacity for `bound_s`, Erlang-2 service.

    >>> headroom(poisson(100.0), bound_s=0.05).ratio
    1.0
    """
    if not (bound_s > 0 and math.isfinite(bound_s)):
        raise BadInput(f"headroom: a bound of {bound_s:g} s; it must be above 0")
    plain = capacity_for(poisson(arrivals.rate), bound_s, percentile)
    return Headroom(bound_s, percentile, capacity_for(arrivals, bound_s, percentile), plain)


def capacity_for(arrivals: Map, bound_s: float, percentile: float | None = 0.95) -> float:
    """The fewest rows per second, by halving: the response falls as capacity grows."""

    def is_kept(capacity: float) -> bool:
        queue = map_ph_1(arrivals, PhaseType.erlang(2, 1 / capacity))
        return (queue.mean_s if percentile is None else queue.percentile_s(percentile)) <= bound_s

    low, high = arrivals.rate, 2 * arrivals.rate
    while not is_kept(high):
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_kept(middle) else (middle, high)
    return high
