"""What a scenario says about workers, noise, pauses and batches. Zero means: it does not happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from penstock.core.bounds import EVENTS_MOST, between
from penstock.core.errors import BadInput
from penstock.core.kinds import WorkerKind


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A kind of rented worker."""

    name: str = "worker"
    cores: float = 1.0
    memory_mb: float = 4096.0
    speed: float = 1.0
    """Of one core, relative to the core that operators' costs are counted in."""
    per_hour: float | None = None
    """Its price; without one, the scenario's."""
    start_s: float | tuple[float, float] = 0.0
    """From the request until it serves: a constant, or two bounds between which it is drawn."""
    warm_s: float = 0.0
    warm_speed: float = 0.5
    """Its speed in the first `warm_s` seconds: code generation and JIT."""
    speed_spread: float = 0.0
    """Speeds lie evenly in 1 − spread … 1."""
    speed_every_s: float = 0.0
    """How often a worker's speed is drawn anew."""
    fails_every_s: float = 0.0
    """Mean time to a failure."""

    def __post_init__(self) -> None:
        low, high = self.start_range_s
        between("worker.start_s", low, 0)
        between("worker.start_s", high, low)
        between("worker.warm_speed", self.warm_speed, 0, 1)
        between("worker.speed_spread", self.speed_spread, 0, 0.99)
        for key in ("warm_s", "speed_every_s", "fails_every_s"):
            between(f"worker.{key}", getattr(self, key), 0)
        self.kind()  # refuses impossible cores, memory, speed and price

    def kind(self) -> WorkerKind:
        """What a policy is told of it; of a start that varies, the middle."""
        start_s = sum(self.start_range_s) / 2
        return WorkerKind(self.name, self.cores, self.memory_mb, self.speed, self.per_hour, start_s)

    @property
    def power(self) -> float:
        """Cores at their speed."""
        return self.cores * self.speed

    @property
    def start_range_s(self) -> tuple[float, float]:
        return self.start_s if isinstance(self.start_s, tuple) else (self.start_s, self.start_s)


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """Measurement noise on gauges; counters stay exact. Standard deviations, relative but for the CPU."""

    cpu: float = 0.0
    memory: float = 0.0
    rate: float = 0.0
    correlation_s: float = 0.0
    """After this time the memory of an error has faded to 1/e."""
    cpu_shared: float = 0.0
    """Share of the CPU's variance that all workers have in common, as neighbours on one host do; 0…1."""
    cpu_late_s: float = 0.0
    """A CPU meter shows the load of this long ago; late by a part of a tick, it mixes two."""
    cpu_idle: float = 0.0
    """What a CPU meter shows while nothing is worked on."""
    cpu_busy: float = 1.0
    """What a CPU meter shows while all cores work."""
    rate_over_s: float = 0.0
    """The rate that is seen is a mean over this long, in whole ticks; at least one."""

    def __post_init__(self) -> None:
        for key in ("cpu", "memory", "rate"):
            between(f"noise.{key}", getattr(self, key), 0, 10)
        between("noise.cpu_shared", self.cpu_shared, 0, 1)
        between("noise.cpu_idle", self.cpu_idle, 0, 1)
        between("noise.cpu_busy", self.cpu_busy, self.cpu_idle, 1)
        for key in ("correlation_s", "cpu_late_s", "rate_over_s"):
            between(f"noise.{key}", getattr(self, key), 0)


@dataclass(frozen=True, slots=True)
class PauseSpec:
    """How long nothing is served when a worker joins, leaves or fails."""

    reconfigure_s: float = 0.0
    move_mb_s: float = 0.0
    """State moves at this speed; each worker holds its share of it."""

    def __post_init__(self) -> None:
        between("pause.reconfigure_s", self.reconfigure_s, 0)
        between("pause.move_mb_s", self.move_mb_s, 0)


@dataclass(frozen=True, slots=True)
class PlacedSpec:
    """Operators placed on workers. Instances on one worker share its cores, each by its part of the work there."""

    own_core: bool = False
    """Has each instance a core for itself (paper 3)? Else they share (paper 2)."""
    counts: bool = False
    """Are messages only counted, with `models/flow` (paper 3)? Else each queue knows the age of what waits in it.

    Counting is ten times as fast where a fifth of all messages waits for ever. Moves cost nothing in it."""
    shed: bool = False
    """Is what cannot be served at once given up? Only where messages are counted."""

    def __post_init__(self) -> None:
        if self.counts and not self.own_core:
            raise BadInput("placed.counts needs placed.own_core: an instance that is counted has a core for itself")
        if self.shed and not self.counts:
            raise BadInput("placed.shed needs placed.counts: queues that know ages keep what waits")


@dataclass(frozen=True, slots=True)
class EventSpec:
    """Every event by itself: each operator is one server with a queue, and may have a share of a core."""

    times_s: npt.NDArray[np.float64] = field(repr=False, compare=False)
    """When each event arrives, in order; 0 is the beginning."""
    phases: int = 2
    """Service times are Erlang with so many phases, their mean the operator's cost; 0: all alike (paper 4: 2)."""
    quota_period_s: float | None = None
    """A share is a quota of each such period, as cgroups have it; None: a core of that speed."""
    work_s: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)
    """Core-seconds of each event that reaches an operator, in their order; where missing they are drawn."""

    def __post_init__(self) -> None:
        between("events.phases", self.phases, 0, 1000)
        if self.quota_period_s is not None:
            between("events.quota_period_s", self.quota_period_s, 1e-6, 3600)
        if len(self.times_s) and not (self.times_s[0] >= 0 and bool((np.diff(self.times_s) >= 0).all())):
            raise BadInput("events: the times at which events arrive must be in order, from 0 on")

    def counts(self, tick_s: float, duration_s: float) -> npt.NDArray[np.float64]:
        """Events in each interval, as a load has them."""
        edges = np.arange(round(duration_s / tick_s) + 1) * tick_s
        return np.diff(np.searchsorted(self.times_s, edges)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """Micro-batches as Spark runs them."""

    trigger_s: float = 10.0
    rows_max: float = 0.0
    """Spark's maxOffsetsPerTrigger."""
    tasks: int = 0
    """How many tasks a batch has: when all are dealt out, a worker that joins waits for the next; 0: countless."""
    first_s: float = 0.0
    """A new worker's first task takes so long (class loading, code generation, imports), and its batch waits for it."""
    busy: float = 0.0
    """The part of a batch's fixed time in which workers are busy, with launching tasks and not with planning; 0…1."""
    spread: float = 0.0
    """How unequal batches are that should take equally long: the standard deviation of their times' logarithm."""
    offset_s: float = 0.0
    """When the trigger's clock strikes first."""
    drains: bool = False
    """Does a worker that is given up serve until its batch has ended?"""
    latency_includes_service: bool = True
    """Does the latency that is seen count the service to come? Else it is the age of the oldest event alone."""

    def __post_init__(self) -> None:
        between("batch.trigger_s", self.trigger_s, 1e-3)
        for key in ("first_s", "offset_s"):
            between(f"batch.{key}", getattr(self, key), 0)
        between("batch.rows_max", self.rows_max, 0, EVENTS_MOST)
        between("batch.tasks", self.tasks, 0, 1_000_000)
        between("batch.busy", self.busy, 0, 1)
        between("batch.spread", self.spread, 0, 2)
