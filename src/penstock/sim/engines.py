"""Two ways in which a job serves events: as they come, or in micro-batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.job import CapacityModel
from penstock.core.observation import Batch
from penstock.sim.fifo import Fifo
from penstock.sim.fleet import Segment
from penstock.sim.specs import BatchSpec


class Continuous:
    """Events are served as they come, first come, first served."""

    trigger_s: float | None = None
    batch: Batch | None = None

    def __init__(self, capacity: CapacityModel, service_s: float, unit_s: float = 1.0) -> None:
        self._capacity = capacity
        self._service_s = service_s
        self.fifo = Fifo(unit_s)
        self._rate = 0.0

    @property
    def worked(self) -> float:
        """Events' worth of work done."""
        return self.fifo.processed

    def advance(self, segments: Sequence[Segment], rate: float) -> None:
        self._rate = rate
        for segment in segments:
            span_s = segment.end_s - segment.begin_s
            capacity = self._capacity.capacity(segment.workers) if segment.workers else 0.0
            if self.fifo.waiting == 0 and rate <= capacity:
                self.fifo.pass_through(rate * span_s, self._service_s)
            else:
                self._drain(segment, rate, capacity)

    def _drain(self, segment: Segment, rate: float, capacity: float) -> None:
        """Serve at full capacity until the queue is empty, then as events come."""
        fifo, begin_s, end_s = self.fifo, segment.begin_s, segment.end_s
        empty_s = begin_s + fifo.waiting / (capacity - rate) if capacity > rate else math.inf
        full_until_s = min(empty_s, end_s)
        fifo.arrive(begin_s, full_until_s, rate * (full_until_s - begin_s))
        served = fifo.waiting if empty_s <= end_s else capacity * (end_s - begin_s)
        fifo.serve(served, begin_s, full_until_s, self._service_s)
        if full_until_s < end_s:
            fifo.pass_through(rate * (end_s - full_until_s), self._service_s)

    def latency_s(self, now_s: float, workers: float) -> float:  # noqa: ARG002  the shape of both engines
        oldest_s = self.fifo.oldest_s()
        if oldest_s is None:
            return self._service_s if self._rate else 0.0
        return now_s - oldest_s + self._service_s


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
    """Workers with their first task, each counted with its speed; and below, when the last of them will be done."""
    fresh_until_s: float = 0.0


