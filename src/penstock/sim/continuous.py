"""Events served as they come, first come, first served."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.core.dataflow import Dataflow
from penstock.core.job import CapacityModel
from penstock.sim.engine import Segment, Served
from penstock.sim.one_queue import OneQueue


class Continuous(OneQueue):
    """A stream without batches: what the workers can do is done at once."""

    def __init__(self, capacity: CapacityModel, flow: Dataflow, unit_s: float = 1.0) -> None:
        super().__init__(flow, capacity, None, unit_s, flow.served_s)
        self._rate = 0.0

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        self._rate = rate = sum(arriving.values())
        fifo, capacity = self.fifo, self.note(segment)
        if fifo.waiting == 0 and rate <= capacity:
            fifo.pass_through(rate * (segment.end_s - segment.begin_s), self.service_s)
        else:
            self._drain(segment, rate, capacity)
        if rate and self.service_s > self.unit_s:
            fifo.late_between(segment.begin_s, segment.end_s)
        self.worked = fifo.processed

    def _drain(self, segment: Segment, rate: float, capacity: float) -> None:
        """Serve at full capacity until the queue is empty, then as events come."""
        fifo, begin_s, end_s = self.fifo, segment.begin_s, segment.end_s
        empty_s = begin_s + fifo.waiting / (capacity - rate) if capacity > rate else math.inf
        full_until_s = min(empty_s, end_s)
        fifo.arrive(begin_s, full_until_s, rate * (full_until_s - begin_s))
        served = fifo.waiting if empty_s <= end_s else capacity * (end_s - begin_s)
        fifo.serve(served, begin_s, full_until_s, self.service_s)
        if full_until_s < end_s:
            fifo.pass_through(rate * (end_s - full_until_s), self.service_s)

    def take(self, now_s: float) -> Served:
        oldest_s = self.fifo.oldest_s()
        if oldest_s is None:
            return self.served(now_s, self.service_s if self._rate else 0.0)
        return self.served(now_s, now_s - oldest_s + self.service_s)
