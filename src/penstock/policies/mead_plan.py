"""The least shares that keep a bound: response times predicted by queues, level by level (paper 4 §V, Fig 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.dataflow import Dataflow
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.baselines import MeanResponse, kingman
from penstock.models.queues.paths import PathResponse, Station, paths, reaching
from penstock.models.queues.qbd import Response, map_ph_1

Path = tuple[str, ...]
Queue = Callable[[float, PhaseType], "Response | MeanResponse"]
"""The response of an operator that so much of the source reaches, with this service."""
# The paper's service times: Erlang with two phases.
PHASES = 2


@dataclass(eq=False)
class Markovian:
    """MAP/PH/1; with a Poisson process, M/PH/1. Services are Erlang, so phases and mean tell them apart."""

    arrivals: Map
    _thinned: dict[float, Map] = field(default_factory=dict)
    _solved: dict[tuple[float, int, float], Response] = field(default_factory=dict)

    def __call__(self, reach: float, service: PhaseType) -> Response:
        if reach not in self._thinned:
            self._thinned[reach] = reaching(self.arrivals, reach)
        key = (reach, service.phases, service.mean_s)
        if key not in self._solved:
            self._solved[key] = map_ph_1(self._thinned[reach], service)
        return self._solved[key]


def independent(rate: float, scv: float) -> Queue:
    """Kingman's GI/G/1; of gaps with this variability a part `reach` is kept: 1 + reach (c² − 1)."""
    return lambda reach, service: kingman(rate * reach, max(0.0, 1 + reach * (scv - 1)), service)


class ResponseModel(Protocol):
    """What a plan asks of a model of the operators: the worst that any of the arrival processes leads to."""

    flow: Dataflow

    def along(self, path: Path, shares: Mapping[str, float], percentile: float) -> float:
        """The mean (percentile 0) or a percentile of the response; infinite where some operator cannot keep up."""
        ...

    def slowness(self, path: Path, shares: Mapping[str, float], by_load: bool) -> float:
        """Of the last operator of a path: its mean response; or its utilisation, where responses are infinite."""
        ...


def timed_paths(flow: Dataflow) -> list[Path]:
    """From the source to each end, without operators at which nothing takes time."""
    after = {operator.name: operator.after for operator in flow.operators}
    stations = {name: Station(PhaseType.exponential(1.0), after[name]) for name in flow.order}
    takes_time = {name for name in flow.order if flow.costs_s[name] > 0 and flow.visits[name] > 0}
    return [tuple(name for name in path if name in takes_time) for path in paths(stations)]


@dataclass(eq=False)
class Predictor:
    """A share is a core that is slower by so much, each operator a queue of its own."""

    flow: Dataflow
    queues: Sequence[Queue]
    phases: int = PHASES
    _operators: dict[tuple[str, float], list[Response | MeanResponse]] = field(default_factory=dict)
    _paths: dict[tuple[object, ...], float] = field(default_factory=dict)

    def along(self, path: Path, shares: Mapping[str, float], percentile: float) -> float:
        key = (path, tuple(shares[name] for name in path), percentile)
        if key not in self._paths:
            every = [self.operator(name, shares[name]) for name in path]
            self._paths[key] = max((_response(one, percentile) for one in zip(*every, strict=True)), default=0.0)
        return self._paths[key]

    def slowness(self, path: Path, shares: Mapping[str, float], by_load: bool) -> float:
        found = self.operator(path[-1], shares[path[-1]])
        return max(each.utilisation if by_load else each.mean_s for each in found)

    def operator(self, name: str, share: float) -> list[Response | MeanResponse]:
        """One operator's response by each model."""
        if (name, share) not in self._operators:
            service = PhaseType.erlang(self.phases, self.flow.costs_s[name] / share)
            reach = self.flow.visits[name]
            self._operators[name, share] = [queue(reach, service) for queue in self.queues]
        return self._operators[name, share]


def _response(stations: Sequence[Response | MeanResponse], percentile: float) -> float:
    if not all(each.is_stable for each in stations):
        return math.inf
    if not percentile:
        return math.fsum(each.mean_s for each in stations)
    laws = {str(place): each for place, each in enumerate(stations) if isinstance(each, Response)}
    return PathResponse(laws).percentile_s(percentile)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a plan must keep."""

    bounds_s: Mapping[str, float]
    """By the operator at the end of a path; other paths have none."""
    percentile: float = 0.0
    """0: the bounds are on means."""
    delta: float = 0.05
    """A level that brings a path nearer by less than this part of its bound, and not within it, is not worth it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A level for each operator, and the response that is expected on each path that has a bound."""

    levels: Mapping[str, int]
    expected_s: Mapping[Path, float]


def plan(predictor: ResponseModel, shares: Sequence[float], goal: Goal) -> Plan:
    """Figure 5: from the least shares, one level more for the slowest operator, until each path keeps its bound."""
    levels = dict.fromkeys(predictor.flow.order, 0)
    bound = [path for path in timed_paths(predictor.flow) if path and path[-1] in goal.bounds_s]
    # Paths in sequence: what one path gave an operator that both use stays.
    for path in bound:
        _keep(predictor, shares, goal, path, levels)
    # Only now: a later path may have raised an operator of an earlier one.
    given = {name: shares[level] for name, level in levels.items()}
    return Plan(levels, {path: predictor.along(path, given, goal.percentile) for path in bound})


def _keep(predictor: ResponseModel, shares: Sequence[float], goal: Goal, path: Path, levels: dict[str, int]) -> None:
    bound_s = goal.bounds_s[path[-1]]

    def given() -> dict[str, float]:
        return {name: shares[levels[name]] for name in path}

    def response() -> float:
        return predictor.along(path, given(), goal.percentile)

    def slowness(place: int) -> float:
        return predictor.slowness(path[: place + 1], given(), math.isinf(before))

    before = response()
    while before > bound_s and (grows := [place for place, name in enumerate(path) if levels[name] < len(shares) - 1]):
        slowest = path[max(grows, key=slowness)]
        levels[slowest] += 1
        after = response()
        # From infinite to infinite is no sign that it does not help: the queue is not stable yet.
        if after > bound_s and math.isfinite(before) and before - after < goal.delta * bound_s:
            levels[slowest] -= 1
            break
        before = after
