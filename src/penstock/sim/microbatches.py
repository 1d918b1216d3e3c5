"""Events served in micro-batches, by Spark's rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.allocation import Allocation, BatchRule, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.job import CapacityModel
from penstock.core.observation import Batch, BatchInWork
from penstock.sim.engine import Segment, Served
from penstock.sim.one_queue import OneQueue
from penstock.sim.specs import BatchSpec

# First tasks with too few workers left end ever later, by less and less: the last step of that is no step.
MOMENT_S = 1e-9


@dataclass(slots=True)
class _Running:
    """A batch in work. A worker that leaves or fails stops counting at once, and the others do its tasks, or (`drains`)
    when the batch ends. One that joins takes one of its tasks, cold as it is: the batch waits for that, and then the
    worker counts like the others."""

    rows: float
    begun_s: float
    workers: float
    fixed_left_s: float
    rows_left: float
    slow: float = 1.0
    """How much longer than others it takes."""
    fresh: float = 0.0
    """Workers with their first task, each counted with its speed."""
    fresh_until_s: float = 0.0
    """When the last of the first tasks will be done."""
    crew: frozenset[str] = frozenset()
    """Who works on it, where workers drain."""


class MicroBatches(OneQueue):
    """Spark's rules: triggers align to the clock, an overrun starts the next batch at once, no rows mean no batch."""

    __slots__ = (
        "_alternate",
        "_arrived_until_s",
        "_drained_s",
        "_ended",
        "_fixed",
        "_joined",
        "_last",
        "_limit",
        "_next_s",
        "_rng",
        "_rule",
        "_running",
        "_spec",
        "_speed",
    )

    def __init__(
        self, capacity: CapacityModel, flow: Dataflow, spec: BatchSpec, unit_s: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__(flow, capacity, spec.trigger_s, unit_s)
        self._spec = spec
        self._rng = np.random.default_rng([seed, 3])
        self._running: _Running | None = None
        self._next_s = spec.offset_s
        self._arrived_until_s = 0.0
        self._last: tuple[float, float, float, float] | None = None  # rows, execution, fixed part, end
        self._joined = 0.0
        self._speed = 0.0
        self._drained_s: dict[str, float] = {}
        self._ended = 0
        self._fixed = (-1.0, 0.0)  # the workers that were asked for last, and the fixed time with them
        self._rule: BatchRule | None = None
        self._limit: float | None = None
        self._alternate: Mapping[str, str] = {}
        self.knobs |= {Knob.BATCH_SIZE}

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        rate, now_s = sum(arriving.values()), segment.begin_s
        self.note(segment)
        self._speed = sum(segment.speeds.values())
        while now_s < segment.end_s:
            if self._running is None:
                now_s = self._wait(now_s, segment, rate)
            else:
                batch, since_s = self._running, now_s
                now_s = self._work(batch, now_s, segment)
                if self._spec.drains:
                    self._drain(batch.crew.difference(segment.speeds), now_s - since_s)
        self._arrive_until(segment.end_s, rate)

    def take(self, now_s: float) -> Served:
        drained_s, self._drained_s = self._drained_s, {}
        served = self.served(now_s, self._latency_s(now_s), self._ended_batch(now_s), self._batch_in_work())
        return replace(served, drained_s=drained_s) if drained_s else served

    def _ended_batch(self, now_s: float) -> Batch | None:
        if self._last is None:
            return None
        rows, execution_s, fixed_s, end_s = self._last
        return Batch(rows, self._spec.trigger_s, execution_s, fixed_s, now_s - end_s, self._ended)

    def _batch_in_work(self) -> BatchInWork | None:
        batch = self._running
        return None if batch is None else BatchInWork(batch.begun_s, batch.rows, batch.workers, self._limit)

    def _wait(self, now_s: float, segment: Segment, rate: float) -> float:
        start_s = max(now_s, self._next_s)
        if start_s >= segment.end_s:
            return segment.end_s
        self._arrive_until(start_s, rate)
        rows = min(self.fifo.waiting, self._rows_max(start_s, segment))
        if rows > 0 and segment.workers > 0:
            self._running = self._begun(rows, start_s, segment)
        else:
            self._next_s = self._after(start_s)
        return start_s

    def _rows_max(self, now_s: float, segment: Segment) -> float:
        """The row limit of a batch that begins now."""
        oldest_s = self.fifo.oldest_s() if self._rule is not None else None
        if self._rule is None or oldest_s is None:
            self._limit = self._spec.rows_max or None
        else:
            self._limit = self._rule.rows(len(segment.speeds), now_s - oldest_s)
        return self._limit or math.inf

    def apply(self, target: Allocation) -> None:
        """Batch sizes and alternates are those of the next batch."""
        self._rule, self._alternate = target.batch, target.alternate

    def _begun(self, rows: float, start_s: float, segment: Segment) -> _Running:
        if Knob.ALTERNATE in self.knobs:
            self.switch(self._alternate)
        slow = math.exp(self._spec.spread * float(self._rng.standard_normal())) if self._spec.spread else 1.0
        settled = max(0.0, segment.workers - (segment.joined - self._joined))
        crew = frozenset(segment.speeds) if self._spec.drains else frozenset()
        return _Running(rows, start_s, settled, self._fixed_of(segment.workers) * slow, rows, slow, crew=crew)

    def _drain(self, leaving: Iterable[str], span_s: float) -> None:
        for name in leaving:
            self._drained_s[name] = self._drained_s.get(name, 0.0) + span_s

    def _fixed_of(self, workers: float) -> float:
        if workers != self._fixed[0]:
            self._fixed = (workers, self.capacity.fixed_s(workers))
        return self._fixed[1]

    def _work(self, batch: _Running, now_s: float, segment: Segment) -> float:
        if batch.fresh or segment.joined > self._joined:
            self._deal(batch, now_s, segment)
        end_s = min(segment.end_s, batch.fresh_until_s) if batch.fresh else segment.end_s
        # While the job pauses nobody works, drained or not.
        stays = self._spec.drains and segment.workers > 0
        # A task of one that has left is somebody's: no more work is done than there are workers.
        workers = batch.workers if stays else min(batch.workers, max(0.0, segment.workers - batch.fresh))
        # Most batches run with the workers of the segment, whose capacity is known.
        known, capacity, _ = self._known
        speed = (capacity if workers == known else self.capacity.capacity(workers) if workers else 0.0) / batch.slow
        if batch.fresh:
            self._first_tasks(batch, end_s - now_s, segment)
        if workers and batch.fixed_left_s > 0:
            now_s += self._led(batch, end_s - now_s, speed)
        takes_s = batch.rows_left / speed if speed else math.inf
        if batch.fixed_left_s > 0 or now_s + takes_s > end_s:
            done = speed * (end_s - now_s)
            batch.rows_left -= done
            self.worked += done * batch.slow
            return end_s
        self.worked += batch.rows_left * batch.slow
        batch.rows_left = 0.0
        if batch.fresh:
            return end_s
        self._finish(batch, now_s + takes_s)
        return now_s + takes_s

    def _deal(self, batch: _Running, now_s: float, segment: Segment) -> None:
        """A task for each new worker, while there are some; those that have done their first one join the others."""
        came = segment.joined - self._joined
        if came > 0 and self._has_tasks(batch):
            rows = min(came * batch.rows / self._spec.tasks, batch.rows_left) if self._spec.tasks else 0.0
            batch.fresh += came
            batch.fresh_until_s = now_s + self._first_s(rows * batch.fresh / came, batch, segment)
            batch.rows_left -= rows
            batch.crew |= frozenset(segment.speeds) if self._spec.drains else frozenset()
            self._joined = segment.joined
        if batch.fresh and now_s >= batch.fresh_until_s - MOMENT_S:
            batch.workers += batch.fresh
            batch.fresh = 0.0

    def _first_tasks(self, batch: _Running, span_s: float, segment: Segment) -> None:
        """New workers at their first tasks, which stand still where fewer workers are left than such tasks."""
        if segment.workers:
            share = min(1.0, batch.fresh / segment.workers)
            self.worked += share * self.capacity.capacity(segment.workers) * span_s
        if segment.workers < batch.fresh and not (self._spec.drains and segment.workers):
            batch.fresh_until_s += span_s * (1 - segment.workers / batch.fresh)

    def _first_s(self, rows: float, batch: _Running, segment: Segment) -> float:
        """How long first tasks with so many rows take: as long as was given, but no less than their rows cost."""
        crew = segment.workers or sum(segment.speeds.values())  # while the job pauses, those that will go on
        speed = self.capacity.capacity(crew) * min(1.0, batch.fresh / crew) if rows and crew else 0.0
        return batch.slow * max(self._spec.first_s, rows / speed if speed else 0.0)

    def _has_tasks(self, batch: _Running) -> bool:
        """Is one left that nobody works on? Those in work are half done on average."""
        tasks, left = self._spec.tasks, batch.rows_left / batch.rows
        return left * tasks - batch.workers / 2 >= 1 if tasks else left > 0

    def _led(self, batch: _Running, left_s: float, speed: float) -> float:
        """Seconds spent on what comes before the first row."""
        fixed_s = min(batch.fixed_left_s, left_s)
        batch.fixed_left_s -= fixed_s
        self.worked += self._spec.busy * fixed_s * speed * batch.slow
        return fixed_s

    def _finish(self, batch: _Running, now_s: float) -> None:
        # What has come since it began is added when the next one does: one stretch a batch, where there were two.
        self.fifo.serve(batch.rows, now_s, now_s)
        self._last = (batch.rows, now_s - batch.begun_s, self._fixed_of(batch.workers), now_s)
        self._ended += 1
        self._next_s = max(now_s, self._after(batch.begun_s))
        self._running = None

    def _after(self, time_s: float) -> float:
        """The next tick of the trigger's clock, strictly later."""
        trigger_s, offset_s = self._spec.trigger_s, self._spec.offset_s
        return (math.floor((time_s - offset_s) / trigger_s + 1e-9) + 1) * trigger_s + offset_s

    def _arrive_until(self, time_s: float, rate: float) -> None:
        since_s = self._arrived_until_s
        if time_s > since_s:
            self.fifo.arrive(since_s, time_s, rate * (time_s - since_s))
            self._arrived_until_s = time_s

    def _latency_s(self, now_s: float) -> float:
        """The oldest event's age when its batch will have ended, if nothing changes."""
        oldest_s = self.fifo.oldest_s()
        if oldest_s is None:
            return 0.0
        if not self._spec.latency_includes_service:
            return now_s - oldest_s
        workers = self._speed
        speed = self.capacity.capacity(workers) if workers else 0.0
        if self._running is not None:
            batch = self._running
            ends_s = now_s + batch.fixed_left_s
            ends_s += batch.rows_left * batch.slow / speed if speed else 0.0
            ends_s = max(ends_s, batch.fresh_until_s)
        else:
            rows = min(self.fifo.waiting, self._limit or math.inf)
            fixed_s = self._fixed_of(workers)
            ends_s = max(now_s, self._next_s) + fixed_s + (rows / speed if speed else 0.0)
        return ends_s - oldest_s