class MicroBatches:
    """Spark's rules: triggers align to the clock, an overrun starts the next batch at once, no rows mean no batch."""

    def __init__(self, capacity: CapacityModel, spec: BatchSpec, unit_s: float = 1.0, seed: int = 0) -> None:
        self._capacity = capacity
        self._spec = spec
        self._rng = np.random.default_rng([seed, 3])
        self.trigger_s: float | None = spec.trigger_s
        self.fifo = Fifo(unit_s)
        self._running: _Running | None = None
        self._next_s = spec.offset_s
        self._arrived_until_s = 0.0
        self._last: tuple[float, float, float, float] | None = None  # rows, execution, fixed part, end
        self._now_s = 0.0
        self._joined = 0.0
        self.worked = 0.0

    @property
    def batch(self) -> Batch | None:
        if self._last is None:
            return None
        rows, execution_s, fixed_s, end_s = self._last
        return Batch(rows, self._spec.trigger_s, execution_s, fixed_s, self._now_s - end_s)

    def advance(self, segments: Sequence[Segment], rate: float) -> None:
        for segment in segments:
            now_s = segment.begin_s
            while now_s < segment.end_s:
                if self._running is None:
                    now_s = self._wait(now_s, segment, rate)
                else:
                    now_s = self._work(self._running, now_s, segment, rate)
            self._arrive_until(segment.end_s, rate)
            self._now_s = segment.end_s

    def _wait(self, now_s: float, segment: Segment, rate: float) -> float:
        start_s = max(now_s, self._next_s)
        if start_s >= segment.end_s:
            return segment.end_s
        self._arrive_until(start_s, rate)
        waiting = self.fifo.waiting
        rows = min(waiting, self._spec.rows_max) if self._spec.rows_max else waiting
        if rows > 0 and segment.workers > 0:
            self._running = self._begun(rows, start_s, segment)
        else:
            self._next_s = self._after(start_s)
        return start_s

    def _begun(self, rows: float, start_s: float, segment: Segment) -> _Running:
        slow = math.exp(self._spec.spread * float(self._rng.standard_normal())) if self._spec.spread else 1.0
        settled = max(0.0, segment.workers - (segment.joined - self._joined))
        return _Running(rows, start_s, settled, self._capacity.fixed_s(segment.workers) * slow, rows, slow)

    def _work(self, batch: _Running, now_s: float, segment: Segment, rate: float) -> float:
        if batch.fresh or segment.joined > self._joined:
            self._deal(batch, now_s, segment)
        end_s = min(segment.end_s, batch.fresh_until_s) if batch.fresh else segment.end_s
        # While the job pauses nobody works, drained or not.
        stays = self._spec.drains and segment.workers > 0
        workers = batch.workers if stays else min(batch.workers, segment.workers)
        speed = self._capacity.capacity(workers) / batch.slow if workers else 0.0
        if batch.fresh and segment.workers:
            share = min(1.0, batch.fresh / segment.workers)
            self.worked += share * self._capacity.capacity(segment.workers) * (end_s - now_s)
        if workers:
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
        self._finish(batch, now_s + takes_s, rate)
        return now_s + takes_s

    def _deal(self, batch: _Running, now_s: float, segment: Segment) -> None:
        """A task for each new worker, while there are some; those that have done their first one join the others."""
        came = segment.joined - self._joined
        if came > 0 and self._has_tasks(batch):
            batch.fresh += came
            batch.fresh_until_s = now_s + self._spec.first_s * batch.slow
            batch.rows_left -= min(came * batch.rows / self._spec.tasks, batch.rows_left) if self._spec.tasks else 0.0
            self._joined = segment.joined
        if batch.fresh and now_s >= batch.fresh_until_s:
            batch.workers += batch.fresh
            batch.fresh = 0.0

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

    def _finish(self, batch: _Running, now_s: float, rate: float) -> None:
        self._arrive_until(now_s, rate)
        self.fifo.serve(batch.rows, now_s, now_s)
        self._last = (batch.rows, now_s - batch.begun_s, self._capacity.fixed_s(batch.workers), now_s)
        self._next_s = max(now_s, self._after(batch.begun_s))
        self._running = None

    def _after(self, time_s: float) -> float:
        """The next tick of the trigger's clock, strictly later."""
        trigger_s, offset_s = self._spec.trigger_s, self._spec.offset_s
        return (math.floor((time_s - offset_s) / trigger_s + 1e-9) + 1) * trigger_s + offset_s

    def _arrive_until(self, time_s: float, rate: float) -> None:
        self.fifo.arrive(self._arrived_until_s, time_s, rate * (time_s - self._arrived_until_s))
        self._arrived_until_s = max(self._arrived_until_s, time_s)

    def latency_s(self, now_s: float, workers: float) -> float:
        """The oldest event's age when its batch will have ended, if nothing changes."""
        oldest_s = self.fifo.oldest_s()
        if oldest_s is None:
            return 0.0
        if not self._spec.foresees:
            return now_s - oldest_s
        speed = self._capacity.capacity(workers)
        if self._running is not None:
            batch = self._running
            ends_s = now_s + batch.fixed_left_s
            ends_s += batch.rows_left * batch.slow / speed if speed else 0.0
            ends_s = max(ends_s, batch.fresh_until_s)
        else:
            rows = min(self.fifo.waiting, self._spec.rows_max or math.inf)
            fixed_s = self._capacity.fixed_s(workers)
            ends_s = max(now_s, self._next_s) + fixed_s + (rows / speed if speed else 0.0)
        return ends_s - oldest_s
