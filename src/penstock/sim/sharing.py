"""How instances on one worker share its cores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.dataflow import Dataflow
from penstock.sim.engine import Segment
from penstock.sim.station import Station

# Where nothing arrives, what waits is worked off within a minute or so.
DRAIN_S = 60.0


@dataclass(slots=True)
class Share:
    """What a worker has to share out."""

    power: float
    """Of a worker whose speed is 1: its cores at their speed."""
    own_core: bool = False
    """Has each instance a core for itself? Where there are more instances than cores, each has an equal part."""
    cores: Mapping[str, float] = field(default_factory=dict)
    """Of each worker."""


def shares_of(
    stations: Mapping[str, Station], flow: Dataflow, arriving: Mapping[str, float], segment: Segment, share: Share
) -> dict[str, dict[str, float]]:
    """For each operator, the CPU that it may use of each worker, in core-seconds a second.

    Shared cores are dealt out by the work that each instance would have if nothing waited: then a worker with too
    much to do slows all of its operators alike, and the events wait at the source.
    """
    everywhere = tuple(segment.speeds)
    places = {name: everywhere if each.places is None else each.places for name, each in stations.items()}
    work = {name: each / max(1, len(places[name])) for name, each in _work(stations, flow, arriving).items()}
    here: dict[str, float] = {}
    instances: dict[str, int] = {}
    for name, where in places.items():
        for worker in where:
            here[worker] = here.get(worker, 0.0) + work[name]
            instances[worker] = instances.get(worker, 0) + 1
    found: dict[str, dict[str, float]] = {name: {} for name in places}
    for name, where in places.items():
        for worker in where:
            power = segment.speeds.get(worker, 0.0) * share.power
            if share.own_core:
                cpu = power / max(1.0, share.cores.get(worker, 1.0), instances[worker])
            else:
                cpu = power * work[name] / here[worker] if here[worker] else 0.0
            found[name][worker] = found[name].get(worker, 0.0) + cpu
    return found


def _work(stations: Mapping[str, Station], flow: Dataflow, arriving: Mapping[str, float]) -> dict[str, float]:
    """Core-seconds a second of each operator; what waits where nothing comes any more counts, too."""
    sources = {name: arriving.get(name) or stations[name].fifo.waiting / DRAIN_S for name in flow.sources}
    rates = flow.rates(sources)
    return {name: (rates[name] or each.fifo.waiting / DRAIN_S) * flow.costs_s[name] for name, each in stations.items()}


def rates_of(shares: Mapping[str, Mapping[str, float]], flow: Dataflow, is_up: bool) -> dict[str, float]:
    """Events a second that each operator could serve."""
    return {
        name: 0.0 if not is_up else sum(cpu.values()) / cost_s if (cost_s := flow.costs_s[name]) else math.inf
        for name, cpu in shares.items()
    }
