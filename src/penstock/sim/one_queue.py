"""What engines share in which events wait at the source alone, and all workers serve all operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.job import CapacityModel
from penstock.core.observation import Batch, BatchInWork, OperatorStats
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.sim.engine import Segment, Served
from penstock.sim.fifo import Fifo


@dataclass(slots=True)
class OneQueue:
    """A dataflow as one queue: counters, what the workers could have done, and the operators' share of it."""

    flow: Dataflow
    capacity: CapacityModel
    trigger_s: float | None
    unit_s: float
    """The bound of the objective: response times are binned by it."""
    service_s: float = 0.0
    """How long an event takes once its turn has come."""
    fifo: Fifo = field(init=False)
    worked: float = 0.0
    """Events' worth of work done."""
    knobs: frozenset[Knob] = frozenset()
    _at_once: float = 0.0
    """Events that the workers could have done since the last time, in one go."""
    _in_batches: float = 0.0
    """Events that the workers could have done since the last time, in batches of one trigger."""
    _known: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    _before: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    _results: float = field(init=False)
    _paths: tuple[str, ...] = field(init=False)
    _stages: tuple[tuple[str, bool, float, float, float, float], ...] = field(init=False)
    """Of each operator: is it a source; its visits and results of an event that arrives; its seconds and megabytes."""

    def __post_init__(self) -> None:
        self.fifo = Fifo(self.unit_s)
        self._results = self.flow.results
        self._paths = tuple(sink.name for sink in self.flow.sinks)
        flow = self.flow
        self._stages = tuple(
            (
                each.name,
                not each.after,
                flow.visits[each.name],
                flow.visits[each.name] * flow.selectivities[each.name],
                flow.costs_s[each.name],
                each.state_mb,
            )
            for each in flow.operators
        )
        if any(len(each.alternates) > 1 for each in self.flow.operators):
            self.capacity, self.knobs = AlternateCapacity(self.capacity, self.flow), self.knobs | {Knob.ALTERNATE}

    def apply(self, target: Allocation) -> None:
        """Take over the alternates; nothing else but the number of workers can be changed."""
        self.switch(target.alternate)

    def switch(self, alternate: Mapping[str, str]) -> None:
        """From now on these implementations serve: workers do more, or less, by the ratio of the costs."""
        if isinstance(self.capacity, AlternateCapacity):
            self.capacity.follow(alternate)
            self._known = (-1.0, 0.0, 0.0)

    def note(self, segment: Segment) -> float:
        """Count what the workers could do in a segment; returns their capacity."""
        workers = segment.workers
        if workers != self._known[0]:
            model = self.capacity
            rates = (model.capacity(workers), model.sustainable(workers, self.trigger_s)) if workers else (0.0, 0.0)
            self._known = (workers, *rates)
        _, capacity, sustainable = self._known
        span_s = segment.end_s - segment.begin_s
        self._at_once += capacity * span_s
        self._in_batches += sustainable * span_s
        return capacity

    def served(
        self, now_s: float, latency_s: float, batch: Batch | None = None, in_work: BatchInWork | None = None
    ) -> Served:
        """What became of the events since the last call."""
        fifo, (last_s, arrived, processed, worked) = self.fifo, self._before
        span_s = now_s - last_s
        rate, throughput = (fifo.arrived - arrived) / span_s, (fifo.processed - processed) / span_s
        load = (self.worked - worked) / self._at_once if self._at_once else 0.0
        could, self._at_once, self._in_batches = self._in_batches / span_s, 0.0, 0.0
        self._before = (now_s, fifo.arrived, fifo.processed, self.worked)
        return Served(
            arrived=fifo.arrived,
            processed=fifo.processed,
            delivered=fifo.processed * self._results,
            deliverable=fifo.arrived * self._results,
            backlog=fifo.arrived - fifo.processed,
            latency_s=latency_s,
            late_s=fifo.take_late_s(now_s, self.service_s),
            throughput=throughput,
            load=load,
            could=could,
            operators=self._operators(rate, throughput, latency_s, batch),
            paths=dict.fromkeys(self._paths, fifo.take_responses()),
            batch=batch,
            in_work=in_work,
        )

    def _operators(
        self, rate: float, throughput: float, latency_s: float, batch: Batch | None
    ) -> Mapping[str, OperatorStats]:
        fifo = self.fifo
        batch = batch if len(self._stages) == 1 else None  # several share their batches: they are the job's
        found = {}
        for name, is_source, visits, out, cost_s, state_mb in self._stages:
            # Events that wait do so at the sources: the others process all that reaches them.
            found[name] = OperatorStats(
                input_rate=round((rate if is_source else throughput) * visits, 3),
                output_rate=round(throughput * out, 3),
                cores=round(throughput * visits * cost_s, 4),
                memory_mb=state_mb,
                backlog=round(fifo.waiting * visits, 3) if is_source else 0.0,
                latency_s=latency_s if is_source else cost_s,
                state_mb=state_mb,
                arrived=(fifo.arrived if is_source else fifo.processed) * visits,
                processed=fifo.processed * visits,
                batch=batch,
            )
        return found
