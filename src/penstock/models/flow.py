"""What a placed dataflow does with what arrives: messages at each operator, throughput, bottleneck (paper 3 §III–V)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.bounds import between
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput, unknown
from penstock.core.objective import ROUNDING
from penstock.models.flow_result import NOTHING, Edge, Flowed, Period, Waiting


@dataclass(frozen=True, slots=True)
class Links:
    """What the network carries between workers; within a worker messages cost it nothing."""

    mb_s: Mapping[tuple[str, str], float]
    """Bandwidth from one worker to another; a pair that is not named is unlimited."""
    message_mb: float

    def __post_init__(self) -> None:
        between("message_mb", self.message_mb, 0)
        for (sender, receiver), mb_s in self.mb_s.items():
            between(f"bandwidth from {sender} to {receiver}", mb_s, 0)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one step brings: arrivals, and what the workers and the network can do in it."""

    span_s: float
    arriving: Mapping[str, float]
    """Messages a second at each source."""
    speeds: Mapping[str, float]
    """Of one core of each worker, relative to the core that costs are counted in; one that is not named is not up."""
    links: Links | None = None
    """None: the network limits nothing."""

    def __post_init__(self) -> None:
        between("span_s", self.span_s, 1e-6)
        for what, values in (("rate at source", self.arriving), ("speed of worker", self.speeds)):
            for name, value in values.items():
                if not 0 <= value < math.inf:
                    raise BadInput(f"{what} '{name}' is {value:g}: it must be at least 0")


