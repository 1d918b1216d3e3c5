"""Worlds whose truth is known, and their journals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.journal import JournalWriter
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import Capacity, Fixed, linear
from penstock.models.throughput_curves import Scalability
from penstock.policies.guards import safety
from penstock.policies.registry import Named
from penstock.runs.compare import header_of
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, WorkerSpec
from penstock.sim.workloads import Jitter, Pyramid, Shape, Square, make_load

PYRAMID: tuple[Shape, ...] = (Pyramid(2600.0, 600.0, 150.0, low=200.0), Jitter(0.05, 30.0))
SQUARE: tuple[Shape, ...] = (Square(400.0, 2600.0, 300.0), Jitter(0.05, 30.0))
SATURATING = Scalability(900.0, 0.06)


@dataclass(frozen=True)
class World:
    """An hour of a load on 1 to 6 workers that start in 10 to 20 s; a batch pays 1.5 s before its first row."""

    shapes: tuple[Shape, ...] = PYRAMID
    capacity: Capacity = linear(800.0, fixed_s=1.5)
    worker: WorkerSpec = WorkerSpec(start_s=(10.0, 20.0))
    batch: BatchSpec = BatchSpec(10.0)
    noise: NoiseSpec = NoiseSpec(cpu=0.03)
    policy: str = "filtered"
    name: str = "orders"
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a live controller tells of itself."""

    def journal(self, path: Path, seed: int, is_live: bool = False) -> Path:
        scenario = Scenario(
            name=self.name,
            load=make_load(self.shapes, 3600.0, 5.0, seed),
            dataflow=Dataflow((Operator("job", 0.001),)),
            capacity=self.capacity,
            limits=Limits(1, 6),
            objective=Objective(25.0),
            price=Price(0.6),
            worker=self.worker,
            noise=self.noise,
            batch=self.batch,
            workers_at_start=2,
            seed=seed,
        )
        named = Named.parse(self.policy)
        header = header_of(scenario, named, safety(scenario.job()) if is_live and "rules" not in self.facts else {})
        build = named.build_safe if is_live else named.build
        told = replace(header, seed=None, facts={**header.facts, **self.facts}) if is_live else header
        with JournalWriter.at(path, told) as journal:
            for step in replay(scenario, build(scenario.job())):
                journal.write(step)
        return path


WORLDS = {
    "linear": World(),
    "saturating": World(SQUARE, Capacity(SATURATING, Fixed(1.5)), policy="mst:spare=0.2"),
    "warming": World(
        SQUARE, Capacity(SATURATING, Fixed(1.5)), WorkerSpec(start_s=(10.0, 20.0), warm_s=60.0, warm_speed=0.4),
        policy="mst:spare=0.2",
    ),
}  # fmt: skip
