"""Operators placed on cores of their own, messages counted (paper 3): `models/flow`, one stretch after the other."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.observation import OperatorStats
from penstock.models.flow import Conditions, Deployed, step
from penstock.models.flow_result import NOTHING, Flowed
from penstock.sim.engine import Segment, Served
from penstock.sim.placed import placed_flow
from penstock.sim.specs import PlacedSpec, WorkerSpec


class Counted:
    """What waits at each operator is a number: no event has an age of its own.

    The latency is that of a source event if events were served in the order in which they came. Until a first
    placement all operators share all cores evenly.
    """

    knobs = frozenset({Knob.PLACEMENT, Knob.ALTERNATE})

    def __init__(self, flow: Dataflow, kinds: Sequence[WorkerSpec], spec: PlacedSpec) -> None:
        self._flow, self._kinds, self._shed = flow, {kind.name: kind for kind in kinds}, spec.shed
        self._power = kinds[0].power
        self._cores: dict[str, float] = {}
        self._part: dict[str, float] = {}
        self._deployed: Deployed | None = None
        self._waiting = NOTHING
        self._arrived = self._processed = self._delivered = self._deliverable = 0.0
        self._rate = self._could = self._last_s = 0.0
        self._came, self._served, self._work = (dict.fromkeys(flow.order, 0.0) for _ in range(3))
        self._before: tuple[dict[str, float], dict[str, float]] = (dict(self._came), dict(self._served))
        self._busy: dict[str, float] = {}
        self._up: dict[str, float] = {}
        self._recent: deque[tuple[float, float]] = deque([(0.0, 0.0)])  # arrivals up to each time not yet served

    def apply(self, target: Allocation) -> None:
        self._flow = placed_flow(self._flow, target)
        known = self._kinds
        self._cores = {each.name: known[each.kind].cores for each in target.workers if each.kind in known}
        self._deployed = Deployed(self._flow, target.instances) if target.instances else None
        instances = Counter(place for where in target.instances.values() for place in where)
        # Where there are more instances than cores, each has an equal part of all.
        self._part = {name: min(1.0, cores / max(1, instances[name])) for name, cores in self._cores.items()}

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        span_s, is_up = segment.end_s - segment.begin_s, segment.workers > 0
        speeds = {name: speed * self._power / self._cores.get(name, 1.0) for name, speed in segment.speeds.items()}
        if self._deployed is not None:
            speeds = {name: speed * self._part.get(name, 1.0) for name, speed in speeds.items()}
        deployed = self._deployed
        if deployed is None:
            # All cores of a worker, shared by all operators.
            part = 1.0 / len(self._flow.order)
            speeds = {name: speed * self._cores.get(name, 1.0) * part for name, speed in speeds.items()}
            deployed = Deployed(self._flow, dict.fromkeys(self._flow.order, tuple(speeds)))
        done = step(deployed, Conditions(span_s, arriving, speeds if is_up else {}), self._waiting, self._shed)
        self._waiting = done.waiting
        self._count(done, sum(arriving.values()), segment.end_s)
        self._note_work(deployed, done, speeds)

    def _count(self, done: Flowed, rate: float, end_s: float) -> None:
        self._rate = rate
        self._arrived += rate * done.span_s
        self._recent.append((end_s, self._arrived))
        self._delivered += done.delivered
        self._deliverable += done.deliverable
        needs, one = (done.nominal, rate * done.span_s) if rate else (self._flow.visits, 1.0)
        self._could += min((done.could[name] * one / need for name, need in needs.items() if need), default=0.0)
        for name, count in done.served.items():
            self._came[name] += done.came[name]
            self._served[name] += count

    def _note_work(self, deployed: Deployed, done: Flowed, speeds: Mapping[str, float]) -> None:
        costs_s, busy = deployed.flow.costs_s, self._busy
        for name, places in deployed.instances.items():
            worked, power = done.served[name] * costs_s[name], deployed.power(name, speeds)
            self._work[name] += worked
            for place in places if power else ():
                busy[place] = busy.get(place, 0.0) + worked * speeds.get(place, 0.0) / power
        for worker, speed in speeds.items():
            cores = self._cores.get(worker, 1.0) / self._part.get(worker, 1.0)
            cores = cores if self._deployed is not None else len(self._flow.order)
            self._up[worker] = self._up.get(worker, 0.0) + speed * cores * done.span_s

    def take(self, now_s: float) -> Served:
        span_s, self._last_s = now_s - self._last_s, now_s
        before = self._processed
        self._processed = max(before, self._arrived - self._backlog())
        backlog = self._arrived - self._processed
        loads = {worker: self._busy.get(worker, 0.0) / up for worker, up in self._up.items() if up}
        served = Served(
            arrived=self._arrived,
            processed=self._processed,
            delivered=self._delivered,
            deliverable=self._deliverable,
            backlog=backlog,
            latency_s=now_s - self._oldest_s(now_s) + (self._flow.served_s if self._rate or backlog else 0.0),
            late_s=None,
            throughput=(self._processed - before) / span_s,
            load=sum(self._busy.values()) / (sum(self._up.values()) or 1.0),
            could=self._could / span_s,
            operators={name: self._stats(name, span_s) for name in self._flow.order},
            paths={},
            loads=loads,
        )
        self._busy, self._up, self._could = {}, {}, 0.0
        self._before, self._work = (dict(self._came), dict(self._served)), dict.fromkeys(self._work, 0.0)
        return served

    def _backlog(self) -> float:
        """Source events that what waits stands for; what was shed waits no more."""
        visits = self._flow.visits
        events = sum(count / visits[name] for name, count in self._waiting.backlog.items() if visits[name])
        return min(self._arrived, events)

    def _oldest_s(self, now_s: float) -> float:
        """When the first event that is not served came, if events are served in their order."""
        recent, done = self._recent, self._processed
        if done >= self._arrived * (1 - 1e-12):
            recent.clear()
            recent.append((now_s, self._arrived))
            return now_s
        while len(recent) > 2 and recent[1][1] <= done:
            recent.popleft()
        (begin_s, first), (end_s, last) = recent[0], recent[1]
        return begin_s + (end_s - begin_s) * max(0.0, done - first) / (last - first) if last > first else begin_s

    def _stats(self, name: str, span_s: float) -> OperatorStats:
        came, served = self._before
        processed = self._served[name] - served[name]
        return OperatorStats(
            input_rate=round((self._came[name] - came[name]) / span_s, 3),
            output_rate=round(processed * self._flow.selectivities[name] / span_s, 3),
            cores=round(self._work[name] / span_s, 4),
            backlog=round(self._waiting.backlog.get(name, 0.0), 3),
            latency_s=None,
            arrived=self._came[name],
            processed=self._served[name],
        )