@dataclass(frozen=True)
class Deployed:
    """Active alternates, and the worker of each instance; an instance has a core to itself.

    >>> from penstock.core.dataflow import Operator
    >>> flow = Dataflow((Operator("parse", 0.1), Operator("count", 0.4, after=("parse",))))
    >>> deployed = Deployed(flow, {"parse": ("w1",), "count": ("w1", "w2")})
    >>> done = step(deployed, Conditions(60.0, {"parse": 5.0}, {"w1": 1.0, "w2": 0.5}))
    >>> done.throughput, done.relative, done.bottleneck
    (3.75, 0.75, 'count')
    """

    flow: Dataflow
    instances: Mapping[str, tuple[str, ...]]
    """For each operator, the worker of each of its instances, as in an `Allocation`."""
    inputs: Mapping[str, tuple[str, ...]] = field(init=False, compare=False, repr=False)
    """For each operator, those that feed it."""
    sinks: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Operators that feed no other, and the results of each for one message."""

    def __post_init__(self) -> None:
        inputs = {operator.name: operator.after for operator in self.flow.operators}
        for name in self.instances:
            if name not in inputs:
                raise unknown("operator with instances", name, inputs)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "sinks", {sink.name: self.flow.selectivities[sink.name] for sink in self.flow.sinks})

    def power(self, name: str, speeds: Mapping[str, float]) -> float:
        """Core-seconds a second that all instances of an operator have."""
        return sum([speeds.get(worker, 0.0) for worker in self.instances.get(name, ())])


def step(deployed: Deployed, given: Conditions, waiting: Waiting = NOTHING, shed: bool = False) -> Flowed:
    """One step: served = min(came + backlog, power · span / cost) at each operator, in their order."""
    flow, span_s = deployed.flow, given.span_s
    for name in given.arriving:
        if deployed.inputs.get(name, (name,)):
            raise unknown("source", name, flow.sources)
    nominal = {name: rate * span_s for name, rate in flow.rates(given.arriving).items()}
    offered = _offered(deployed, nominal, waiting) if waiting.backlog or waiting.under_way else nominal
    could = {name: _could(deployed.power(name, given.speeds) * span_s, flow.costs_s[name]) for name in flow.order}
    limits = _limits(deployed, given, offered, waiting)
    came, served, left = _passed(deployed, nominal, could, limits, waiting)
    deliverable, delivered = _results(deployed, nominal), _results(deployed, served)
    kept, lost = (NOTHING, left.total) if shed else (left, 0.0)
    return Flowed(span_s, nominal, offered, came, served, could, kept, lost, deliverable, delivered)


def over(
    deployed: Sequence[Deployed], given: Sequence[Conditions], waiting: Waiting = NOTHING, shed: bool = False
) -> Period:
    """Steps one after the other, each with what was deployed in it; what is not served waits, or is shed."""
    if not given or len(deployed) != len(given):
        raise BadInput(f"{len(deployed)} deployments for {len(given)} steps: one for each, and at least one step")
    steps: list[Flowed] = []
    for here, conditions in zip(deployed, given, strict=True):
        steps.append(step(here, conditions, waiting, shed))
        waiting = steps[-1].waiting
    return Period(tuple(steps))


def over_provisioned(
    deployed: Deployed, given: Sequence[Conditions], seen: Period, target: float = 1.0
) -> tuple[str, ...]:
    """Operators that could lose their slowest instance and still serve `target` of what is asked of them.

    Those with the most to spare come first. The last instance of an operator is never one too many.
    """
    spare_s: dict[str, float] = {}
    for name, places in deployed.instances.items():
        if len(places) < 2:
            continue
        work_s = [sum(each.speeds.get(worker, 0.0) * each.span_s for each in given) for worker in places]
        left_s = sum(work_s) - min(work_s)
        asked_s = target * seen.asked[name] * deployed.flow.costs_s[name]
        if asked_s <= left_s * (1 + ROUNDING):
            spare_s[name] = left_s - asked_s
    return tuple(sorted(spare_s, key=lambda name: -spare_s[name]))


def _passed(
    deployed: Deployed,
    nominal: Mapping[str, float],
    could: Mapping[str, float],
    limits: Mapping[Edge, float],
    waiting: Waiting,
) -> tuple[dict[str, float], dict[str, float], Waiting]:
    """What came to each operator, what it served, and what is left."""
    came, served, backlog, under_way = dict[str, float](), dict[str, float](), dict[str, float](), dict[Edge, float]()
    selectivities, waited, sent_before = deployed.flow.selectivities, waiting.backlog, waiting.under_way
    for name in deployed.flow.order:
        inputs = deployed.inputs[name]
        arrived = 0.0 if inputs else nominal[name]
        for before in inputs:
            edge = (before, name)
            sent = served[before] * selectivities[before] + sent_before.get(edge, 0.0)
            carried = min(sent, limits.get(edge, math.inf))
            if sent > carried:
                under_way[edge] = sent - carried
            arrived += carried
        here = arrived + waited.get(name, 0.0)
        came[name], served[name] = arrived, min(here, could[name])
        if here > served[name]:
            backlog[name] = here - served[name]
    return came, served, Waiting(backlog, under_way)


def _offered(deployed: Deployed, nominal: Mapping[str, float], waiting: Waiting) -> dict[str, float]:
    """Messages for each operator if all that waits moved on at once."""
    found: dict[str, float] = {}
    for name in deployed.flow.order:
        inputs = deployed.inputs[name]
        fed = sum(_sent(deployed, (before, name), found, waiting) for before in inputs)
        found[name] = (fed if inputs else nominal[name]) + waiting.backlog.get(name, 0.0)
    return found


def _sent(deployed: Deployed, edge: Edge, counts: Mapping[str, float], waiting: Waiting) -> float:
    """Messages for an edge if the operator before it serves so many."""
    return counts[edge[0]] * deployed.flow.selectivities[edge[0]] + waiting.under_way.get(edge, 0.0)


def _limits(deployed: Deployed, given: Conditions, offered: Mapping[str, float], waiting: Waiting) -> dict[Edge, float]:
    """Messages that each edge may carry where a link has less than is offered to it.

    Edges share a link by what is offered to each: one that uses less of its part leaves it idle, so this is a bound
    from below.
    """
    links = given.links
    if links is None:
        return {}
    loads: dict[tuple[str, str], float] = {}
    crossing: dict[Edge, list[tuple[str, str]]] = {}
    shares = {name: _shares(deployed, name, given.speeds) for name in deployed.flow.order}
    for name, inputs in deployed.inputs.items():
        for before in inputs:
            edge = (before, name)
            mb = _sent(deployed, edge, offered, waiting) * links.message_mb
            pairs = {(u, v): a * b for u, a in shares[before].items() for v, b in shares[name].items() if u != v}
            crossing[edge] = [pair for pair, part in pairs.items() if part and pair in links.mb_s]
            for pair in crossing[edge]:
                loads[pair] = loads.get(pair, 0.0) + mb * pairs[pair]
    parts = {pair: links.mb_s[pair] * given.span_s / mb for pair, mb in loads.items() if mb}
    slowest = {edge: min((parts.get(pair, 1.0) for pair in pairs), default=1.0) for edge, pairs in crossing.items()}
    return {edge: part * _sent(deployed, edge, offered, waiting) for edge, part in slowest.items() if part < 1}


def _shares(deployed: Deployed, name: str, speeds: Mapping[str, float]) -> dict[str, float]:
    """Which part of an operator's messages each worker handles: by the speed of its instances."""
    found: dict[str, float] = {}
    for worker in deployed.instances.get(name, ()):
        found[worker] = found.get(worker, 0.0) + speeds.get(worker, 0.0)
    total = sum(found.values())
    return {worker: power / total for worker, power in found.items()} if total else {}


def _could(work_s: float, cost_s: float) -> float:
    return work_s / cost_s if cost_s else math.inf


def _results(deployed: Deployed, counts: Mapping[str, float]) -> float:
    return sum(counts[name] * selectivity for name, selectivity in deployed.sinks.items())
