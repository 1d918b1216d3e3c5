"""Operators placed on workers: by hand, by properties, and beside the engine that places nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput, PlantError
from penstock.core.objective import Objective
from penstock.core.observation import Observation
from penstock.models.capacity import linear
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.workloads import Load
from penstock.testing import check_plant

PAIR = Dataflow((Operator("parse", 0.02, selectivity=0.5, state_mb=100.0), Operator("count", 0.04, after=("parse",))))
"""An event costs 0.02 + 0.5 · 0.04 = 0.04 core-seconds: a core does 25 of them a second."""
TWO = (Worker("w1"), Worker("w2"))


def world(rates: list[float], flow: Dataflow = PAIR, at_start: int = 2, **changes: Any) -> Scenario:
    """Minutes of some rates on workers of one core."""
    still = Scenario.constant(rate=1.0, capacity_per_worker=1.0 / flow.demand_s, workers_at_start=at_start)
    load = Load.of(np.array(rates) * 60.0, 60.0)
    return replace(still, load=load, dataflow=flow, placed=PlacedSpec(), **changes)


def watch(scenario: Scenario, targets: Mapping[int, Allocation] | None = None) -> list[Observation]:
    plant, seen = SimulatedPlant(scenario), []
    for minute, _ in enumerate(plant.ticks()):
        observation = plant.observe()
        assert observation is not None
        seen.append(observation)
        if targets and minute in targets:
            plant.apply(targets[minute])
    return seen


def test_each_operator_waits_for_its_own_worker() -> None:
    apart = Allocation(TWO, {"parse": ("w1",), "count": ("w2",)})
    seen = watch(world([1.0, 60.0, 60.0]), {0: apart})[-1]
    # A core parses 50/s of the 60: 10/s wait for it. It puts out 25/s, and a core counts 25/s: none wait there.
    parse, count = seen.operators["parse"], seen.operators["count"]
    assert parse.backlog == pytest.approx(2 * 600)
    assert count.backlog == pytest.approx(0, abs=1e-6)
    assert (parse.output_rate, count.input_rate) == (25.0, 25.0)
    assert [stats.cpu for stats in seen.workers.values()] == [1.0, 1.0]
    assert seen.backlog == pytest.approx(1200)


def test_an_operator_behind_another_fills_its_own_queue() -> None:
    slow = Dataflow((Operator("parse", 0.01), Operator("count", 0.04, after=("parse",))))
    apart = Allocation(TWO, {"parse": ("w1",), "count": ("w2",)})
    seen = watch(world([1.0, 50.0, 50.0], slow), {0: apart})[-1]
    # A core counts 25/s of the 50 that are parsed: after two minutes 3,000 wait, the oldest for a minute.
    assert (seen.operators["parse"].backlog, seen.operators["count"].backlog) == pytest.approx((0, 3000), abs=1e-6)
    assert seen.latency_s == pytest.approx(60 + slow.demand_s)
    assert seen.operators["parse"].load == pytest.approx(0.5)


def test_a_move_pauses_an_operator_while_its_state_is_carried_and_nothing_is_lost() -> None:
    pause = PauseSpec(reconfigure_s=2.0, move_mb_s=10.0)
    here = Allocation(TWO, {"parse": ("w1",), "count": ("w1",)})
    there = Allocation(TWO, {"parse": ("w2",), "count": ("w1",)})
    seen = watch(world([1.0, 10.0, 10.0, 10.0], pause=pause), {0: here, 1: there})
    # 100 MB at 10 MB/s and 2 s: nothing is parsed for 12 s, then 120 events more than usual.
    assert seen[2].backlog == pytest.approx(0, abs=1e-6)
    assert seen[2].paths["count"].percentile(0.999) == pytest.approx(12, rel=0.1)
    assert seen[3].arrived == pytest.approx(seen[3].processed)


def test_a_worker_that_joins_pauses_no_operator_that_stays_where_it_is() -> None:
    here = Allocation((Worker("w1"),), {"parse": ("w1",), "count": ("w1",)})
    wider = replace(here, workers=TWO, names_given=2)
    pause = PauseSpec(reconfigure_s=30.0)
    seen = watch(world([1.0, 1.0, 10.0, 10.0], at_start=1, pause=pause), {0: here, 2: wider})
    assert seen[3].paths["count"].percentile(0.999) < 1.0


def test_an_operator_stays_where_it_was_until_the_new_worker_runs() -> None:
    here = Allocation((Worker("w1"),), {"parse": ("w1",), "count": ("w1",)})
    there = Allocation(TWO, {"parse": ("w1",), "count": ("w2",)}, names_given=2)
    slow = world([1.0] + [40.0] * 4, at_start=1, worker=WorkerSpec(start_s=90.0))
    seen = watch(slow, {0: here, 1: there})
    # Asked for at 120 s, up at 210 s: until then one core does 25/s of the 40.
    done = [b.processed - a.processed for a, b in pairwise(seen)]
    assert done[:2] == pytest.approx([1500.0, 1500.0])
    assert done[2] > 1600


def test_an_operator_whose_worker_was_given_up_serves_nothing_until_the_new_one_runs() -> None:
    here = Allocation(TWO, {"parse": ("w1",), "count": ("w2",)})
    there = Allocation((Worker("w2"), Worker("w3")), {"parse": ("w3",), "count": ("w2",)}, names_given=3)
    seen = watch(world([1.0] + [10.0] * 4, worker=WorkerSpec(start_s=90.0)), {0: here, 1: there})
    # Given up at 120 s, the new one is up at 210 s: in the third minute nothing is parsed, though w2 runs and idles.
    assert seen[2].operators["parse"].cores == 0.0
    assert seen[2].backlog == pytest.approx(600.0)
    assert seen[4].backlog == pytest.approx(0.0, abs=1e-6)


def test_alternates_are_switched_between_two_ticks() -> None:
    exact, rough = Alternate("exact", 0.04), Alternate("rough", 0.01, value=0.7)
    flow = Dataflow((Operator("match", alternates=(exact, rough)),))
    before = Allocation((Worker("w1"),))
    cheap = replace(before, alternate={"match": "rough"})
    seen = watch(world([50.0] * 3, flow, at_start=1), {0: cheap})
    # 25/s of 50 with the exact one: 1,500 wait. Then 100/s: they are gone within 30 s, and all is half idle.
    assert [one.operators["match"].cores for one in seen] == pytest.approx([1.0, 0.75, 0.5])
    assert [one.backlog for one in seen] == pytest.approx([1500, 0, 0], abs=1e-6)
    assert seen[2].operators["match"].load == pytest.approx(0.5)


def test_each_source_has_a_load_of_its_own() -> None:
    flow = Dataflow((Operator("a", 0.01), Operator("b", 0.01), Operator("join", 0.01, after=("a", "b"))))
    still = world([10.0, 10.0], flow)
    load = replace(still.load, by_source={"a": np.array([120.0, 600.0]), "b": np.array([480.0, 0.0])})
    seen = watch(replace(still, load=load))
    assert [one.operators[name].arrived for one in seen for name in "ab"] == pytest.approx([120, 480, 720, 480])
    assert seen[-1].operators["join"].processed == pytest.approx(1200)


def test_loads_of_several_sources_are_refused_where_they_would_share_one_queue() -> None:
    flow = Dataflow((Operator("a", 0.01), Operator("b", 0.01), Operator("join", 0.01, after=("a", "b"))))
    still = world([10.0, 10.0], flow)
    load = replace(still.load, by_source={"a": np.array([120.0, 600.0]), "b": np.array([480.0, 0.0])})
    with pytest.raises(BadInput, match=r"each source needs \[placed\]"):
        replace(still, load=load, placed=None)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Allocation(TWO, {"parse": ("w1",)}), "count has none"),
        (Allocation(TWO, {"parse": ("w1",), "count": ("w1",), "sort": ("w1",)}), "sort"),
        (Allocation(TWO, alternate={"count": "rough"}), "alternate of 'count'"),
        (Allocation((Worker("w1", "huge"),)), "w1 is of the kind worker, not huge"),
        (Allocation((*TWO, Worker("w3", "huge"))), "unknown kind of worker 'huge'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(target: Allocation, message: str) -> None:
    flow = replace(
        PAIR, operators=(PAIR.operators[0], replace(PAIR.operators[1], cost_s=0.0, alternates=(Alternate("x", 0.04),)))
    )
    plant = SimulatedPlant(world([1.0, 1.0], flow))
    clock = plant.ticks()
    next(clock)
    with pytest.raises(PlantError, match=message):
        plant.apply(target)
    next(clock)
    seen = plant.observe()
    assert seen is not None
    assert len(seen.running.workers) == 2


def test_two_cores_do_twice_as_much_and_a_fast_one_too() -> None:
    fast = (WorkerSpec("big", cores=2.0), WorkerSpec("fast", speed=2.0))
    for kind in ("big", "fast"):
        target = Allocation((Worker("w1"), Worker("w2", kind)), {"parse": ("w2",), "count": ("w1",)})
        seen = watch(world([1.0, 90.0, 90.0], at_start=1, kinds=fast), {0: target})[-1]
        # 100/s are parsed at most: 45/s are left to count, of which a core does 25.
        assert seen.operators["parse"].backlog == pytest.approx(0, abs=1e-6)
        assert seen.operators["count"].backlog == pytest.approx(2 * 60 * 20)


def test_an_instance_may_have_a_core_for_itself() -> None:
    quad = WorkerSpec(cores=4.0)
    target = Allocation((Worker("w1"),), {"parse": ("w1",), "count": ("w1", "w1")})
    own = replace(world([1.0, 60.0, 60.0], at_start=1, worker=quad), placed=PlacedSpec(own_core=True))
    seen = watch(own, {0: target})[-1]
    # One core parses 50/s of 60, two count 50/s: the fourth idles, and the others are not helped by it.
    assert seen.operators["parse"].backlog == pytest.approx(2 * 600)
    assert seen.workers["w1"].cpu == pytest.approx((1.0 + 25 * 0.04) / 4)


rates = st.lists(st.one_of(st.just(0.0), st.floats(0.1, 120.0)), min_size=3, max_size=8)


@settings(max_examples=60, deadline=None)
@given(rates, st.integers(1, 4), st.floats(0.1, 3.0), st.integers(1, 3))
def test_with_every_operator_on_every_worker_it_is_one_queue(
    minutes: list[float], workers: int, selectivity: float, depth: int
) -> None:
    names = ["a", "b", "c"][:depth]
    after: list[tuple[str, ...]] = [(), ("a",), ("b",)]
    flow = Dataflow(tuple(Operator(n, 0.01 + 0.01 * i, selectivity, after=after[i]) for i, n in enumerate(names)))
    placed = world(minutes, flow, workers, objective=Objective(30.0), capacity=linear(1.0 / flow.demand_s))
    plain = replace(placed, placed=None)
    for ours, theirs in zip(watch(placed), watch(plain), strict=True):
        assert ours.processed == pytest.approx(theirs.processed, rel=1e-6, abs=1e-6)
        assert ours.latency_s == pytest.approx(theirs.latency_s, rel=1e-6, abs=1e-3)
        assert ours.late_s == pytest.approx(theirs.late_s, rel=1e-6, abs=1e-3)
        assert ours.delivered == pytest.approx(theirs.delivered, rel=1e-6, abs=1e-6)
        assert ours.workers.mean("cpu") == pytest.approx(theirs.workers.mean("cpu"), abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(rates, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=8, max_size=8))
def test_nothing_is_lost_at_any_operator_whatever_moves(
    minutes: list[float], moves: list[tuple[int, int, bool]]
) -> None:
    rough = (Alternate("exact", 0.03, 1.5), Alternate("rough", 0.01, 0.5))
    first = Operator("a", alternates=rough, state_mb=50.0)
    flow = Dataflow((first, Operator("b", 0.02, after=("a",)), Operator("c", 0.0, after=("a",))))
    workers = (Worker("w1"), Worker("w2"), Worker("w3"))
    targets = {}
    for number, (a, b, is_rough) in enumerate(moves):
        places = {"a": (f"w{a + 1}",), "b": (f"w{b + 1}", "w1"), "c": ("w3",)}
        targets[number] = Allocation(workers, places, alternate={"a": "rough" if is_rough else "exact"})
    spec = world(minutes, flow, 3, pause=PauseSpec(1.0, 5.0), worker=WorkerSpec(fails_every_s=300.0, start_s=20.0))
    last: Observation | None = None
    for seen in watch(spec, targets):
        for stats in seen.operators.values():
            arrived, processed, backlog = (float(each or 0) for each in (stats.arrived, stats.processed, stats.backlog))
            assert arrived == pytest.approx(processed + backlog, rel=1e-6, abs=2e-3)
        if last is not None:
            assert seen.processed >= last.processed
        assert all(-1e-9 <= stats.cpu <= 1 + 1e-6 for stats in seen.workers.values())
        last = seen


def test_it_keeps_the_contract_of_a_plant() -> None:
    plant = SimulatedPlant(world([25.0] * 30, worker=WorkerSpec(start_s=(20.0, 90.0), fails_every_s=900.0)))
    assert plant.knobs == {Knob.WORKERS, Knob.PLACEMENT, Knob.ALTERNATE}
    check_plant(plant, plant.ticks())
