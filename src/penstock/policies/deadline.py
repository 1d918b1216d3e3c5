"""The fewest workers with which every event is answered before its deadline."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from penstock.core.allocation import Allocation, BatchRule, Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.models.outlook import Outlook
from penstock.models.tracking import StartTimes, TrackedCapacity

PARTS = ("allowance", "forecast", "margin", "patience", "tracking", "batches")
# Batches of half a minute: what a plan counts on, between those of a job in time and those of a late one.
BATCH_S = 30.0
# An event that has just missed a batch waits for the next: so much of the bound is not the policy's to use.
BATCH_WAIT_S = 15.0
PHI_LEAST = 0.3


class Deadline:
    """Counts deadlines, not loads: an event that arrived at t must be answered by t + φ · bound.

    Workers asked for now serve a start later. So as many are asked for as serve, from then until the next decision's
    workers come, all that is due by then: events that wait are known, those to come are taken on an upper path.
    Some are given up where fewer, from now on, still meet deadlines of two thirds of that.
    """

    source: ClassVar[str] = "Penstock's own"

    def __init__(
        self, job: Job, phi: float = 0.75, kappa: float = 2.5, release: float = 2 / 3, without: str = ""
    ) -> None:
        off = frozenset(filter(None, without.split("+")))
        if off - set(PARTS):
            raise BadInput(f"deadline:without={without}: its parts are {', '.join(PARTS)}, joined by +")
        self._job, self._off, self._phi_most, self._release = job, off, phi, release
        self.needs = frozenset({Knob.WORKERS, Knob.BATCH_SIZE} if self._sizes_batches else {Knob.WORKERS})
        self.memory_s = 86400.0
        bound_s = job.objective.latency_s or 0.0
        self._bound_s = max(0.0, bound_s - (job.dataflow.served_s if job.trigger_s is None else BATCH_WAIT_S))
        self._phi = phi
        self._starts = StartTimes(job.kinds[0].start_s)
        self._tracked = TrackedCapacity()
        self._outlook = Outlook(job.tick_s, self._starts.expected_s + job.tick_s, 0.0 if "margin" in off else kappa)
        self._before: Observation | None = None
        self._clock_s = 0.0
        self._past: deque[tuple[float, float]] = deque([(0.0, 0.0)])

    @property
    def _sizes_batches(self) -> bool:
        return (
            self._job.trigger_s is not None and "batches" not in self._off and self._job.objective.latency_s is not None
        )

    def decide(self, seen: Observation) -> Decision:
        self._note(seen)
        job, asked, upper = self._job, len(seen.target.workers), self._outlook.upper
        within_s = 0.0 if "allowance" in self._off else self._phi * self._bound_s
        start_s = self._starts.expected_s
        needed = self._needed(seen, within_s, start_s) if self._bound_s and seen.backlog is not None else upper
        grow = self._workers(needed)
        kept = (
            self._needed(seen, self._release * within_s, 0.0) if self._bound_s and seen.backlog is not None else upper
        )
        keep = max(grow, self._workers(kept))
        count = job.limits.clamp(grow if grow > asked else min(asked, keep))
        reason = f"due by {start_s + job.tick_s:.0f} s: {needed:.4g}/s, {grow} workers; with fewer from now on {kept:.4g}/s, {keep}"
        signals = {"expected": self._outlook.rate, "upper": upper, "needed": needed, "phi": self._phi}
        signals |= {"capacity ratio": self._tracked.ratio, "start": start_s}
        return Decision(self._target(seen, count), reason, signals)

    def _note(self, seen: Observation) -> None:
        before, self._before = self._before, seen
        self._clock_s += seen.span_s
        self._outlook.note(max(0.0, seen.arrived - (before.arrived if before else 0.0)))
        self._past.append((self._clock_s, seen.arrived))
        while len(self._past) > 2 and self._past[1][0] < self._clock_s - self._bound_s - self._job.tick_s:
            self._past.popleft()
        self._starts.note(seen)
        if "tracking" not in self._off:
            self._tracked.note(seen, self._job.capacity)
        if "patience" not in self._off:
            self._adapt(seen)

    def _adapt(self, seen: Observation) -> None:
        """A bound that is missed takes some of the allowance back; it returns within hours."""
        if self._job.objective.missed(seen, seen.input_rate * seen.span_s):
            self._phi = max(PHI_LEAST, self._phi - 0.05)
        else:
            self._phi = min(self._phi_most, self._phi + 0.05 * seen.span_s / 3600.0)

    def _modelled(self, workers: float) -> float:
        job = self._job
        return job.capacity.sustainable(workers, BATCH_S if job.trigger_s is not None else None) if workers else 0.0

    def _workers(self, rate: float) -> int:
        """The fewest that do so many a second."""
        low, high = max(1, self._job.limits.workers_min), self._job.limits.workers_max
        rate /= self._tracked.ratio
        while low < high:
            middle = (low + high) // 2
            if self._modelled(middle) >= rate * (1 - 1e-12):
                high = middle
            else:
                low = middle + 1
        return low

    def _needed(self, seen: Observation, within_s: float, from_s: float) -> float:
        """Events a second that must be served from some time on, until the next decision's workers come.

        Arrivals are lines between ticks, and so is what a steady crew serves: what is due is most at the ends of lines.
        """
        now_s, tick_s = self._clock_s, self._job.tick_s
        begin_s, end_s = now_s + from_s, now_s + self._starts.expected_s + tick_s
        served = min(self._served(seen, from_s), seen.arrived + self._outlook.rate * from_s)
        most, last = 0.0, (0.0, 0.0)
        for time_s, total in (*self._past, (end_s, seen.arrived + self._outlook.upper * (end_s - now_s))):
            due_s = time_s + within_s
            if due_s >= end_s:
                part = (end_s - within_s - last[0]) / (time_s - last[0])
                total = last[1] + part * (total - last[1])
                due_s = end_s
            if due_s > begin_s - tick_s:
                # What is due before more workers come is not theirs to serve; a moment after is as good as at once.
                most = max(most, (total - served) / max(min(tick_s, 10.0), due_s - begin_s))
            if due_s >= end_s:
                break
            last = (time_s, total)
        return most

    def _served(self, seen: Observation, span_s: float) -> float:
        """Events that will have been served by what runs, and what is on its way, after so long."""
        done, at_s, running = seen.processed + self._in_work(seen), 0.0, len(seen.running.workers)
        start_s = self._starts.expected_s
        coming = sorted(max(0.0, since_s + start_s - seen.time_s) for since_s in seen.pending.values())
        for number, comes_s in enumerate((*coming, span_s)):
            until_s = min(comes_s, span_s)
            done += self._modelled(running + number) * self._tracked.ratio * (until_s - at_s)
            at_s = until_s
        return done

    def _in_work(self, seen: Observation) -> float:
        """What the batch in work has done already."""
        batch = seen.in_work
        if batch is None or not batch.rows:
            return 0.0
        job, workers = self._job, max(1.0, batch.workers)
        rate = job.capacity.capacity(workers) * self._tracked.ratio
        worked_s = seen.time_s - batch.begun_s - job.capacity.fixed_s(workers)
        return min(batch.rows, max(0.0, worked_s * rate))

    def _target(self, seen: Observation, count: int) -> Allocation:
        target = seen.target.resized(count)
        if not self._sizes_batches:
            return target
        capacity, workers = self._job.capacity, max(1, len(seen.running.workers))
        rate = capacity.capacity(workers) * self._tracked.ratio / workers
        rule = BatchRule(self._job.objective.latency_s or 0.0, capacity.fixed_s(workers), rate)
        old = target.batch
        # Numbers that hardly differ are no decision.
        if (
            old
            and abs(old.rows_per_worker_s / rate - 1) < 0.05
            and abs(old.fixed_s - rule.fixed_s) < 0.05 * rule.fixed_s + 0.01
        ):
            return target
        return Allocation(
            target.workers, target.instances, target.cpu_share, target.alternate, rule, target.names_given
        )


_ = math
