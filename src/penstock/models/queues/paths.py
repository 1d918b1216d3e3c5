"""Operators as queues, one after the other: response times along the paths of a dataflow (paper 4 §V-A).

Two ways to say what reaches an operator that is not the first. `source`: the source's own arrivals, as many as get
there; what a busy operator before it smooths is not seen, so it errs on the safe side. `lumped`: the departures of the
operator before it, with long queues lumped; it errs on the other side. How far each is off: docs/arrivals.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

from penstock.core.errors import BadInput, unknown
from penstock.models.markov.absorbing import Absorbing
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.departing import LEVELS, departures
from penstock.models.queues.qbd import Response, map_ph_1

WAYS = ("source", "lumped")
# A departure process of more states costs more than it tells: the next queue would take 0.1 s.
STATES_MOST = 64
# With one level alone the departures of a queue are no better than its arrivals.
LEVELS_LEAST = 2
# Rows of one batch follow each other after this part of the mean gap.
TOGETHER = 1e-3


@dataclass(frozen=True, eq=False)
class Station:
    """An operator: its service, whose output it reads (none: the source's), and how many rows it puts out for one."""

    service: PhaseType
    after: tuple[str, ...] = ()
    selectivity: float = 1.0


@dataclass(frozen=True, eq=False)
class PathResponse:
    """From the source to the end of a path: responses add, as if they were independent."""

    stations: Mapping[str, Response]

    @property
    def utilisation(self) -> float:
        return max(each.utilisation for each in self.stations.values())

    @property
    def is_stable(self) -> bool:
        return all(each.is_stable for each in self.stations.values())

    @property
    def mean_s(self) -> float:
        return math.fsum(each.mean_s for each in self.stations.values()) if self.is_stable else math.inf

    def percentile_s(self, p: float) -> float:
        """What a share p of the rows does not exceed on their way."""
        if not 0 < p < 1:
            raise BadInput(f"percentile {p:g}: it is a share above 0 and below 1, such as 0.95")
        return self._law.percentile(p) if self._law else math.inf

    @cached_property
    def _law(self) -> Absorbing | None:
        laws = [each.law for each in self.stations.values() if each.law]
        return reduce(Absorbing.then, laws) if len(laws) == len(self.stations) else None


def network(arrivals: Map, stations: Mapping[str, Station], way: str = "source") -> dict[tuple[str, ...], PathResponse]:
    """The response along each path, by the names on it. Stations come after those that they read.

    >>> parse, match = PhaseType.erlang(2, 0.3), PhaseType.erlang(2, 0.5)
    >>> found = network(Map([[-1.0]], [[1.0]]), {"parse": Station(parse), "match": Station(match, ("parse",))})
    >>> path = found["parse", "match"]
    >>> round(path.mean_s, 6), path.utilisation  # two times M/E2/1: 0.396429 + 0.875
    (1.271429, 0.5)
    """
    if way not in WAYS:
        raise unknown("way", way, WAYS)
    _check(stations)
    inputs = _inputs(arrivals, stations, way)
    found = {name: map_ph_1(inputs[name], station.service) for name, station in stations.items()}
    return {path: PathResponse({name: found[name] for name in path}) for path in paths(stations)}


def paths(stations: Mapping[str, Station]) -> list[tuple[str, ...]]:
    """From the source to each station that nobody reads; a station that reads two is on two paths."""
    read = {name for station in stations.values() for name in station.after}

    def upto(name: str) -> list[tuple[str, ...]]:
        before = [path for other in stations[name].after for path in upto(other)] or [()]
        return [(*path, name) for path in before]

    return [path for name in stations if name not in read for path in upto(name)]


def visits(stations: Mapping[str, Station]) -> dict[str, float]:
    """Rows that reach each station for one of the source."""
    found: dict[str, float] = {}
    for name, station in stations.items():
        found[name] = (
            sum(found[other] * stations[other].selectivity for other in station.after) if station.after else 1.0
        )
    return found


def _inputs(arrivals: Map, stations: Mapping[str, Station], way: str) -> dict[str, Map]:
    reach, found, left = visits(stations), dict[str, Map](), dict[str, Map]()
    for name, station in stations.items():
        streams = [left[other] for other in station.after if other in left]
        states = math.prod(stream.states for stream in streams)
        if way == "lumped" and streams and len(streams) == len(station.after) and states <= STATES_MOST:
            found[name] = reduce(Map.superposed, streams)
        else:
            found[name] = reaching(arrivals, reach[name])
        if way == "lumped":
            _leave(name, station, found[name], left)
    return found


def _leave(name: str, station: Station, arrivals: Map, left: dict[str, Map]) -> None:
    """What it puts out, if that is a process of few enough states; else those after it see the source."""
    levels = min(LEVELS, (STATES_MOST // arrivals.states - 1) // station.service.phases)
    if levels >= LEVELS_LEAST and arrivals.rate * station.service.mean_s < 1:
        left[name] = reaching(departures(arrivals, station.service, levels), station.selectivity)


def reaching(arrivals: Map, share: float) -> Map:
    """Each row is dropped with a probability, or followed at once by others (geometric)."""
    if share <= 1:
        return arrivals.thinned(share)
    return arrivals.in_batches(1 - 1 / share, TOGETHER * arrivals.mean_s / share).with_rate(arrivals.rate * share)


def _check(stations: Mapping[str, Station]) -> None:
    if not stations:
        raise BadInput("network: there is no station")
    seen: set[str] = set()
    for name, station in stations.items():
        missing = [other for other in station.after if other not in seen]
        if missing:
            raise BadInput(f"network: '{name}' reads '{missing[0]}', which must come before it")
        if not (math.isfinite(station.selectivity) and station.selectivity > 0):
            raise BadInput(f"network: '{name}' has a selectivity of {station.selectivity:g}; it must be above 0")
        seen.add(name)
