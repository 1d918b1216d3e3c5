"""What runs: operators, and what flows between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown


@dataclass(frozen=True, slots=True)
class Alternate:
    """One implementation of an operator: what it costs, puts out, and is worth (paper 3 §III)."""

    name: str
    cost_s: float
    """Core-seconds for one event that comes in."""
    selectivity: float = 1.0
    """Events that go out for one that comes in."""
    value: float = 1.0
    """What its results are worth, relative to the best implementation; 0…1."""

    def __post_init__(self) -> None:
        between(f"alternate '{self.name}': cost_s", self.cost_s, 0)
        between(f"alternate '{self.name}': selectivity", self.selectivity, 0, 1e6)
        between(f"alternate '{self.name}': value", self.value, 0, 1)


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of a job, with what an event costs it. Without `after` it is a source."""

    name: str
    cost_s: float = 0.0
    """Core-seconds for one event that comes in."""
    selectivity: float = 1.0
    """Events that go out for one that comes in."""
    state_mb: float = 0.0
    after: tuple[str, ...] = ()
    alternates: tuple[Alternate, ...] = ()
    """Its implementations, the first active at the start; then they say cost and selectivity."""

    def __post_init__(self) -> None:
        between(f"operator '{self.name}': cost_s", self.cost_s, 0)
        between(f"operator '{self.name}': selectivity", self.selectivity, 0, 1e6)
        between(f"operator '{self.name}': state_mb", self.state_mb, 0, 1e12)
        if len(set(self.after)) < len(self.after):
            raise BadInput(f"operator '{self.name}': 'after' names an operator twice")
        names = [alternate.name for alternate in self.alternates]
        if len(set(names)) < len(names):
            raise BadInput(f"operator '{self.name}': two of its alternates share a name")
        if names and (self.cost_s, self.selectivity) != (0.0, 1.0):
            raise BadInput(f"operator '{self.name}': its alternates say cost_s and selectivity; give them there alone")

    def active(self, name: str | None = None) -> Alternate:
        """The implementation of this name; without one, the first."""
        if not self.alternates:
            return Alternate(self.name, self.cost_s, self.selectivity)
        if name is None:
            return self.alternates[0]
        for alternate in self.alternates:
            if alternate.name == name:
                return alternate
        raise unknown(f"alternate of '{self.name}'", name, [each.name for each in self.alternates])


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Operators in the order in which events meet them.

    >>> flow = Dataflow((Operator("parse", 0.01, selectivity=2.0), Operator("count", 0.005, after=("parse",))))
    >>> flow.visits["count"], flow.demand_s
    (2.0, 0.02)
    """

    operators: tuple[Operator, ...]
    alternate: Mapping[str, str] = field(default_factory=dict)
    """The active implementation of an operator that has several; the first where none is named."""
    service_s: float | None = None
    """How long one event is served where nothing waits; without it, all of its demand, on one core."""
    order: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Operators by name, each after those that feed it."""
    costs_s: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Core-seconds for one event that comes in, of the active implementations."""
    selectivities: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Events that go out for one that comes in, of the active implementations."""
    visits: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """How often one arriving event meets each operator, where sources share the arrivals evenly."""

    def __post_init__(self) -> None:
        by_name = {operator.name: operator for operator in self.operators}
        for name in self.alternate:
            if name not in by_name:
                raise unknown("operator with an alternate", name, by_name)
        active = {name: each.active(self.alternate.get(name)) for name, each in by_name.items()}
        object.__setattr__(self, "order", _order(self.operators))
        object.__setattr__(self, "costs_s", {name: each.cost_s for name, each in active.items()})
        object.__setattr__(self, "selectivities", {name: each.selectivity for name, each in active.items()})
        object.__setattr__(self, "visits", self.rates(dict.fromkeys(self.sources, 1.0 / len(self.sources))))

    def switched(self, alternate: Mapping[str, str]) -> Dataflow:
        """The same operators with these implementations active."""
        return self if alternate == self.alternate else replace(self, alternate=alternate)

    def rates(self, arriving: Mapping[str, float]) -> dict[str, float]:
        """Events a second that reach each operator if so many arrive at each source and nothing waits."""
        by_name = {operator.name: operator for operator in self.operators}
        rates: dict[str, float] = {}
        for name in self.order:
            inputs = by_name[name].after
            fed = sum(rates[i] * self.selectivities[i] for i in inputs)
            rates[name] = fed if inputs else arriving.get(name, 0.0)
        return rates

    @property
    def demand_s(self) -> float:
        """Core-seconds that one arriving event costs in total."""
        return sum(cost_s * self.visits[name] for name, cost_s in self.costs_s.items())

    @property
    def served_s(self) -> float:
        """Seconds from the arrival of an event to its result where nothing waits."""
        return self.demand_s if self.service_s is None else self.service_s

    @property
    def results(self) -> float:
        """Results that one arriving event leads to."""
        return sum(self.visits[sink.name] * self.selectivities[sink.name] for sink in self.sinks)

    @property
    def state_mb(self) -> float:
        return sum(operator.state_mb for operator in self.operators)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(operator.name for operator in self.operators if not operator.after)

    @property
    def sinks(self) -> tuple[Operator, ...]:
        fed = {name for operator in self.operators for name in operator.after}
        return tuple(operator for operator in self.operators if operator.name not in fed)


def _order(operators: tuple[Operator, ...]) -> tuple[str, ...]:
    by_name = {operator.name: operator for operator in operators}
    if not operators or len(by_name) < len(operators):
        raise BadInput("a dataflow needs at least one operator, each with a name of its own")
    for operator in operators:
        for name in operator.after:
            if name not in by_name:
                raise unknown(f"operator in 'after' of '{operator.name}'", name, by_name)
    try:
        return tuple(TopologicalSorter({o.name: o.after for o in operators}).static_order())
    except CycleError as cycle:
        raise BadInput(f"operators feed each other in a circle: {' -> '.join(cycle.args[1])}") from None
