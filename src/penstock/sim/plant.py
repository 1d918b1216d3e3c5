"""A plant that is computed: a clock, a fleet of workers, an engine that serves, and gauges that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput, PlantError
from penstock.core.job import CapacityModel
from penstock.core.observation import BatchInWork, Observation
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.sim.engine import Served
from penstock.sim.gauges import Gauges
from penstock.sim.scenario import Scenario


class SimulatedPlant:
    """Events arrive, workers come and go, an engine serves; what a policy sees of it is what the gauges show.

    >>> plant = SimulatedPlant(Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=1))
    >>> next(plant.ticks())
    >>> seen = plant.observe()
    >>> seen.arrived, seen.processed, seen.backlog, seen.workers["w1"].cpu
    (1800.0, 1200.0, 600.0, 1.0)
    """

    def __init__(self, scenario: Scenario) -> None:
        self._load = scenario.load
        fleet_rng, noise_rng = np.random.default_rng(scenario.seed).spawn(2)
        self._fleet = scenario.fleet(fleet_rng)
        self._engine = scenario.engine()
        self._engine.apply(self._fleet.target)
        self.knobs = frozenset({Knob.WORKERS}) | self._engine.knobs
        self._gauges = Gauges(scenario, noise_rng)
        self._told: CapacityModel = scenario.believed or scenario.capacity
        if Knob.ALTERNATE in self.knobs and Knob.PLACEMENT not in self.knobs:
            self._told = AlternateCapacity(self._told, scenario.dataflow)
        self._trigger_s = scenario.trigger_s
        self._sources = scenario.dataflow.sources
        # The model counts workers of the first kind.
        self._powers = {kind.name: kind.power / scenario.worker.power for kind in scenario.workers}
        self._clock_s = 0.0
        self._seen: Observation | None = None
        self.could: float | None = None
        """Events per second that the workers could really have served in the last interval."""
        self._capacity = (-1.0, 0.0)

    def ticks(self) -> Iterator[None]:
        """The simulator's own clock: each turn is one interval later."""
        load, sources = self._load, self._sources
        rates = (load.arrivals / load.tick_s).tolist()
        columns = [(load.by_source[name] / load.tick_s).tolist() for name in sources] if load.by_source else []
        for number, (time_s, rate) in enumerate(zip(load.times_s.tolist(), rates, strict=True)):
            if columns:
                each = {name: column[number] for name, column in zip(sources, columns, strict=True)}
            else:
                each = dict.fromkeys(sources, rate / len(sources))
            self._advance(time_s, rate, each)
            yield

    def observe(self) -> Observation | None:
        return self._seen

    def apply(self, target: Allocation) -> None:
        if target is self._fleet.target:
            return
        try:
            self._fleet.check(target)
            self._engine.apply(target)
        except BadInput as error:
            raise PlantError(str(error)) from None
        self._fleet.resize(target, self._clock_s)
        if isinstance(self._told, AlternateCapacity):
            self._told.follow(target.alternate)
            self._capacity = (-1.0, 0.0)

    def _advance(self, time_s: float, rate: float, arriving: Mapping[str, float]) -> None:
        """One interval further, while so many events a second arrive, in all and at each source."""
        fleet = self._fleet
        begin_s, self._clock_s = self._clock_s, self._clock_s + self._load.tick_s
        fleet.shown_later_s = time_s - self._clock_s
        for segment in fleet.advance(begin_s, self._clock_s):
            self._engine.advance(segment, arriving)
        served = self._engine.take(self._clock_s)
        self.could = served.could
        self._seen = self._observation(time_s, rate, served)

    def _observation(self, time_s: float, rate: float, served: Served) -> Observation:
        fleet = self._fleet
        return Observation(
            time_s=time_s,
            span_s=self._load.tick_s,
            arrived=served.arrived,
            processed=served.processed,
            delivered=served.delivered,
            deliverable=served.deliverable,
            input_rate=self._gauges.rate(rate),
            backlog=served.backlog,
            latency_s=served.latency_s,
            capacity=self._believed(self._units(fleet.running)),
            running=fleet.running,
            target=fleet.target,
            workers=self._gauges.workers(fleet, served),
            operators=served.operators,
            paths=served.paths,
            batch=served.batch,
            in_work=self._on_the_calendar(served.in_work),
            pending=fleet.pending,
            drained_s=served.drained_s,
            late_s=served.late_s,
            arrivals=served.arrivals,
        )

    def _units(self, running: Allocation) -> float:
        """The workers that run, in workers of the first kind, each as fast as its kind says."""
        workers = running.workers
        return float(len(workers)) if len(self._powers) == 1 else sum(self._powers[each.kind] for each in workers)

    def _believed(self, workers: float) -> float:
        """What the model that policies are told says of the workers that run; live, nobody knows more."""
        if workers != self._capacity[0]:
            self._capacity = (workers, self._told.sustainable(workers, self._trigger_s) if workers else 0.0)
        return self._capacity[1]

    def _on_the_calendar(self, batch: BatchInWork | None) -> BatchInWork | None:
        if batch is None or not self._fleet.shown_later_s:
            return batch
        return BatchInWork(batch.begun_s + self._fleet.shown_later_s, batch.rows, batch.workers, batch.rows_max)
