"""Knows the future: the least that any policy could have paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.objective import BILLING_S
from penstock.core.observation import Observation
from penstock.core.units import show_duration
from penstock.policies.mending import batch_schedule, mended_schedule
from penstock.solvers.schedule import ROUNDING, Floats, Ints, OnProgress, Task, bill, by_time, silent
from penstock.solvers.schedule_bound import lower_bound, schedule

# A larger gap is said in a note: the bound is then not the cost that a policy could have reached.
GAP_SMALL = 0.03


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
    knows_future: ClassVar[bool] = True
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
        self._task = task_of(job)
        self._bound: Bound | None = None

    @property
    def bound(self) -> Bound:
        return self.computed()

    def computed(self, told: OnProgress = silent) -> Bound:
        """The bound and its schedule; for a long series that takes minutes, so it is done once, when it is needed."""
        if self._bound is None:
            self._bound = bound(self._job, self._task, told)
        return self._bound

    def decide(self, seen: Observation) -> Decision:
        at = min(self._decisions, len(self.bound.workers) - 1)
        self._decisions += 1
        workers = self.bound.workers[at]
        return Decision(seen.target.resized(workers), self._reason(len(seen.target.workers), workers, at + 1))

    def _reason(self, before: int, workers: int, tick: int) -> str:
        job = self._job
        # What is asked for now serves a start later; that is the tick it is for.
        assert job.oracle is not None
        tick = min(tick + math.floor(job.oracle.start_s[0] / job.tick_s), len(self._arrivals) - 1)
        change = f"{before} -> {workers}" if before != workers else f"{workers}"
        rate = self._arrivals[tick] / job.tick_s
        return f"{change} workers: {rate:.4g}/s will arrive at {show_duration(tick * job.tick_s)}"


def lower_alone(job: Job, told: OnProgress = silent) -> tuple[float, str]:
    """What any policy pays at least, without a schedule that comes close; and how it was found."""
    lower, note = lower_bound(task_of(job), told)
    return lower * (1 - ROUNDING) * _worker_tick(job), note


def bound(job: Job, task: Task, told: OnProgress = silent) -> Bound:
    """The bound of a job whose future is known."""
    lower, note = lower_bound(task, lambda share: told(share / 2))
    paid = planned(job, task, lambda share: told((1 + share) / 2))
    cost = bill(task, paid)
    if cost > (1 + GAP_SMALL) * lower > 0:
        note = f"{note}; " * bool(note) + f"the schedule may cost up to {cost / lower - 1:.1%} more than the best one"
    if not by_time(task):
        note = f"{note}; " * bool(note) + "it holds for plans that give up the youngest worker first"
    if why := _varies(job):
        note = f"{note}; " * bool(note) + f"the bound takes the best case, the schedule counts on {why}"
    worker_tick = _worker_tick(job)
    targets = [*paid[1:].tolist(), int(paid[-1])]
    workers = tuple(map(job.limits.clamp, targets))
    # The sums of both are rounded: without the margin a bound could lie above what it bounds by 10⁻¹⁵.
    certain = min(lower * (1 - ROUNDING), cost)
    return Bound(certain * worker_tick, cost * worker_tick, workers, note)


def _worker_tick(job: Job) -> float:
    return job.price.per_hour * job.tick_s / 3600.0


def planned(job: Job, task: Task, told: OnProgress = silent) -> Ints:
    """The best schedule found."""
    careful = cautious(job, task)
    if task.within is None or job.oracle is None or job.oracle.trial is None:
        return schedule(careful, told)
    if job.trigger_s is not None:
        return batch_schedule(job, task, careful, told)
    if task.within % 1 == 0:
        return schedule(careful, told)
    return mended_schedule(job, task, careful, told)


def task_of(job: Job) -> Task:
    """The job as pure numbers, in ticks: what is paid at least, and what cannot but be missed."""
    if job.oracle is None:
        raise BadInput("clairvoyant knows the future only in a replay: a live job has none to tell it")
    if len(job.kinds) > 1:
        kinds = ", ".join(kind.name for kind in job.kinds)
        raise BadInput(f"the bound is proven for one kind of worker, and this job has {len(job.kinds)}: {kinds}")
    if job.objective.throughput is not None:
        raise BadInput(f"the bound is proven for a latency or a rate, not for {job.objective}")
    latency_s = job.objective.latency_s
    workers = range(max(job.limits.workers_max, job.workers_at_start) + 1)
    # Batches longer than a trigger do more than `sustainable`, at most `capacity`; the rate is judged by `sustainable`.
    truth = job.oracle.capacity or job.capacity
    rates = [truth.sustainable(n, job.trigger_s) if latency_s is None else truth.capacity(n) for n in workers]
    # In batches an event may be answered the moment its batch ends; else its service takes its own time.
    service_s = job.dataflow.served_s if job.trigger_s is None else 0.0
    return Task(
        arrivals=np.asarray(job.oracle.arrivals, dtype=np.float64),
        capacity=_per_tick(rates, job),
        at_start=job.workers_at_start,
        most=job.limits.workers_max,
        least=job.limits.workers_min,
        # One that starts after the end never serves, however late it is.
        start=min(job.oracle.start_s[0] / job.tick_s, len(job.oracle.arrivals) + 1.0),
        within=None if latency_s is None else (latency_s - service_s) / job.tick_s,
        unit=BILLING_S[job.price.billing] / job.tick_s,
        fixed=job.oracle.fixed_s / job.tick_s,
        drains=job.oracle.drains,
    )


def cautious(job: Job, task: Task) -> Task:
    """The task as a schedule must take it: with the slowest and latest workers, and with no backlog in batches.

    There a backlog becomes one long batch, whose first event waits for its last. With the fluid's schedule,
    99 % of the time of a job with triggers of 10 s missed a bound of 120 s.
    """
    oracle = job.oracle
    assert oracle is not None
    batches = job.trigger_s is not None and task.within is not None
    start_most_s = oracle.start_s[1]
    # A worker that comes within a tick has done less by its middle than a plan of whole ticks counts on.
    start = max(task.start, math.ceil(min(start_most_s / job.tick_s, len(task.arrivals) + 1.0) - ROUNDING))
    if not batches and oracle.speed_least == 1 and (start == task.start or task.within is None):
        return task
    truth = oracle.capacity or job.capacity
    speeds = [n * oracle.speed_least for n in range(len(task.capacity))]
    rates = [truth.sustainable(speed, job.trigger_s) for speed in speeds]
    return replace(
        task,
        capacity=_per_tick(rates, job),
        start=float(start),
        within=0.0 if batches else task.within,
    )


def _varies(job: Job) -> str:
    """What the bound takes at its best, and a schedule cannot."""
    if job.trigger_s is not None and job.objective.latency_s is not None:
        return "batches"
    oracle = job.oracle
    varies = oracle is not None and (oracle.speed_least < 1 or oracle.start_s[0] < oracle.start_s[1])
    return "workers that vary" if varies else ""


def _per_tick(rates: Sequence[float], job: Job) -> Floats:
    return np.maximum.accumulate(np.array([0.0, *rates[1:]]) * job.tick_s)
