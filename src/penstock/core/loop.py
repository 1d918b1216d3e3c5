"""The loop that joins a policy and a plant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.objective import Limits
from penstock.core.observation import Observation


@dataclass(frozen=True, slots=True)
class Decision:
    """What is wanted, and why: one line for a person, with numbers."""

    target: Allocation
    reason: str
    signals: Mapping[str, float] = field(default_factory=dict)
    """Curves for the report; adopted parameters too."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop: a line of the journal."""

    seen: Observation
    decision: Decision
    target: Allocation
    """What was applied: the decision's target within the limits."""


class Policy(Protocol):
    """Decides. Built as `Mine(job, **parameters)`."""

    needs: frozenset[Knob]
    memory_s: float
    """How much of the past a restarted controller must replay."""

    def decide(self, seen: Observation) -> Decision: ...


class Plant(Protocol):
    """Is controlled: the simulator, a recorded run, or a Spark application."""

    knobs: frozenset[Knob]

    def observe(self) -> Observation | None:
        """What is to be seen now; `None` when nothing whole is. Raises PlantError when it is broken."""
        ...

    def apply(self, target: Allocation) -> None:
        """Ask for this. Idempotent, returns at once, may raise PlantError."""
        ...


def control(plant: Plant, policy: Policy, limits: Limits, ticks: Iterable[object]) -> Iterator[Step]:
    """Observe, decide, limit, apply, once a tick. `ticks` is the clock: the simulator's own, or one that sleeps."""
    lacking = policy.needs - plant.knobs
    if lacking:
        what = " and ".join(sorted(knob.value for knob in lacking))
        raise BadInput(f"{type(policy).__name__} needs {what}, which this plant cannot change")
    for _ in ticks:
        seen = plant.observe()
        if seen is None:
            continue
        decision = policy.decide(seen)
        target = limits.cut(decision.target)
        plant.apply(target)
        yield Step(seen, decision, target)
