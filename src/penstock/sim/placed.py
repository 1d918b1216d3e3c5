"""Operators placed on workers: a fluid with a queue at each operator (papers 2 and 3).

Events keep the time at which they arrived at a source, so that the age of what waits anywhere is an end-to-end latency.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput, unknown
from penstock.sim.engine import Segment, Served
from penstock.sim.fifo import Chunk
from penstock.sim.sharing import Share, rates_of, shares_of
from penstock.sim.specs import PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.station import Station


class Placed:
    """Each operator has a queue and instances on named workers; a move pauses it while its state is carried."""

    knobs = frozenset({Knob.PLACEMENT, Knob.ALTERNATE})

    def __init__(
        self, flow: Dataflow, kinds: Sequence[WorkerSpec], spec: PlacedSpec, pause: PauseSpec, unit_s: float = 1.0
    ) -> None:
        self._flow, self._kinds, self._pause = flow, {kind.name: kind for kind in kinds}, pause
        self._share = Share(kinds[0].power, spec.own_core)
        self._sinks = frozenset(sink.name for sink in flow.sinks)
        # An event's service counts where it leaves the job; before that it is on its way.
        service = {name: flow.served_s if name in self._sinks else 0.0 for name in flow.order}
        self._stations = {each.name: Station(each, unit_s, service[each.name]) for each in flow.operators}
        self._busy: dict[str, float] = {}
        self._up: dict[str, float] = {}
        self._last_s = self._could = self._rate = 0.0
        self._arrived = self._processed = self._delivered = self._deliverable = 0.0
        self._recent: deque[tuple[float, float, float]] = deque()  # arrivals not served everywhere: begin, end, events

    def apply(self, target: Allocation) -> None:
        self._flow = placed_flow(self._flow, target)
        known = self._kinds
        self._share.cores = {each.name: known[each.kind].cores for each in target.workers if each.kind in known}
        for name, station in self._stations.items():
            station.wanted = target.instances.get(name)
            if station.places is not None:
                station.places = tuple(place for place in station.places if place in self._share.cores)

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        for station in self._stations.values():
            station.settle(segment, self._pause)
        ends = {station.paused_until_s for station in self._stations.values()}
        begin_s = segment.begin_s
        for end_s in (*sorted(end for end in ends if begin_s < end < segment.end_s), segment.end_s):
            self._stretch(Segment(begin_s, end_s, segment.workers, speeds=segment.speeds), arriving)
            begin_s = end_s

    def _stretch(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        """A time in which every operator serves at one rate."""
        flow, span_s = self._flow, segment.end_s - segment.begin_s
        nominal = flow.rates(arriving)
        shares = shares_of(self._stations, flow, arriving, segment, self._share)
        rates = rates_of(shares, flow, segment.workers > 0)
        self._count(nominal, rates, arriving, segment)
        outputs: dict[str, list[Chunk]] = {}
        for name in flow.order:
            station = self._stations[name]
            came = self._inputs(name, outputs, nominal, segment)
            rate = 0.0 if segment.begin_s < station.paused_until_s else rates[name]
            outputs[name] = station.advance(segment, came, rate)
            worked = sum(chunk[4] for chunk in outputs[name]) * flow.costs_s[name]
            total = sum(shares[name].values()) or 1.0
            station.note(worked, total * span_s)
            for worker, cpu in shares[name].items():
                self._busy[worker] = self._busy.get(worker, 0.0) + worked * cpu / total

    def _inputs(
        self, name: str, outputs: Mapping[str, list[Chunk]], nominal: Mapping[str, float], segment: Segment
    ) -> list[Chunk]:
        """What reaches an operator: arrivals at a source, what others put out elsewhere."""
        fed_by = self._stations[name].operator.after
        if not fed_by:
            events = nominal[name] * (segment.end_s - segment.begin_s)
            return [(segment.begin_s, segment.end_s, segment.begin_s, segment.end_s, events)] if events else []
        sent = self._flow.selectivities
        return [(*chunk[:4], chunk[4] * sent[each]) for each in fed_by for chunk in outputs[each] if sent[each]]

    def _count(
        self, nominal: Mapping[str, float], rates: Mapping[str, float], arriving: Mapping[str, float], segment: Segment
    ) -> None:
        flow, span_s = self._flow, segment.end_s - segment.begin_s
        self._rate = total = sum(arriving.values())
        self._arrived += total * span_s
        if total:
            self._recent.append((segment.begin_s, segment.end_s, total * span_s))
        self._deliverable += sum(nominal[sink.name] * flow.selectivities[sink.name] for sink in flow.sinks) * span_s
        needs, one = (nominal, total) if total else (flow.visits, 1.0)
        self._could += span_s * min((rates[name] * one / need for name, need in needs.items() if need), default=0.0)
        for worker, speed in segment.speeds.items():
            self._up[worker] = self._up.get(worker, 0.0) + speed * self._share.power * span_s

    def take(self, now_s: float) -> Served:
        flow, stations = self._flow, self._stations
        span_s, self._last_s = now_s - self._last_s, now_s
        oldest_s = min((s for each in stations.values() if (s := each.fifo.oldest_s()) is not None), default=None)
        backlog, before = self._waiting(oldest_s), self._processed
        self._processed = max(before, self._arrived - backlog)
        idle_s = flow.served_s if self._rate else 0.0
        loads = {worker: self._busy.get(worker, 0.0) / up for worker, up in self._up.items() if up}
        paths = {name: stations[name].fifo.take_responses() for name in self._sinks}
        self._delivered += sum(paths[name].count * flow.selectivities[name] for name in paths)
        served = Served(
            arrived=self._arrived,
            processed=self._processed,
            delivered=self._delivered,
            deliverable=self._deliverable,
            backlog=self._arrived - self._processed,
            latency_s=idle_s if oldest_s is None else now_s - oldest_s + flow.served_s,
            late_s=max(station.late_s(now_s) for station in stations.values()),
            throughput=(self._processed - before) / span_s,
            load=sum(self._busy.values()) / (sum(self._up.values()) or 1.0),
            could=self._could / span_s,
            operators={name: station.stats(flow, now_s, span_s) for name, station in stations.items()},
            paths=paths,
            loads=loads,
        )
        self._busy, self._up, self._could = {}, {}, 0.0
        return served

    def _waiting(self, oldest_s: float | None) -> float:
        """Events that arrived since the oldest one that is not served everywhere; what is older is done with."""
        recent = self._recent
        if oldest_s is None:
            recent.clear()
            return 0.0
        while recent and recent[0][1] <= oldest_s:
            recent.popleft()
        if recent and recent[0][0] < oldest_s:
            begin_s, end_s, events = recent[0]
            recent[0] = (oldest_s, end_s, events * (end_s - oldest_s) / (end_s - begin_s))
        return sum(events for _, _, events in recent)


def placed_flow(flow: Dataflow, target: Allocation) -> Dataflow:
    """The dataflow as a target switches it; BadInput for a placement that does not fit it."""
    switched = flow.switched(target.alternate)
    for name in target.instances:
        if name not in flow.costs_s:
            raise unknown("operator in a placement", name, flow.costs_s)
    if target.instances and (homeless := [name for name in flow.costs_s if not target.instances.get(name)]):
        raise BadInput(f"a placement names a worker for every operator: {', '.join(homeless)} has none")
    return switched
