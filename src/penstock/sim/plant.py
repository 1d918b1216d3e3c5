"""A plant that is computed: a dataflow on workers, as a fluid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.observation import Observation, OperatorStats
from penstock.sim.fleet import Fleet, Segment
from penstock.sim.gauges import Gauges
from penstock.sim.scenario import Scenario


class SimulatedPlant:
    """Workers share all operators evenly, as Spark's executors share a query's tasks; events wait at the source.

    >>> plant = SimulatedPlant(Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=1))
    >>> next(plant.ticks())
    >>> seen = plant.observe()
    >>> seen.arrived, seen.processed, seen.backlog, seen.workers["w1"].cpu
    (1800.0, 1200.0, 600.0, 1.0)
    """

    knobs = frozenset({Knob.WORKERS})

    def __init__(self, scenario: Scenario) -> None:
        self._flow = flow = scenario.dataflow
        self._load = scenario.load
        fleet_rng, noise_rng = np.random.default_rng(scenario.seed).spawn(2)
        self._fleet = Fleet(scenario.worker, scenario.pause, flow.state_mb, fleet_rng)
        self._fleet.begin(scenario.first_workers)
        self._capacity = scenario.capacity
        self._engine = scenario.engine()
        self._gauges = Gauges(scenario, noise_rng)
        self._clock_s = 0.0
        self._seen: Observation | None = None
        self._known = (-1.0, 0.0, 0.0)
        self._results = sum(flow.visits[sink.name] * sink.selectivity for sink in flow.sinks)
        self._paths = tuple(sink.name for sink in flow.sinks)

    def ticks(self) -> Iterator[None]:
        """The simulator's own clock: each turn is one interval later."""
        load = self._load
        for time_s, arrivals in zip(load.times_s.tolist(), load.arrivals.tolist(), strict=True):
            self._advance(time_s, arrivals)
            yield

    def observe(self) -> Observation | None:
        return self._seen

    def apply(self, target: Allocation) -> None:
        if target is not self._fleet.target:
            self._fleet.resize(target, self._clock_s)

    def _advance(self, time_s: float, arrivals: float) -> None:
        span_s, engine, fleet = self._load.tick_s, self._engine, self._fleet
        begin_s, self._clock_s = self._clock_s, self._clock_s + span_s
        fleet.shown_later_s = time_s - self._clock_s
        segments = fleet.advance(begin_s, self._clock_s)
        worked, processed = engine.worked, engine.fifo.processed
        engine.advance(segments, arrivals / span_s)
        could, sustained = self._could(segments)
        load = (engine.worked - worked) / could if could else 0.0
        throughput = (engine.fifo.processed - processed) / span_s
        self._seen = self._observation(time_s, arrivals / span_s, throughput, (load, sustained / span_s))

    def _could(self, segments: Sequence[Segment]) -> tuple[float, float]:
        """Events that the workers could have done within the interval: in one go, and in batches."""
        could = sustained = 0.0
        for segment in segments:
            if segment.workers != self._known[0]:
                rate = self._capacity.capacity(segment.workers)
                self._known = (
                    segment.workers,
                    rate,
                    self._capacity.sustainable(segment.workers, self._engine.trigger_s),
                )
            could += self._known[1] * (segment.end_s - segment.begin_s)
            sustained += self._known[2] * (segment.end_s - segment.begin_s)
        return could, sustained

    def _observation(self, time_s: float, rate: float, throughput: float, flows: tuple[float, float]) -> Observation:
        load, capacity = flows
        fleet, engine, fifo = self._fleet, self._engine, self._engine.fifo
        latency_s = engine.latency_s(self._clock_s, sum(fleet.speeds))
        return Observation(
            time_s=time_s,
            span_s=self._load.tick_s,
            arrived=fifo.arrived,
            processed=fifo.processed,
            delivered=fifo.processed * self._results,
            deliverable=fifo.arrived * self._results,
            input_rate=self._gauges.rate(rate),
            backlog=fifo.arrived - fifo.processed,
            latency_s=latency_s,
            capacity=capacity,
            running=fleet.running,
            target=fleet.target,
            workers=self._gauges.workers(fleet, load, throughput),
            operators=self._operators(rate, throughput, latency_s),
            paths=dict.fromkeys(self._paths, fifo.take_responses()),
            batch=engine.batch,
        )

    def _operators(self, rate: float, throughput: float, latency_s: float) -> dict[str, OperatorStats]:
        visits, waiting = self._flow.visits, self._engine.fifo.waiting
        return {
            operator.name: OperatorStats(
                input_rate=round((throughput if operator.after else rate) * visits[operator.name], 3),
                output_rate=round(throughput * visits[operator.name] * operator.selectivity, 3),
                cores=round(throughput * visits[operator.name] * operator.cost_s, 4),
                memory_mb=operator.state_mb,
                backlog=0.0 if operator.after else round(waiting * visits[operator.name], 3),
                latency_s=operator.cost_s if operator.after else latency_s,
                state_mb=operator.state_mb,
            )
            for operator in self._flow.operators
        }
