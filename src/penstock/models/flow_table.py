"""A dataflow over many steps as arrays, for planners that try hundreds of deployments; `models/flow` is the plain form.

Network links are left out: what planners move is cores and alternates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.core.dataflow import Dataflow
from penstock.models.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FlowTable:
    """Operators by number, in an order in which each comes after those that feed it, and their alternates.

    >>> from penstock.core.dataflow import Operator
    >>> table = FlowTable.of(Dataflow((Operator("parse", 0.1), Operator("count", 0.4, after=("parse",)))))
    >>> table.names, table.parents.tolist(), table.costs_s
    (('parse', 'count'), [0], ((0.1,), (0.4,)))
    """

    names: tuple[str, ...]
    first: Ints
    """Where the inputs of each operator begin in `parents`; one more than there are operators."""
    parents: Ints
    is_sink: npt.NDArray[np.bool_]
    sources: tuple[int, ...]
    alternates: tuple[tuple[str | None, ...], ...]
    """Of each operator, by falling value; None where it has one implementation alone."""
    costs_s: tuple[tuple[float, ...], ...]
    selectivities: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, flow: Dataflow) -> FlowTable:
        names = flow.order
        number = {name: place for place, name in enumerate(names)}
        by_name = {each.name: each for each in flow.operators}
        inputs = [[number[before] for before in by_name[name].after] for name in names]
        sinks = {sink.name for sink in flow.sinks}
        # Of equal value, the cheapest first: the others are never the better choice.
        found = [sorted(by_name[name].alternates, key=lambda each: (-each.value, each.cost_s)) for name in names]
        kinds = [each or [by_name[name].active()] for each, name in zip(found, names, strict=True)]
        return cls(
            names,
            np.cumsum([0, *map(len, inputs)]),
            np.array([place for each in inputs for place in each], dtype=np.int64),
            np.array([name in sinks for name in names]),
            tuple(place for place, each in enumerate(inputs) if not each),
            tuple(tuple(kind.name for kind in each) if each else (None,) for each in found),
            tuple(tuple(kind.cost_s for kind in each) for each in kinds),
            tuple(tuple(kind.selectivity for kind in each) for each in kinds),
            tuple(tuple(kind.value for kind in each) for each in kinds),
        )


@dataclass(frozen=True)
class FlowSteps:
    """What some steps bring: arrays of (step, operator), and what waits at each operator before the first."""

    arriving: Floats
    """Messages at the sources, 0 elsewhere."""
    costs_s: Floats
    selectivities: Floats
    work_s: Floats
    """Core-seconds that each operator has."""
    backlog: Floats


@dataclass(frozen=True)
class FlowTotals:
    """Results of each step, messages that its arrivals bring to each operator, and what waits before it (and at the
    end).
    """

    delivered: Floats
    deliverable: Floats
    nominal: Floats
    backlog: Floats

    def relative(self, begin: int = 0, end: int | None = None) -> float:
        """Ω from a step to the last, or to the one before `end`; 1 where nothing was to be delivered."""
        deliverable = float(self.deliverable[begin:end].sum())
        return float(self.delivered[begin:end].sum()) / deliverable if deliverable > 0 else 1.0


def totals(table: FlowTable, steps: FlowSteps) -> FlowTotals:
    """What comes of some steps, one after the other; what is not served waits."""
    found = flow_steps(
        table.first,
        table.parents,
        table.is_sink,
        steps.arriving,
        steps.costs_s,
        steps.selectivities,
        steps.work_s,
        steps.backlog,
    )
    return FlowTotals(*found)


@compiled
def flow_steps(  # noqa: PLR0913  a kernel takes plain arrays
    first: Ints,
    parents: Ints,
    is_sink: npt.NDArray[np.bool_],
    arriving: Floats,
    costs_s: Floats,
    selectivities: Floats,
    work_s: Floats,
    backlog: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Served = min(came + backlog, work / cost) at each operator in their order, step by step."""
    steps, operators = arriving.shape
    delivered, deliverable = np.zeros(steps), np.zeros(steps)
    nominal, waiting = np.zeros((steps, operators)), np.zeros((steps + 1, operators))
    served = np.zeros(operators)
    waiting[0] = backlog
    for step in range(steps):
        for place in range(operators):
            came, expected = arriving[step, place], arriving[step, place]
            for position in range(first[place], first[place + 1]):
                before = parents[position]
                came += served[before] * selectivities[step, before]
                expected += nominal[step, before] * selectivities[step, before]
            nominal[step, place] = expected
            here, cost_s = came + waiting[step, place], costs_s[step, place]
            done = here
            if cost_s > 0 and work_s[step, place] / cost_s < here:
                done = work_s[step, place] / cost_s
            served[place] = done
            waiting[step + 1, place] = here - done
            if is_sink[place]:
                delivered[step] += done * selectivities[step, place]
                deliverable[step] += expected * selectivities[step, place]
    return delivered, deliverable, nominal, waiting


@compiled
def offered(first: Ints, parents: Ints, selectivities: Floats, nominal: Floats, backlog: Floats) -> Floats:
    """Messages for each operator in one step if all that waits moves on at once."""
    found = np.zeros(len(nominal))
    for place in range(len(nominal)):
        if first[place] == first[place + 1]:
            found[place] = nominal[place]
        for position in range(first[place], first[place + 1]):
            before = parents[position]
            found[place] += found[before] * selectivities[before]
        found[place] += backlog[place]
    return found
