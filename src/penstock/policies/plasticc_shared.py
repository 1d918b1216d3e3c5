"""Paper 3's look-ahead where all workers serve all operators, as on live Spark: workers and alternates alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.objective import application_value
from penstock.core.observation import Observation
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.tracking import StartTimes, TrackedCapacity
from penstock.policies.alternates import can_switch, ladder
from penstock.policies.expectations import Expectations, Sight
from penstock.solvers.shared_plan import Floats, Stages, Steps, planned

# Batches that overrun their trigger follow each other at once: with a fixed time of more than a trigger, workers served
# nothing at all by the plan, however many, and live it kept one.
BATCH_S = 30.0


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far is planned, how often, and for how much of what comes."""

    step_s: float
    plan_s: float
    steps: int
    least: float
    sigma: float
    period_s: float


class SharedPlan:
    """Every `plan_s`, workers and alternates of each step of the interval, chosen at once (`solvers/shared_plan`).

    A worker is asked for its start, and a tick, before the step that needs it. Without alternates it plans workers.
    """

    def __init__(self, job: Job, sight: Sight, horizon: Horizon) -> None:
        self._job, self._horizon = job, horizon
        self._rungs = ladder(job.dataflow) if can_switch(job) else ({},)
        self.needs = frozenset({Knob.WORKERS, Knob.ALTERNATE} if len(self._rungs) > 1 else {Knob.WORKERS})
        self._values = [application_value(job.dataflow.switched(dict(each))) for each in self._rungs]
        self._ahead, self._tracked = Expectations(job, sight), TrackedCapacity()
        self._starts = StartTimes(job.kinds[0].start_s)
        self._plan: tuple[float, Stages] | None = None
        self._sigma = horizon.sigma
        self._seen_s = self._seen_events = 0.0

    def decide(self, seen: Observation) -> Decision:
        self._ahead.note(seen)
        self._starts.note(seen)
        self._tracked.note(seen, self._job.capacity)
        self._seen_s, self._seen_events = self._seen_s + seen.span_s, self._seen_events + seen.input_rate * seen.span_s
        clock_s = self._ahead.clock_s
        is_due = self._plan is None or clock_s - self._plan[0] >= self._horizon.plan_s - self._job.tick_s / 2
        if is_due:
            self._plan = (clock_s, planned(self._steps(seen)))
        assert self._plan is not None
        begun_s, plan = self._plan
        target = self._target(seen, plan, clock_s - begun_s)
        return Decision(target, self._reason(target, plan, "a new plan" if is_due else ""), self._signals(target))

    def _steps(self, seen: Observation) -> Steps:
        told, most = self._horizon, self._job.limits.workers_max
        rates = self._ahead.rates(told.steps)
        arriving = np.sum([np.asarray(each) for each in rates.values()], axis=0) * told.step_s
        serves = np.array(
            [[self._serves(rung, workers) for workers in range(most + 1)] for rung in range(len(self._rungs))]
        )
        price = self._worth(serves, self._mean * told.step_s, self._per_step)
        return Steps(
            arriving=arriving,
            backlog=seen.backlog or 0.0,
            serves=serves,
            values=np.array(self._values),
            price=price,
            workers=(max(1, self._job.limits.workers_min), most),
            here=self._here(seen),
            left=(1 - told.least + self._in_work) * arriving,
            now=(len(seen.target.workers), self._rung(seen.running)),
        )

    @property
    def _mean(self) -> float:
        """Events a second so far: σ is of the whole run. By the mean of its steps, all choices of a plan are alike."""
        return self._seen_events / max(1e-9, self._seen_s)

    @property
    def _in_work(self) -> float:
        """Steps' worth of events that wait at any rate: those that come while a batch is in work."""
        return (self._job.trigger_s or 0.0) / self._horizon.step_s

    @property
    def _per_step(self) -> float:
        kind = self._job.kinds[0]
        per_hour = self._job.price.per_hour if kind.per_hour is None else kind.per_hour
        return per_hour * self._horizon.step_s / 3600.0

    def _serves(self, rung: int, workers: int) -> float:
        """Events in a step."""
        model, trigger_s = self._job.capacity, self._job.trigger_s and max(BATCH_S, self._job.trigger_s)
        if not workers:
            return 0.0
        if isinstance(model, AlternateCapacity):
            rate = model.sustainable_at(model.cost_of(self._rungs[rung]), workers, trigger_s)
        else:
            rate = model.sustainable(workers, trigger_s)
        return rate * self._tracked.ratio * self._horizon.step_s

    def _worth(self, serves: Floats, mean: float, per_step: float) -> float:
        """A worker's price in units of value: σ is the value that the cheapest alternates lose, to what they save."""
        best, least = (mean / max(1e-9, float(serves[rung, 1])) for rung in (0, -1))
        lost = self._values[0] - self._values[-1]
        if self._sigma:
            return self._sigma * per_step * self._horizon.period_s / self._horizon.step_s
        return lost / (best - least) if lost > 0 and best > least else 1.0 / max(1e-9, best)

    def _here(self, seen: Observation) -> Floats:
        """Workers that there can be in each step: those asked for as they come, new ones a start after now."""
        told, start_s = self._horizon, self._start_s
        ends = (np.arange(told.steps) + 1) * told.step_s
        running = len(
            {worker.name for worker in seen.running.workers} & {worker.name for worker in seen.target.workers}
        )
        coming = sorted(max(0.0, since_s + start_s - seen.time_s) for since_s in seen.pending.values())
        known = np.array([running + sum(at_s < end for at_s in coming) for end in ends], dtype=np.float64)
        return np.where(
            ends - told.step_s >= start_s - 1e-6, float(self._job.limits.workers_max), np.maximum(known, 1.0)
        )

    @property
    def _start_s(self) -> float:
        """No longer than is looked ahead: whoever comes later is none of this plan's."""
        return min(self._starts.expected_s, (self._horizon.steps - 1) * self._horizon.step_s)

    def _target(self, seen: Observation, plan: Stages, age_s: float) -> Allocation:
        """Workers of all steps that are due within a start, and the alternates of this step."""
        step_s, last = self._horizon.step_s, len(plan.workers) - 1
        now = min(last, int(age_s / step_s + 1e-6))
        until = min(last, math.floor((age_s + self._start_s + self._job.tick_s) / step_s + 1e-6))
        workers = self._job.limits.clamp(max(plan.workers[now : until + 1]))
        target = seen.target.resized(workers)
        wanted = self._rungs[plan.implementations[now]]
        return target if dict(target.alternate) == dict(wanted) else replace(target, alternate=wanted)

    def _rung(self, running: Allocation) -> int:
        wanted = {**self._rungs[0], **running.alternate}
        return next((place for place, rung in enumerate(self._rungs) if rung == wanted), 0)

    def _reason(self, target: Allocation, plan: Stages, why: str) -> str:
        path = "-".join(map(str, plan.workers))
        degraded = sorted(
            f"{name} by {kind}" for name, kind in target.alternate.items() if kind != self._rungs[0][name]
        )
        cheaper = f", degraded: {', '.join(degraded)}" if degraded else ""
        poor = "" if plan.is_feasible else "; no plan keeps the throughput: this one leaves least"
        return f"{why or 'as planned'}: workers {path} in steps of {self._horizon.step_s:g} s{cheaper}{poor}"

    def _signals(self, target: Allocation) -> dict[str, float]:
        ahead = sum(sum(each) / len(each) for each in self._ahead.rates(self._horizon.steps).values())
        value = self._values[self._rung(target)]
        return {"value": value, "rate ahead": ahead, "capacity ratio": self._tracked.ratio, "start": self._start_s}
