"""Every event by itself, through queues in a row or a fork of them, each with a share of a core (paper 4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput, unknown
from penstock.core.observation import OperatorStats
from penstock.core.responses import Responses
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.sim.engine import Segment, Served
from penstock.sim.event_station import EventStation, Stream
from penstock.sim.specs import EventSpec


class Events:
    """Each operator is one server; more workers do not make it faster, only its share of a core does.

    An event is processed when all that it led to has left the job. Who waits when a share changes is served at the
    new share from then on, the one in service included.
    """

    knobs = frozenset({Knob.CPU_SHARE})

    def __init__(self, flow: Dataflow, spec: EventSpec, unit_s: float = 1.0, seed: int = 0) -> None:
        single_file(flow)
        self._flow, self._spec, self._unit_s = flow, spec, unit_s
        self._after = {operator.name: operator.after for operator in flow.operators}
        rngs = np.random.default_rng([seed, 2]).spawn(len(flow.order))
        self._stations = {
            name: EventStation(flow.costs_s[name], spec.phases, rng, spec.work_s.get(name))
            for name, rng in zip(flow.order, rngs, strict=True)
        }
        self._who = np.arange(len(spec.times_s), dtype=np.int64)
        self._share = dict.fromkeys(flow.order, 1.0)
        self._sinks = frozenset(sink.name for sink in flow.sinks)
        self._arrived = self._processed = self._delivered = self._before = 0
        self._last_s = self._could = 0.0
        self._might = dict.fromkeys(flow.order, 0.0)
        self._counted = dict.fromkeys(flow.order, (0, 0))

    def apply(self, target: Allocation) -> None:
        for name, share in target.cpu_share.items():
            if name not in self._share:
                raise unknown("operator with a CPU share", name, self._share)
            if not 0 < share <= 1:
                raise BadInput(f"operator '{name}': a CPU share of {share:g}; it must be above 0 and at most 1")
        self._share = {name: float(target.cpu_share.get(name, 1.0)) for name in self._share}

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:  # noqa: ARG002  it has the events
        spec, flow, until_s = self._spec, self._flow, segment.end_s
        first, self._arrived = self._arrived, int(np.searchsorted(spec.times_s, until_s))
        streams: dict[str, Stream] = {}
        speed = sum(segment.speeds.values()) / max(1, len(segment.speeds)) if segment.workers > 0 else 0.0
        for name in flow.order:
            station, inputs = self._stations[name], self._after[name]
            here = slice(first, self._arrived)
            came = streams[inputs[0]] if inputs else (self._who[here], spec.times_s[here])
            done = station.serve(came, self._share[name], until_s, spec.quota_period_s, speed)
            streams[name] = station.sent(done, flow.selectivities[name])
            if name in self._sinks:
                station.note(done, spec.times_s, self._unit_s)
                self._delivered += len(streams[name][0])
        self._note_capacity(segment, speed)

    def _note_capacity(self, segment: Segment, speed: float) -> None:
        span_s, flow = segment.end_s - segment.begin_s, self._flow
        for name, share in self._share.items():
            self._might[name] += share * speed * span_s
        needs = {name: flow.costs_s[name] * flow.visits[name] for name in flow.order}
        self._could += span_s * min((self._share[n] * speed / need for n, need in needs.items() if need), default=0.0)

    def take(self, now_s: float) -> Served:
        flow, times_s, span_s = self._flow, self._spec.times_s, now_s - self._last_s
        before, self._processed = self._processed, self._done()
        paths = {n: Responses(*self._stations[n].take_responses(), self._unit_s) for n in sorted(self._sinks)}
        waits, came = self._processed < self._arrived, self._arrived > self._before
        idle_s = flow.served_s if came else 0.0
        cores = {name: station.take_worked() for name, station in self._stations.items()}
        served = Served(
            arrived=float(self._arrived),
            processed=float(self._processed),
            delivered=float(self._delivered),
            deliverable=self._arrived * flow.results,
            backlog=float(self._arrived - self._processed),
            latency_s=now_s - float(times_s[self._processed]) + flow.served_s if waits else idle_s,
            late_s=None,
            throughput=(self._processed - before) / span_s,
            load=sum(cores.values()) / (sum(self._might.values()) or 1.0),
            could=self._could / span_s,
            operators={name: self._stats(name, now_s, cores[name]) for name in flow.order},
            paths=paths,
            arrivals=self._spacing(),
        )
        self._last_s, self._could, self._before = now_s, 0.0, self._arrived
        self._might = dict.fromkeys(self._might, 0.0)
        return served

    def _done(self) -> int:
        """Events that are served everywhere: queues keep the order, so all before the oldest that waits are."""
        return min((old for each in self._stations.values() if (old := each.oldest) is not None), default=self._arrived)

    def _spacing(self) -> SpacedArrivals:
        """Gaps that ended since the last time; before the very first event there is none."""
        return SpacedArrivals.of_gaps(np.diff(self._spec.times_s[max(0, self._before - 1) : self._arrived]))

    def _stats(self, name: str, now_s: float, worked: float) -> OperatorStats:
        station, (arrived, processed), cost_s = self._stations[name], self._counted[name], self._flow.costs_s[name]
        span_s, oldest = now_s - self._last_s, station.oldest
        self._counted[name] = (station.arrived, station.processed)
        sent = (station.processed - processed) * self._flow.selectivities[name]
        return OperatorStats(
            input_rate=round((station.arrived - arrived) / span_s, 3),
            output_rate=round(sent / span_s, 3),
            cores=round(worked / span_s, 4),
            backlog=float(station.backlog),
            latency_s=cost_s if oldest is None else now_s - float(self._spec.times_s[oldest]) + cost_s,
            arrived=float(station.arrived),
            processed=float(station.processed),
            load=round(worked / self._might[name], 4) if self._might[name] else None,
        )


def single_file(flow: Dataflow) -> None:
    """Refuse what is no tree: events of two streams would have to be merged by their times."""
    joins = [operator.name for operator in flow.operators if len(operator.after) > 1]
    if len(flow.sources) > 1 or joins:
        where = f"'{joins[0]}' reads several" if joins else f"there are {len(flow.sources)} sources"
        raise BadInput(f"single events need one source, and operators that read one other each: {where}")
    if flow.alternate or any(operator.alternates for operator in flow.operators):
        raise BadInput("single events: operators have no alternates there")
