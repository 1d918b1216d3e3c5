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
    """A batch in work. A worker that joins counts from the next batch on, because the tasks are dealt out;
    one that leaves or fails stops counting at once, and the others do its tasks, or (`drains`) when the batch ends."""

    rows: float
    begun_s: float
    workers: float
    fixed_left_s: float
    rows_left: float
    first_left_s: float = 0.0
    fresh: float = 0.0
    """Share of its workers for which it is the first."""
    slow: float = 1.0
    """How much longer than others it takes."""


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
        self._joins = 0
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
        spec, workers = self._spec, segment.workers
        joined, self._joins = segment.joins - self._joins, segment.joins
        slow = math.exp(spec.spread * float(self._rng.standard_normal())) if spec.spread else 1.0
        batch = _Running(rows, start_s, workers, self._capacity.fixed_s(workers) * slow, rows, slow=slow)
        if joined and spec.first_s:
            batch.first_left_s, batch.fresh = spec.first_s, min(1.0, joined / workers)
        return batch

    def _work(self, batch: _Running, now_s: float, segment: Segment, rate: float) -> float:
        # While the job pauses nobody works, drained or not.
        stays = self._spec.drains and segment.workers > 0
        workers = batch.workers if stays else min(batch.workers, segment.workers)
        speed = self._capacity.capacity(workers) / batch.slow if workers else 0.0
        if workers:
            now_s += self._led(batch, segment.end_s - now_s, speed)
        takes_s = batch.rows_left / speed if speed else math.inf
        if batch.fixed_left_s > 0 or batch.first_left_s > 0 or now_s + takes_s > segment.end_s:
            done = speed * (segment.end_s - now_s)
            batch.rows_left -= done
            self.worked += done * batch.slow
            return segment.end_s
        self.worked += batch.rows_left * batch.slow
        now_s += takes_s
        self._finish(batch, now_s, rate)
        return now_s

    def _led(self, batch: _Running, left_s: float, speed: float) -> float:
        """Seconds spent on what comes before the first row; new workers are busy with themselves, the others wait."""
        first_s = min(batch.first_left_s, left_s)
        fixed_s = min(batch.fixed_left_s, left_s - first_s)
        batch.first_left_s -= first_s
        batch.fixed_left_s -= fixed_s
        self.worked += (batch.fresh * first_s + self._spec.busy * fixed_s) * speed * batch.slow
        return first_s + fixed_s

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
            ends_s = now_s + batch.first_left_s + batch.fixed_left_s
            ends_s += batch.rows_left * batch.slow / speed if speed else 0.0
        else:
            rows = min(self.fifo.waiting, self._spec.rows_max or math.inf)
            fixed_s = self._capacity.fixed_s(workers)
            ends_s = max(now_s, self._next_s) + fixed_s + (rows / speed if speed else 0.0)
        return ends_s - oldest_s
