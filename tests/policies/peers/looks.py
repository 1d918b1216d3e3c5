"""Observations made by hand, for policies that look at a few numbers of them."""

from __future__ import annotations

from dataclasses import replace

from penstock.core.allocation import Allocation, Knob
from penstock.core.job import Job
from penstock.core.loop import Policy
from penstock.core.observation import Batch, Observation, WorkerTable
from penstock.policies.registry import Named
from penstock.sim.scenario import Scenario


def job(batches: bool = False, at_start: int = 1) -> Job:
    """1 to 64 workers of 10 events a second each."""
    plain = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=at_start).job()
    return replace(plain, trigger_s=10.0, knobs=plain.knobs | {Knob.BATCH_SIZE}) if batches else plain


class Shown:
    """A policy that is shown interval after interval; what it asks for is what it sees asked for next."""

    def __init__(self, name: str, workers: int, batches: bool = False, span_s: float = 60.0) -> None:
        self.policy: Policy = Named.parse(name).build(job(batches, workers))
        self.target = Allocation.of(workers)
        self.running = self.target
        self.span_s, self.time_s = span_s, 0.0
        self.arrived = self.processed = 0.0
        self.numbers = 0

    def see(
        self,
        cpu: float | tuple[float, ...] = 0.5,
        rate: float = 0.0,
        done: float | None = None,
        backlog: float = 0.0,
        batch: tuple[float, float] | None = None,
        age_s: float = 0.0,
        comes: bool = True,
    ) -> int:
        """How many workers are wanted after one more interval; `batch` is its rows and seconds."""
        self.time_s += self.span_s
        self.arrived += rate * self.span_s
        self.processed += (rate if done is None else done) * self.span_s
        last = None
        if batch is not None:
            self.numbers += age_s < self.span_s
            last = Batch(batch[0], 10.0, batch[1], 0.0, age_s, self.numbers)
        names = tuple(worker.name for worker in self.running.workers)
        seen = Observation(
            self.time_s, self.span_s, self.arrived, self.processed, 0.0, 0.0, rate, backlog, 0.0, 0.0,
            self.running, self.target, WorkerTable(names, {"cpu": cpu}), batch=last,
        )  # fmt: skip
        self.target = self.policy.decide(seen).target
        if comes:
            self.running = self.target
        return len(self.target.workers)
