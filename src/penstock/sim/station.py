"""One operator of a placed dataflow: its queue, where it stands, until when it pauses."""

from __future__ import annotations

import math
from itertools import pairwise

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.observation import OperatorStats
from penstock.sim.engine import Segment
from penstock.sim.fifo import Chunk, Fifo
from penstock.sim.specs import PauseSpec


class Station:
    """An operator at work. Its queue knows when events arrived at a source, not when they came here."""

    def __init__(self, operator: Operator, unit_s: float, service_s: float) -> None:
        self.operator, self.fifo = operator, Fifo(unit_s)
        self.wanted: tuple[str, ...] | None = None
        """The workers that its instances should be on; None: on every worker that runs."""
        self.places: tuple[str, ...] | None = None
        """The workers that they are on: the old ones until all new ones run; none, if the old ones were given up."""
        self.paused_until_s = -math.inf
        self._service_s = service_s
        self._worked = self._could = 0.0
        self._before = (0.0, 0.0)

    def settle(self, segment: Segment, pause: PauseSpec) -> None:
        """Move to where it should be, once all workers there run; nothing is served while its state is carried."""
        wanted, had = self.wanted, self.places or ()
        if wanted == self.places or not all(place in segment.speeds for place in wanted or ()):
            return
        fresh = sum(place not in had for place in wanted) / len(wanted) if wanted else 1.0
        move_s = self.operator.state_mb * fresh / pause.move_mb_s if pause.move_mb_s else 0.0
        if fresh:
            self.paused_until_s = segment.begin_s + pause.reconfigure_s + move_s
        self.places = wanted

    def advance(self, segment: Segment, came: list[Chunk], rate: float) -> list[Chunk]:
        """Serve for a while at up to `rate`; returns what goes on."""
        out: list[Chunk] = []
        edges = sorted({segment.begin_s, segment.end_s, *(t for chunk in came for t in chunk[:2])})
        for begin_s, end_s in pairwise(edges):
            self._stretch(_within(came, begin_s, end_s), rate, out)
        return out

    def _stretch(self, came: Chunk, rate: float, out: list[Chunk]) -> None:
        """Serve what waits at full rate until nothing does, then as events come."""
        fifo, (begin_s, end_s, _, _, events) = self.fifo, came
        inflow = events / (end_s - begin_s)
        if math.isinf(rate):
            rate = inflow + fifo.waiting / (end_s - begin_s)
        if not fifo.waiting and inflow <= rate:
            empty_s = begin_s
        else:
            empty_s = begin_s + fifo.waiting / (rate - inflow) if rate > inflow else math.inf
        if empty_s > begin_s:
            first = _part(came, begin_s, min(empty_s, end_s))
            fifo.arrive(*first[2:])
            # A difference of two rates is known to the last digits only: a crumb must not outlive its queue.
            is_empty = empty_s <= end_s + 1e-9
            fifo.serve(fifo.waiting if is_empty else rate * (end_s - begin_s), *first[:2], self._service_s, out)
        if empty_s < end_s and events:
            rest = _part(came, empty_s, end_s)
            fifo.arrive(*rest[2:])
            fifo.serve(fifo.waiting, *rest[:2], self._service_s, out)

    def note(self, worked: float, could: float) -> None:
        """Core-seconds that it used, and might have used."""
        self._worked += worked
        self._could += could

    def late_s(self, now_s: float) -> float:
        """Seconds since the last time in which an event that waits here was older than the bound."""
        return self.fifo.take_late_s(now_s, self._service_s)

    def stats(self, flow: Dataflow, now_s: float, span_s: float) -> OperatorStats:
        """What is seen of it since the last time."""
        fifo, (arrived, processed), name = self.fifo, self._before, self.operator.name
        oldest_s = fifo.oldest_s()
        stats = OperatorStats(
            input_rate=round((fifo.arrived - arrived) / span_s, 3),
            output_rate=round((fifo.processed - processed) * flow.selectivities[name] / span_s, 3),
            cores=round(self._worked / span_s, 4),
            memory_mb=self.operator.state_mb,
            backlog=round(fifo.waiting, 3),
            latency_s=flow.costs_s[name] if oldest_s is None else now_s - oldest_s + flow.costs_s[name],
            state_mb=self.operator.state_mb,
            arrived=fifo.arrived,
            processed=fifo.processed,
            load=round(self._worked / self._could, 4) if self._could else None,
        )
        self._before, self._worked, self._could = (fifo.arrived, fifo.processed), 0.0, 0.0
        return stats


def _within(came: list[Chunk], begin_s: float, end_s: float) -> Chunk:
    """All that passes between two times, as one."""
    parts = [_part(chunk, begin_s, end_s) for chunk in came if chunk[0] < end_s and begin_s < chunk[1]]
    if not parts:
        return (begin_s, end_s, begin_s, end_s, 0.0)
    if len(parts) == 1:
        return parts[0]
    from_s, to_s = min(part[2] for part in parts), max(part[3] for part in parts)
    return (begin_s, end_s, from_s, to_s, sum(part[4] for part in parts))


def _part(chunk: Chunk, begin_s: float, end_s: float) -> Chunk:
    """What of a chunk passes between two times within it."""
    first_s, last_s, from_s, to_s, events = chunk
    if (first_s, last_s) == (begin_s, end_s):
        return chunk
    low, high = (begin_s - first_s) / (last_s - first_s), (end_s - first_s) / (last_s - first_s)
    return (begin_s, end_s, from_s + low * (to_s - from_s), from_s + high * (to_s - from_s), events * (high - low))
