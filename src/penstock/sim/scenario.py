"""A frozen description of a world to replay: the load, the workers, the job, what good means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.bounds import BATCHES_MOST, between
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.job import CapacityModel, Job, Oracle
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import linear
from penstock.sim.continuous import Continuous
from penstock.sim.counted import Counted
from penstock.sim.engine import Engine
from penstock.sim.events import Events, single_file
from penstock.sim.fleet import Fleet
from penstock.sim.microbatches import MicroBatches
from penstock.sim.placed import Placed
from penstock.sim.specs import BatchSpec, EventSpec, NoiseSpec, PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.trial import QueueTrial
from penstock.sim.variability import Speeds
from penstock.sim.workloads import Constant, Load, make_load


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a simulated plant needs. Two plants made of one scenario behave alike, to the last digit."""

    name: str
    load: Load
    dataflow: Dataflow
    capacity: CapacityModel
    limits: Limits
    believed: CapacityModel | None = None
    """What policies are told of the capacity; without it, the truth."""
    objective: Objective = Objective(latency_s=120.0)
    price: Price = Price()
    worker: WorkerSpec = WorkerSpec()
    """The kind of worker that the capacity counts, and that the job begins with."""
    kinds: tuple[WorkerSpec, ...] = ()
    """Other kinds that may be rented."""
    noise: NoiseSpec = NoiseSpec()
    pause: PauseSpec = PauseSpec()
    batch: BatchSpec | None = None
    """Micro-batches; without it events are served as they come."""
    placed: PlacedSpec | None = None
    """Operators that are placed on workers, each with a queue of its own; without it all workers serve all of them."""
    events: EventSpec | None = None
    """Every event by itself; the load then counts them."""
    speeds: Speeds | None = None
    """How fast each worker is at a time; without it, as the kinds say."""
    workers_at_start: int | None = None
    """Without it: what the first interval needs."""
    seed: int = 0
    assumed: dict[str, str] = field(default_factory=dict, compare=False)
    """What nobody gave and was derived: said in every output."""

    def __post_init__(self) -> None:
        if not len(self.load.arrivals):
            raise BadInput(f"{self.name} has no intervals: there is nothing to replay")
        if self.batch is not None:
            least_s = len(self.load.arrivals) * self.tick_s / BATCHES_MOST
            between(f"batch.trigger_s, for at most {BATCHES_MOST:,} batches,", self.batch.trigger_s, least_s)
        if self.placed is not None and not self.dataflow.demand_s:
            raise BadInput("[placed] needs operators with a cost_s above 0: workers could do endlessly many events")
        if self.placed is not None and self.placed.counts and self.pause != PauseSpec():
            raise BadInput("[pause] has no meaning where placed.counts is set: moves cost nothing there")
        self._need_one_engine()
        names = [kind.name for kind in self.workers]
        if len(set(names)) < len(names):
            raise BadInput(f"kinds of workers need a name of their own each, not {', '.join(names)}")
        if self.load.by_source:
            self._check_sources()
        if self.workers_at_start is not None:
            low, high = self.limits.workers_min, self.limits.workers_max
            between("workers_at_start", self.workers_at_start, low, high)

    def _need_one_engine(self) -> None:
        if self.batch is not None and self.placed is not None:
            raise BadInput("a scenario has [batch] or [placed], not both: what is placed serves as events come")
        if self.events is not None:
            if self.batch is not None or self.placed is not None:
                raise BadInput("a scenario of single events has neither [batch] nor [placed]")
            single_file(self.dataflow)

    def _check_sources(self) -> None:
        given, sources = self.load.by_source, self.dataflow.sources
        if set(given) != set(sources):
            raise BadInput(f"loads are given of {', '.join(given)}; the sources are {', '.join(sources)}")
        if self.placed is None and len(sources) > 1:
            # One queue counts all events alike: an operator after an uneven mix showed 252,000 of its 306,000.
            raise BadInput("a load of its own for each source needs [placed]: elsewhere sources share one queue evenly")

    @classmethod
    def constant(cls, rate: float, capacity_per_worker: float, workers_at_start: int | None = None) -> Scenario:
        """An hour of a constant rate, for a first try."""
        load = make_load((Constant(rate),), 3600.0, 60.0, seed=0)
        flow = Dataflow((Operator("job", 1.0 / capacity_per_worker),))
        limits = Limits(1, 64)
        return cls("constant", load, flow, linear(capacity_per_worker), limits, workers_at_start=workers_at_start)

    @property
    def workers(self) -> tuple[WorkerSpec, ...]:
        """All kinds of workers, that which the capacity counts first."""
        return (self.worker, *self.kinds)

    @property
    def tick_s(self) -> float:
        return self.load.tick_s

    @property
    def trigger_s(self) -> float | None:
        return self.batch.trigger_s if self.batch else None

    @property
    def first_workers(self) -> int:
        if self.workers_at_start is not None:
            return self.workers_at_start
        first_rate = float(self.load.arrivals[0]) / self.tick_s
        return self._job(1).workers_for(first_rate)

    def job(self) -> Job:
        """What a policy is told."""
        return self._job(self.first_workers)

    def engine(self) -> Engine:
        """How the job serves, fresh."""
        # With the bound as the unit of the response times, late events are counted exactly.
        unit_s = self.objective.latency_s or 1.0
        if self.batch is not None:
            return MicroBatches(self.capacity, self.dataflow, self.batch, unit_s, self.seed)
        if self.events is not None:
            return Events(self.dataflow, self.events, unit_s, self.seed)
        if self.placed is not None and self.placed.counts:
            return Counted(self.dataflow, self.workers, self.placed)
        if self.placed is not None:
            return Placed(self.dataflow, self.workers, self.placed, self.pause, unit_s)
        return Continuous(self.capacity, self.dataflow, unit_s)

    def _oracle(self) -> Oracle:
        worker = self.worker
        # A warm-up at half speed delays as much work as a start that takes half of it longer.
        late_s = worker.start_range_s[1] + worker.warm_s * (1 - worker.warm_speed) + self.pause.reconfigure_s
        start_s = (worker.start_range_s[0], late_s)
        by_source = {name: counts.tolist() for name, counts in self.load.by_source.items()}
        speed = None if self.speeds is None else self.speeds.speed
        # What varies by a trace may come to a stop: the bound's schedule then counts on nothing.
        least = 1 - worker.speed_spread if self.speeds is None else 0.0
        told = Oracle(self.load.arrivals.tolist(), self.capacity, start_s, least, by_source, speed)
        if self.events is None and self.placed is None:
            told = replace(told, trial=self._trial)
        if self.batch is None:
            return told
        # Where batches are unequal some take no time at all; where tasks are dealt out, new workers serve meanwhile.
        varies = self.batch.spread > 0 or self.batch.tasks > 0
        fixed_s = 0.0 if varies else min(map(self.capacity.fixed_s, range(1, self.limits.workers_max + 1)))
        return replace(told, fixed_s=fixed_s, drains=self.batch.drains)

    def fleet(self, rng: np.random.Generator) -> Fleet:
        """The workers that the job begins with, fresh."""
        # Where operators are placed, those that move pause, and not the job with every worker that comes or goes.
        pause = self.pause if self.placed is None else PauseSpec()
        fleet = Fleet(self.workers, pause, self.dataflow.state_mb, rng, self.speeds)
        fleet.begin(self.first_workers)
        return fleet

    def _trial(self) -> QueueTrial:
        engine = self.engine()
        assert isinstance(engine, (Continuous, MicroBatches))
        # Drawn as in a replay: the same schedule meets the same workers.
        fleet = self.fleet(np.random.default_rng(self.seed).spawn(2)[0])
        return QueueTrial((self.load.arrivals.tolist(), self.tick_s), fleet, engine)

    def _job(self, workers_at_start: int) -> Job:
        return Job(
            name=self.name,
            dataflow=self.dataflow,
            capacity=self.believed or self.capacity,
            limits=self.limits,
            tick_s=self.tick_s,
            kinds=tuple(kind.kind() for kind in self.workers),
            objective=self.objective,
            price=self.price,
            trigger_s=self.trigger_s,
            workers_at_start=workers_at_start,
            oracle=self._oracle(),
            knobs=frozenset({Knob.WORKERS}) | self.engine().knobs,
        )
