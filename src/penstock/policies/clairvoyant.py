"""Knows the future: the least that any policy could have paid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.objective import BILLING_S
from penstock.core.observation import Observation
from penstock.core.units import show_duration
from penstock.solvers.schedule import Floats, Task
from penstock.solvers.schedule_bound import plan


@dataclass(frozen=True, slots=True)
class Bound:
    """What any policy pays at least, if it violates the objective no more than is unavoidable."""

    lower: float
    """Proven."""
    cost: float
    """Of the schedule below, which violates nothing but the unavoidable."""
    workers: tuple[int, ...] = field(repr=False)
    """The target of each decision."""
    note: str = ""

    @property
    def gap(self) -> float:
        """How far the schedule may be from the best one, as a share of `lower`."""
        if self.cost <= self.lower:
            return 0.0
        return self.cost / self.lower - 1 if self.lower > 0 else math.inf


class Clairvoyant:
    """The cheapest schedule that meets the objective wherever it can be met; the bound for all others.

    >>> from penstock.sim.scenario import Scenario
    >>> job = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=1).job()
    >>> bound = Clairvoyant(job).bound
    >>> round(bound.lower, 4), round(bound.cost, 4), bound.workers[:6]
    (0.1467, 0.1467, (1, 2, 2, 1, 1, 1))
    """

    source: ClassVar[str] = "a dynamic programme over workers and backlog"
    needs = frozenset({Knob.WORKERS})
    memory_s = math.inf

    def __init__(self, job: Job) -> None:
        if job.oracle is None:
            raise BadInput("clairvoyant knows the future only in a replay: a live job has none to tell it")
        if not job.oracle.arrivals:
            raise BadInput("clairvoyant has nothing to plan for: the replay has no intervals")
        self._job = job
        self._arrivals = job.oracle.arrivals
        self._decisions = 0
        self.bound = bound(job)

    def decide(self, seen: Observation) -> Decision:
        at = min(self._decisions, len(self.bound.workers) - 1)
        self._decisions += 1
        workers = self.bound.workers[at]
        return Decision(seen.target.resized(workers), self._reason(len(seen.target.workers), workers, at + 1))

    def _reason(self, before: int, workers: int, tick: int) -> str:
        job = self._job
        # What is asked for now serves a start later; that is the tick it is for.
        tick = min(tick + math.floor(job.start_s / job.tick_s), len(self._arrivals) - 1)
        change = f"{before} -> {workers}" if before != workers else f"{workers}"
        rate = self._arrivals[tick] / job.tick_s
        return f"{change} workers: {rate:.4g}/s will arrive at {show_duration(tick * job.tick_s)}"


def bound(job: Job) -> Bound:
    """The bound of a job whose future is known."""
    task = task_of(job)
    best = plan(task)
    worker_tick = job.price.per_hour * job.tick_s / 3600.0
    targets = [*best.paid[1:].tolist(), int(best.paid[-1])]
    return Bound(best.lower * worker_tick, best.cost * worker_tick, tuple(map(job.limits.clamp, targets)), best.note)


def task_of(job: Job) -> Task:
    """The job as pure numbers, in ticks."""
    if job.oracle is None:
        raise BadInput("clairvoyant knows the future only in a replay: a live job has none to tell it")
    latency_s = job.objective.latency_s
    return Task(
        arrivals=np.asarray(job.oracle.arrivals, dtype=np.float64),
        capacity=_capacity(job),
        at_start=job.workers_at_start,
        most=job.limits.workers_max,
        least=job.limits.workers_min,
        start=job.start_s / job.tick_s,
        within=None if latency_s is None else (latency_s - job.dataflow.demand_s) / job.tick_s,
        unit=BILLING_S[job.price.billing] / job.tick_s,
    )


def _capacity(job: Job) -> Floats:
    workers = range(1, max(job.limits.workers_max, job.workers_at_start) + 1)
    per_tick = [job.capacity.sustainable(count, job.trigger_s) * job.tick_s for count in workers]
    return np.maximum.accumulate(np.array([0.0, *per_tick]))
