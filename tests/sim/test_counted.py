"""The engine that counts messages (paper 3): the same results as the one that knows ages, on workers that vary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput, PlantError
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.models.capacity import linear
from penstock.sim.derive import Given, World
from penstock.sim.plant import SimulatedPlant
from penstock.sim.recorded_speeds import RecordedSpeeds
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.variability import EC2_CORES, GeneratedSpeeds
from penstock.sim.workloads import Load

ROUGH = (Alternate("exact", 0.4, selectivity=2.0), Alternate("rough", 0.1, selectivity=1.0, value=0.6))
FLOW = Dataflow(
    (
        Operator("parse", 0.1),
        Operator("count", after=("parse",), alternates=ROUGH),
        Operator("store", 0.05, after=("count",)),
    )
)
COUNTED = PlacedSpec(own_core=True, counts=True)
INSTANCES = {"parse": ("w1",), "count": ("w1", "w2"), "store": ("w2",)}


def world(rates: list[float], placed: PlacedSpec = COUNTED) -> Scenario:
    load = Load.of(np.array(rates) * 60.0, 60.0)
    worker = WorkerSpec(cores=2.0)
    return Scenario("w", load, FLOW, linear(1.0), Limits(1, 9), worker=worker, placed=placed, workers_at_start=2)


def seen(scenario: Scenario, **changes: Any) -> list[Observation]:
    plant = SimulatedPlant(scenario)
    plant.apply(replace(Allocation.of(2), **{"instances": INSTANCES, **changes}))
    found = []
    for _ in plant.ticks():
        observed = plant.observe()
        assert observed is not None
        found.append(observed)
    return found


@given(st.lists(st.just(0.0) | st.floats(0.1, 12), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_it_delivers_what_the_engine_with_queues_delivers(rates: list[float]) -> None:
    counted, queues = (seen(world(rates, placed)) for placed in (COUNTED, PlacedSpec(own_core=True)))
    for one, other in zip(counted, queues, strict=True):
        assert one.deliverable == pytest.approx(other.deliverable)
        # Within a tick queues know which message came when; over the tick's end they may differ by what was under way.
        assert one.delivered == pytest.approx(other.delivered, rel=0.02, abs=1e-6)


@pytest.mark.parametrize("placed", [COUNTED, PlacedSpec(own_core=True)])
def test_more_instances_than_cores_share_them(placed: PlacedSpec) -> None:
    # Four on the two cores of one worker: `count` has half a core, 1.25/s, of 10/s.
    [only] = seen(world([10.0], placed), instances={"parse": ("w1", "w1"), "count": ("w1",), "store": ("w1",)})
    # Each message leads to two results; the queue of `store` ends a little later.
    assert only.delivered == pytest.approx(60 * 1.25 * 2, rel=0.05)
    assert only.operators["count"].cores == pytest.approx(0.5)


def test_nothing_is_lost_and_what_waits_ages() -> None:
    # `count` does 2 cores / 0.4 s = 5/s of 10/s; half waits.
    first, second = seen(world([10.0, 10.0]))
    assert (first.arrived, first.processed, first.backlog) == pytest.approx((600.0, 300.0, 300.0))
    assert second.backlog == pytest.approx(600.0)
    # The first of the 600 that wait came after 600 others: at 60 s of 120 s.
    assert second.latency_s == pytest.approx(60.0 + FLOW.served_s)
    assert second.operators["count"].backlog == pytest.approx(600.0)


def test_a_cheaper_alternate_serves_more_from_the_next_stretch_on() -> None:
    [only] = seen(world([10.0]), alternate={"count": "rough"})
    assert (only.delivered, only.deliverable) == pytest.approx((600.0, 600.0))


def test_what_is_shed_does_not_come_back() -> None:
    _, last = seen(world([10.0, 1.0], replace(COUNTED, shed=True)))
    # 300 of 600 in the first minute, then all 60; twice as many results as messages.
    assert (last.delivered, last.backlog) == pytest.approx((720.0, 0.0))


def test_before_the_first_placement_all_operators_share_all_cores() -> None:
    plant = SimulatedPlant(world([10.0]))
    next(plant.ticks())
    observed = plant.observe()
    assert observed is not None
    # 4 cores for 3 operators: `count` has 4/3 of a core, and does 10/3 a second.
    assert observed.operators["count"].processed == pytest.approx(60 * 4 / 3 / 0.4)


def test_an_operator_without_a_home_is_refused() -> None:
    with pytest.raises(PlantError, match="store has none"):
        seen(world([1.0]), instances={"parse": ("w1",), "count": ("w1",)})


def test_workers_are_as_fast_as_their_readings_say() -> None:
    speeds = RecordedSpeeds({"w1": [(0.0, 1.0), (60.0, 0.5)], "w2": [(0.0, 0.5), (60.0, 1.0)]})
    first, second = seen(replace(world([10.0, 10.0]), speeds=speeds))
    assert [first.workers[name].speed for name in ("w1", "w2")] == [1.0, 0.5]
    # One event at 60 s changes both, and it is seen after the minute that it begins.
    assert [second.workers[name].speed for name in ("w1", "w2")] == [0.5, 1.0]
    assert first.operators["count"].processed == pytest.approx(60 * 1.5 / 0.4)


def test_the_oracle_of_a_scenario_knows_the_speeds_that_the_plant_will_have() -> None:
    scenario = replace(world([1.0] * 20), speeds=GeneratedSpeeds(EC2_CORES, 3))
    oracle = scenario.job().oracle
    assert oracle is not None
    assert oracle.speed is not None
    for observed in seen(scenario):
        # What is seen at the end of an interval is how fast it was within it.
        assert observed.workers["w1"].speed == oracle.speed("w1", observed.time_s - 1.0)


def test_a_file_says_how_speeds_vary(tmp_path: Path) -> None:
    path = tmp_path / "world.toml"
    path.write_text(
        'duration_s = 600\n[worker]\nstart_s = 0\n[[operators]]\nname = "a"\ncost_s = 0.1\n'
        "[placed]\nown_core = true\ncounts = true\n[variability]\ndips = 0.2\nleaves = 0.5\nslow = [0.4, 0.6]\n"
        'rated = [0.9, 1.0]\n[[workload]]\nshape = "constant"\nrate = 5\n'
    )
    scenario = World.of_file(path, Given()).scenario()
    assert scenario.speeds is not None
    assert scenario.speeds.speed("w1", 0.0) < 1.0


def test_what_makes_no_sense_together_is_refused() -> None:
    with pytest.raises(BadInput, match=r"needs placed\.own_core"):
        PlacedSpec(counts=True)
    with pytest.raises(BadInput, match=r"needs placed\.counts"):
        PlacedSpec(own_core=True, shed=True)
    with pytest.raises(BadInput, match="moves cost nothing"):
        replace(world([1.0]), pause=PauseSpec(reconfigure_s=5.0))
