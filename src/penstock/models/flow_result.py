"""What a placed dataflow did: messages at each operator, throughput, relative throughput Ω, bottleneck (paper 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from penstock.core.objective import ROUNDING, relative_throughput

Edge = tuple[str, str]
"""The operator that feeds, and the one that is fed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages that wait between two steps."""

    backlog: Mapping[str, float] = field(default_factory=dict)
    """At each operator."""
    under_way: Mapping[Edge, float] = field(default_factory=dict)
    """Sent by one operator and not yet at the next, as the network was too slow."""

    @property
    def total(self) -> float:
        return sum(self.backlog.values()) + sum(self.under_way.values())


NOTHING = Waiting()


@dataclass(frozen=True)
class Flowed:
    """What happened in a step. All mappings count messages by operator."""

    span_s: float
    nominal: Mapping[str, float]
    """What the step's arrivals would bring to each operator if nothing waited."""
    offered: Mapping[str, float]
    """The same, with all that waited before the step."""
    came: Mapping[str, float]
    served: Mapping[str, float]
    could: Mapping[str, float]
    """What each could have served; infinite where a message costs nothing."""
    waiting: Waiting
    """What is left after the step; nothing where it was shed."""
    shed: float
    """Messages that were given up at the end of the step, at operators and under way."""
    deliverable: float
    """Results that the step's arrivals lead to if nothing waits."""
    delivered: float
    """Results that came out."""

    @property
    def throughput(self) -> float:
        """Results a second."""
        return self.delivered / self.span_s

    @property
    def relative(self) -> float | None:
        """Ω of the step, above 1 where backlog is worked off; None where nothing was to be delivered."""
        return relative_throughput(self.delivered, self.deliverable)

    @cached_property
    def needs(self) -> Mapping[str, float]:
        """What is asked of each operator, as a multiple of what it can do, if nothing is held back before it."""
        return {name: _need(self.offered[name], could) for name, could in self.could.items()}

    @property
    def bottleneck(self) -> str | None:
        """The operator with the least capacity for what is offered to it; None where all have enough.

        Those before it let a greater part through, so more of it is more results; but for a join behind it that other
        inputs keep busy (3 of 400 random dataflows).
        """
        return _above_one(self.needs)


@dataclass(frozen=True)
class Period:
    """Steps one after the other."""

    steps: tuple[Flowed, ...]

    @property
    def delivered(self) -> float:
        return sum(step.delivered for step in self.steps)

    @property
    def deliverable(self) -> float:
        return sum(step.deliverable for step in self.steps)

    @property
    def throughput(self) -> float:
        return self.delivered / sum(step.span_s for step in self.steps)

    @property
    def relative(self) -> float | None:
        """Ω over all steps: results, to those that the arrivals lead to."""
        return relative_throughput(self.delivered, self.deliverable)

    @property
    def relatives(self) -> tuple[float | None, ...]:
        """Ω from the first step to the end of each."""
        found, delivered, deliverable = [], 0.0, 0.0
        for step in self.steps:
            delivered, deliverable = delivered + step.delivered, deliverable + step.deliverable
            found.append(relative_throughput(delivered, deliverable))
        return tuple(found)

    @cached_property
    def asked(self) -> Mapping[str, float]:
        """Messages for each operator over all steps, if nothing is held back before it. Backlog counts once."""
        first, *others = self.steps
        return {name: count + sum(step.nominal[name] for step in others) for name, count in first.offered.items()}

    @cached_property
    def needs(self) -> Mapping[str, float]:
        """What is asked of each operator over all steps, as a multiple of what it can do."""
        could = {name: sum(step.could[name] for step in self.steps) for name in self.steps[0].could}
        return {name: _need(self.asked[name], count) for name, count in could.items()}

    @property
    def bottleneck(self) -> str | None:
        """As of a step; where each operator can do enough on the whole, but too late, that of the worst step."""
        worst = max(self.steps, key=lambda step: max(step.needs.values()))
        return _above_one(self.needs) or worst.bottleneck

    @property
    def waiting(self) -> Waiting:
        return self.steps[-1].waiting


def _need(asked: float, could: float) -> float:
    if asked <= 0:
        return 0.0
    return asked / could if could else math.inf


def _above_one(needs: Mapping[str, float]) -> str | None:
    """The first of those that lack the most."""
    name = max(needs, key=lambda each: needs[each])
    return name if needs[name] > 1 + ROUNDING else None
