"""What a policy is told once: the job, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput
from penstock.core.kinds import WorkerKind, kind_of
from penstock.core.objective import Limits, Objective, Price


class CapacityModel(Protocol):
    """How much some workers can do. A micro-batch job pays `fixed_s` for each batch, whatever its size."""

    def capacity(self, workers: float) -> float:
        """Events per second, in one endless batch; grows, or stays, with the workers."""
        ...

    def fixed_s(self, workers: float) -> float:
        """Seconds that a batch takes before its first row."""
        ...

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        """Events per second in batches of one trigger; `None` for a job without batches."""
        ...


class Trial(Protocol):
    """A schedule tried out, tick by tick, as a replay would run it."""

    tick: int
    """Ticks that are over."""

    def step(self, workers: int) -> float:
        """One tick further, with so many workers asked for at its begin: how many of its seconds are too late."""
        ...

    def saved(self) -> bytes:
        """Where it stands, to come back to."""
        ...

    def restored(self, saved: bytes) -> None:
        """Back to where it stood."""
        ...


@dataclass(frozen=True, slots=True)
class Oracle:
    """What only a scenario knows: what will arrive in each interval, and how workers really are."""

    arrivals: Sequence[float] = field(repr=False)
    capacity: CapacityModel | None = None
    """The truth, where policies are told a model."""
    start_s: tuple[float, float] = (0.0, 0.0)
    """How long a worker takes to start: at best, and at worst."""
    speed_least: float = 1.0
    """How slow a worker may be."""
    by_source: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)
    """What will arrive at each source; without it, sources share the arrivals evenly."""
    speed: Callable[[str, float], float] | None = field(default=None, repr=False)
    """Of a worker's cores at a time, as a part of what its kind says; None: always all of it."""
    fixed_s: float = 0.0
    """What every micro-batch takes before its first row, at the least."""
    drains: bool = False
    """Does a worker that is given up serve until its batch has ended?"""
    trial: Callable[[], Trial] | None = field(default=None, repr=False, compare=False)
    """Tries schedules, where what they miss cannot be worked out: in micro-batches."""

    def peak(self, tick_s: float) -> float:
        return max(self.arrivals, default=0.0) / tick_s

    def mean(self, tick_s: float) -> float:
        return sum(self.arrivals) / max(1, len(self.arrivals)) / tick_s


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a policy may build on. Durations are in seconds; the tick is not the trigger."""

    name: str
    dataflow: Dataflow
    capacity: CapacityModel
    limits: Limits
    tick_s: float
    kinds: tuple[WorkerKind, ...] = (WorkerKind(),)
    objective: Objective = Objective(latency_s=120.0)
    price: Price = Price()
    trigger_s: float | None = None
    workers_at_start: int = 1
    oracle: Oracle | None = None
    knobs: frozenset[Knob] = frozenset({Knob.WORKERS})
    """What the plant can change: a policy may turn more where it can, and do without where it cannot."""

    def __post_init__(self) -> None:
        names = [kind.name for kind in self.kinds]
        if not names or len(set(names)) < len(names):
            raise BadInput("a job needs at least one kind of worker, each with a name of its own")

    def kind(self, name: str) -> WorkerKind:
        """What a worker of this kind is made of."""
        return kind_of(self.kinds, name)

    def cores(self, target: Allocation) -> float:
        """How much an allocation is: the one order of "more" and "less" for guards and reports.

        Where CPU is shared out, what the instances may use; else all that the workers have.
        """
        if target.cpu_share:
            instances = target.instances
            return sum(share * max(1, len(instances.get(name, ()))) for name, share in target.cpu_share.items())
        if len(self.kinds) == 1:
            return len(target.workers) * self.kinds[0].cores * self.kinds[0].speed
        kinds = [self.kind(worker.kind) for worker in target.workers]
        return sum(kind.cores * kind.speed for kind in kinds)

    def workers_for(self, rate: float) -> int:
        """The fewest workers that sustain a rate, within the limits (paper 1, eq 11)."""
        low, high = max(1, self.limits.workers_min), self.limits.workers_max
        if self.capacity.sustainable(high, self.trigger_s) < rate:
            return high
        while low < high:
            middle = (low + high) // 2
            if self.capacity.sustainable(middle, self.trigger_s) >= rate * (1 - 1e-12):
                high = middle
            else:
                low = middle + 1
        return low
