"""A Spark application that is emulated, seen through the live plant's own queue and slots: live journals in a second.

Executors start in 12 to 18 s. A batch is planned in 0.7 s; its 40 tasks are dealt out one by one to whoever is free,
also to an executor that has just come, whose first one takes 6 s longer. A task takes 20 ms as such; like batches
differ by 8 %. Ticks come a little late, triggers by the clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.job import Job
from penstock.core.journal import Header, JournalWriter
from penstock.core.kinds import WorkerKind
from penstock.core.loop import control
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation, WorkerTable
from penstock.live.query_progress import Report
from penstock.live.queue import QueryQueue
from penstock.live.slots import Slots
from penstock.models.learned import Learned
from penstock.models.throughput_curves import Scalability
from penstock.policies.registry import Named

TRUTH = Scalability(62.0, 0.05)
PLAN_S, TASKS, TASK_S, FIRST_S = 0.7, 40, 0.02, 6.0
BUSY, IDLE = 0.92, 0.03
LEVELS = (0.05, 0.25, 0.5, 0.75, 1.0, 0.75, 0.5, 0.25, 0.05, 0.05)
PEAK, HELD_S = 160.0, 60.0
ORIGIN_S, MOMENT_S = 1000.37, 0.05


@dataclass
class Work:
    """A batch in work."""

    begun_s: float
    rows: float
    unequal: float
    left: int = TASKS
    free_s: dict[str, float] = field(default_factory=dict)
    """When each executor has done its task."""


class EmulatedSpark:
    """Moves in moments of 50 ms; five executors are up at first, as on a standalone cluster."""

    knobs = frozenset({Knob.WORKERS})

    def __init__(self, job: Job, seed: int) -> None:
        self._job, self._rng = job, np.random.default_rng(seed)
        self._now_s = self._last_s = ORIGIN_S
        self._queue = QueryQueue(ORIGIN_S, job.objective.latency_s or 1.0, job.tick_s)
        self._slots = Slots(Allocation.of(5))
        self._since_s = {str(number): ORIGIN_S for number in range(5)}
        self._cpu_s = dict.fromkeys(self._since_s, 0.0)
        self._used_s: dict[str, float] = {}
        self._starting_s: list[float] = []
        self._warm = set(self._since_s)
        self._arrived = self._taken = self._next_s = 0.0
        self._work: Work | None = None
        self._reports: list[Report] = []

    def ticks(self, seconds: float) -> Iterator[None]:
        for number in range(1, round(seconds / self._job.tick_s) + 1):
            late_s = abs(float(self._rng.normal(0.0, 0.05)))
            while self._now_s < ORIGIN_S + number * self._job.tick_s + late_s:
                self._move()
            yield

    def observe(self) -> Observation | None:
        now_s, queue = self._now_s, self._queue
        queue.advance(now_s, self._reports, lambda _: self._arrived - queue.processed)
        self._reports = []
        self._slots.settle(sorted(self._since_s, key=int))
        if queue.last is None:
            return None
        span_s, self._last_s = now_s - self._last_s, now_s
        return Observation(
            time_s=now_s - ORIGIN_S,
            span_s=span_s,
            arrived=queue.arrived,
            processed=queue.processed,
            delivered=queue.processed,
            deliverable=queue.arrived,
            input_rate=queue.input_rate,
            backlog=queue.backlog,
            latency_s=queue.latency_s(now_s),
            capacity=0.0,
            running=self._slots.running,
            target=self._slots.target,
            workers=self._workers(span_s),
            operators={"images": queue.stats(now_s)},
            batch=queue.batch(now_s, self._job.trigger_s or 0.0),
        )

    def apply(self, target: Allocation) -> None:
        if target.workers != self._slots.target.workers:
            self._slots.retarget(target)
            coming = len(self._since_s) - len(self._slots.to_end()) + len(self._starting_s)
            missing = len(target.workers) - coming
            self._starting_s += (self._now_s + self._rng.uniform(12.0, 18.0, max(0, missing))).tolist()
            del self._starting_s[len(self._starting_s) + min(0, missing) :]

    def _workers(self, span_s: float) -> WorkerTable:
        names = tuple(worker.name for worker in self._slots.running.workers)
        held = [self._slots.executor(name) or "" for name in names]
        used_s = [self._cpu_s[each] - self._used_s.get(each, self._cpu_s[each]) for each in held]
        noise = 0.03 * self._rng.standard_normal(len(held))
        self._used_s = dict(self._cpu_s)
        cpu = np.clip(np.array(used_s) / span_s + noise, 0.0, 1.0).tolist()
        return WorkerTable(names, {"cpu": cpu, "paid_since_s": [self._since_s[each] - ORIGIN_S for each in held]})

    def _move(self) -> None:
        self._now_s += MOMENT_S
        level = LEVELS[min(int((self._now_s - ORIGIN_S) // HELD_S), len(LEVELS) - 1)]
        self._arrived += float(self._rng.poisson(PEAK * level * MOMENT_S))
        for ready_s in [ready_s for ready_s in self._starting_s if ready_s <= self._now_s]:
            self._starting_s.remove(ready_s)
            name = str(len(self._cpu_s))
            self._since_s[name], self._cpu_s[name] = self._now_s, 0.0
        if self._work is None:
            self._rest()
        if self._work is not None:
            self._deal(self._work)
        for name in self._since_s:
            is_busy = self._work is not None and self._work.free_s.get(name, 0.0) > self._now_s
            self._cpu_s[name] += MOMENT_S * (BUSY if is_busy else IDLE)
        if self._work is not None and not self._work.left and max(self._work.free_s.values()) <= self._now_s:
            self._end(self._work)

    def _rest(self) -> None:
        for name in self._slots.to_end():
            self._since_s.pop(name, None)
        if self._now_s < self._next_s or self._arrived <= self._taken or not self._since_s:
            return
        unequal = math.exp(0.08 * float(self._rng.standard_normal()))
        self._work = Work(self._now_s, self._arrived - self._taken, unequal)

    def _deal(self, work: Work) -> None:
        """A task to each executor that is free; one that comes to its first task takes its time."""
        count = len(self._since_s)
        task_s = TASK_S + work.rows / TASKS / (TRUTH.rate(count) / count)
        for name, since_s in self._since_s.items():
            free_s = work.free_s.get(name, max(work.begun_s + PLAN_S, since_s))
            while work.left and free_s <= self._now_s:
                cold_s = 0.0 if name in self._warm else FIRST_S * float(self._rng.uniform(0.8, 1.2))
                self._warm.add(name)
                free_s += task_s * work.unequal + cold_s
                work.left, work.free_s[name] = work.left - 1, free_s

    def _end(self, work: Work) -> None:
        assert self._job.trigger_s is not None
        took_s = self._now_s - work.begun_s
        self._reports.append(Report("q", 0, work.begun_s, took_s, PLAN_S, work.rows, None, 0.0, ()))
        self._taken += work.rows
        strikes = math.floor(work.begun_s / self._job.trigger_s + 1e-9) + 1
        self._next_s, self._work = max(self._now_s, strikes * self._job.trigger_s), None


def emulated_journal(path: Path, policy: str, seed: int, bound_s: float) -> Path:
    """Ten minutes of a pyramid load under a live controller's policy."""
    flow, limits, price = Dataflow((Operator("images", 0.0),)), Limits(1, 5), Price()
    objective, kinds = Objective(bound_s), (WorkerKind(cores=0.25),)
    job = Job("images", flow, Learned(), limits, 5.0, kinds, objective, price, trigger_s=5.0)
    header = Header("images", policy, limits, objective, price, 5.0, origin_s=ORIGIN_S, facts={"partitions": TASKS})
    plant = EmulatedSpark(job, seed)
    built = Named.parse(policy).build_safe(job, lambda _: False)
    with JournalWriter.at(path, header) as journal:
        for step in control(plant, built, limits, plant.ticks(HELD_S * len(LEVELS))):
            journal.write(step)
    return path
