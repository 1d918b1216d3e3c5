"""What runs: operators, and what flows between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of a job, with what an event costs it. Without `after` it is a source."""

    name: str
    cost_s: float
    """Core-seconds for one event that comes in."""
    selectivity: float = 1.0
    """Events that go out for one that comes in."""
    state_mb: float = 0.0
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        between(f"operator '{self.name}': cost_s", self.cost_s, 0)
        between(f"operator '{self.name}': selectivity", self.selectivity, 0, 1e6)
        between(f"operator '{self.name}': state_mb", self.state_mb, 0, 1e12)


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Operators in the order in which events meet them.

    >>> flow = Dataflow((Operator("parse", 0.01, selectivity=2.0), Operator("count", 0.005, after=("parse",))))
    >>> flow.visits["count"], flow.demand_s
    (2.0, 0.02)
    """

    operators: tuple[Operator, ...]
    visits: dict[str, float] = field(init=False, compare=False, repr=False)
    """How often one arriving event meets each operator."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "visits", _visits(self.operators))

    @property
    def demand_s(self) -> float:
        """Core-seconds that one arriving event costs in all."""
        return sum(operator.cost_s * self.visits[operator.name] for operator in self.operators)

    @property
    def state_mb(self) -> float:
        return sum(operator.state_mb for operator in self.operators)

    @property
    def sinks(self) -> tuple[Operator, ...]:
        fed = {name for operator in self.operators for name in operator.after}
        return tuple(operator for operator in self.operators if operator.name not in fed)


def _visits(operators: tuple[Operator, ...]) -> dict[str, float]:
    by_name = {operator.name: operator for operator in operators}
    if not operators or len(by_name) < len(operators):
        raise BadInput("a dataflow needs at least one operator, each with a name of its own")
    for operator in operators:
        for name in operator.after:
            if name not in by_name:
                raise unknown(f"operator in 'after' of '{operator.name}'", name, by_name)
    try:
        order = list(TopologicalSorter({o.name: o.after for o in operators}).static_order())
    except CycleError as cycle:
        raise BadInput(f"operators feed each other in a circle: {' -> '.join(cycle.args[1])}") from None
    sources = sum(1 for operator in operators if not operator.after)
    visits: dict[str, float] = {}
    for name in order:
        inputs = by_name[name].after
        # Several sources share the arrivals evenly.
        visits[name] = sum(visits[i] * by_name[i].selectivity for i in inputs) if inputs else 1.0 / sources
    return visits
