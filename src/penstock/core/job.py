"""What a policy is told once: the job, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.dataflow import Dataflow
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


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """What a worker is made of."""

    name: str = "worker"
    cores: float = 1.0
    memory_mb: float = 4096.0


@dataclass(frozen=True, slots=True)
class Oracle:
    """What only a scenario knows: what will arrive in each interval, and how workers really are."""

    arrivals: Sequence[float] = field(repr=False)
    capacity: CapacityModel | None = None
    """The truth, where policies are told a model."""
    start_late_s: float = 0.0
    """How long a worker takes to start, at worst."""
    speed_least: float = 1.0
    """How slow a worker may be."""

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
    start_s: float = 0.0
    """How long a worker takes to start, as far as known: at best, where it varies."""
    workers_at_start: int = 1
    oracle: Oracle | None = None

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
