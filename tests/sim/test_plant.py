"""The simulated plant, by hand and by properties."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.objective import Objective
from penstock.core.observation import Observation
from penstock.models.capacity import Capacity, linear
from penstock.models.throughput_curves import Table
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, PauseSpec, WorkerSpec
from penstock.sim.workloads import Load
from penstock.testing import check_plant


def world(rates: list[float], at_start: int = 1, per_worker: float = 10.0, **changes: Any) -> Scenario:
    """Minutes of some rates on workers that do 10 events a second."""
    still = Scenario.constant(rate=1.0, capacity_per_worker=per_worker, workers_at_start=at_start)
    return replace(still, load=Load.of(np.array(rates) * 60.0, 60.0), **changes)


def watch(
    scenario: Scenario, targets: dict[int, int] | None = None, could: list[float | None] | None = None
) -> list[Observation]:
    """Each minute's observation; `targets` says after which minute to ask for how many workers.

    `could` gets what the workers could really have served, which a policy is not shown.
    """
    plant, seen = SimulatedPlant(scenario), []
    for minute, _ in enumerate(plant.ticks(), start=1):
        observation = plant.observe()
        assert observation is not None
        seen.append(observation)
        if could is not None:
            could.append(plant.could)
        if targets and minute in targets:
            plant.apply(observation.target.resized(targets[minute]))
    return seen


def test_what_exceeds_the_capacity_waits_and_is_served_later() -> None:
    seen = watch(world([15.0, 5.0, 5.0]))
    # 15/s on 10/s for a minute: 900 in, 600 out. Then 5/s in and 10/s out: the 300 are gone after 60 s.
    assert [(one.arrived, one.processed, one.backlog) for one in seen] == [
        (900, 600, 300),
        (1200, 1200, 0),
        (1500, 1500, 0),
    ]


def test_latency_is_the_age_of_the_oldest_event_plus_its_service() -> None:
    first = watch(world([15.0, 5.0]))[0]
    # 600 of 900 events are served; the 600th arrived at 40 s, so the oldest has waited 20 s; service takes 0.1 s.
    assert first.latency_s == pytest.approx(20.1)


def test_response_times_spread_between_the_first_and_the_last_served() -> None:
    responses = watch(world([15.0, 5.0]))[0].paths["job"]
    # The first event is served at once, the 600th at 60 s having come at 40 s: evenly from 0.1 to 20.1 s.
    assert responses.count == pytest.approx(600)
    assert responses.mean == pytest.approx(10.1)
    assert responses.percentile(0.5) == pytest.approx(10.1, rel=0.05)


def test_a_worker_serves_only_when_it_has_started_and_what_runs_differs_from_what_was_asked() -> None:
    slow = world([25.0] * 4, worker=WorkerSpec(start_s=90.0))
    could: list[float | None] = []
    seen = watch(slow, {1: 3}, could)
    # Asked for at 60 s, up at 150 s: the third minute has 30 s of one worker and 30 s of three.
    assert [len(one.running.workers) for one in seen] == [1, 1, 3, 3]
    assert [len(one.target.workers) for one in seen] == [1, 3, 3, 3]
    assert could == [10.0, 10.0, 20.0, 30.0]
    assert [dict(one.pending) for one in seen] == [{}, {"w2": 60.0, "w3": 60.0}, {}, {}]


def test_a_start_may_be_a_whole_number_of_seconds() -> None:
    whole, exact = (watch(world([25.0] * 4, worker=WorkerSpec(start_s=s)), {1: 3}) for s in (90, 90.0))
    assert [one.processed for one in whole] == [one.processed for one in exact]


def test_a_worker_that_was_not_up_yet_can_be_given_up() -> None:
    seen = watch(world([25.0] * 4, worker=WorkerSpec(start_s=90.0)), {1: 3, 2: 1})
    assert [len(one.running.workers) for one in seen] == [1, 1, 1, 1]


def test_the_first_seconds_of_a_worker_are_slow() -> None:
    could: list[float | None] = []
    watch(world([25.0] * 3, worker=WorkerSpec(warm_s=30.0, warm_speed=0.5)), {1: 2}, could)
    # In the second minute: one full worker, and one that does half for 30 s, then all.
    assert could[1] == pytest.approx(10 + (5 * 30 + 10 * 30) / 60)
    assert could[2] == pytest.approx(20)


def test_drawn_start_times_lie_between_their_bounds() -> None:
    ups = []
    for seed in range(20):
        scenario = world([1.0] * 4, worker=WorkerSpec(start_s=(20.0, 100.0)), seed=seed)
        could: list[Any] = []
        watch(scenario, {1: 2}, could)
        # What could be done in minutes 2 and 3 tells when the second worker came.
        ups.append(120 - (sum(could[1:3]) - 20) / 10 * 60)
    assert min(ups) >= 20
    assert max(ups) <= 100
    assert max(ups) - min(ups) > 30


def test_workers_differ_in_speed_and_change_it() -> None:
    spec = WorkerSpec(speed_spread=0.5, speed_every_s=60.0)
    could: list[Any] = []
    seen = watch(world([1.0] * 20, at_start=8, worker=spec), could=could)
    assert all(40 <= each <= 80 for each in could)
    assert len(set(could)) == 20
    shares = [[stats.input_rate for stats in one.workers.values()] for one in seen]
    assert len(set(shares[0])) == 8


def test_a_policy_sees_what_the_model_says_and_not_what_the_workers_can_really_do() -> None:
    could: list[Any] = []
    slow = world([1.0] * 5, at_start=4, worker=WorkerSpec(speed_spread=0.5), believed=linear(12.5))
    seen = watch(slow, could=could)
    assert {one.capacity for one in seen} == {50.0}
    assert all(each < 40 for each in could)
    assert all(stats.speed is None for one in seen for stats in one.workers.values())


def test_time_in_which_an_event_is_too_old_counts_also_between_two_ticks() -> None:
    # 20/s on 10/s for a minute, then nothing: the last of 1,200 events is served at 120 s and has waited 60 s.
    # An event that arrived at t is served at 2t; more than 45 s old from t = 45 on, which is served from 90 s on.
    seen = watch(world([20.0, 0.0, 0.0], objective=Objective(45.1)))
    assert [one.latency_s for one in seen] == pytest.approx([30.1, 0.0, 0.0])
    assert [one.late_s for one in seen] == pytest.approx([0.0, 30.0, 0.0])


def test_a_failed_worker_is_replaced_and_paid_anew() -> None:
    spec = WorkerSpec(start_s=30.0, fails_every_s=600.0)
    seen = watch(world([1.0] * 120, at_start=4, worker=spec))
    assert min(len(one.running.workers) for one in seen) < 4
    assert len(seen[-1].target.workers) == 4
    assert max(stats.paid_since_s for stats in seen[-1].workers.values()) > 0


def test_nothing_is_served_while_the_job_reconfigures_or_state_moves() -> None:
    flow = Dataflow((Operator("job", 0.1, state_mb=120.0),))
    pause = PauseSpec(reconfigure_s=6.0, move_mb_s=10.0)
    could: list[float | None] = []
    watch(world([10.0] * 3, pause=pause, dataflow=flow), {1: 2}, could)
    # One of two workers is new: 60 MB move in 6 s, after 6 s of reconfiguration. 48 s are left of the minute.
    assert could[1] == pytest.approx(20 * 48 / 60)
    assert could[2] == pytest.approx(20)


def test_noise_touches_gauges_and_never_counters() -> None:
    quiet = watch(world([8.0] * 50))
    noisy = watch(world([8.0] * 50, noise=NoiseSpec(0.1, 0.1, 0.1, 0.0)))
    for one, other in zip(quiet, noisy, strict=True):
        assert (one.arrived, one.processed, one.latency_s) == (other.arrived, other.processed, other.latency_s)
    assert len({one.workers["w1"].cpu for one in noisy}) > 40
    assert len({one.workers["w1"].memory_mb for one in noisy}) > 40
    assert len({one.input_rate for one in noisy}) > 40


def test_noise_has_the_size_and_the_memory_it_was_given() -> None:
    rates = [5.0] * 4000
    noisy = watch(world(rates, noise=NoiseSpec(cpu=0.05, correlation_s=600.0)))
    errors = np.array([one.workers["w1"].cpu - 0.5 for one in noisy])
    assert errors.std() == pytest.approx(0.05, rel=0.2)
    # After one tick of 60 s an error keeps exp(−60/600) = 0.905 of itself.
    assert np.corrcoef(errors[:-1], errors[1:])[0, 1] == pytest.approx(0.905, abs=0.03)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def shown(seed: int) -> list[float]:
        spec = WorkerSpec(start_s=(10.0, 90.0), speed_spread=0.3, speed_every_s=60.0)
        seen = watch(world([18.0] * 20, worker=spec, noise=NoiseSpec(cpu=0.1), seed=seed), {1: 3})
        return [one.workers.mean("cpu") for one in seen]

    assert shown(1) == shown(1) != shown(2)


def test_a_saturating_capacity_is_that_of_the_workers_that_run() -> None:
    model = Capacity(Table((1, 2, 4), (10.0, 18.0, 20.0)))
    seen = watch(world([1.0] * 3, capacity=model), {1: 4})
    assert [one.capacity for one in seen] == [10, 20, 20]


def test_the_capacity_that_is_seen_counts_each_worker_as_its_kind() -> None:
    kinds = (WorkerSpec("huge", cores=8.0, speed=1.5), WorkerSpec("slow", speed=0.5))
    plant = SimulatedPlant(world([900.0, 900.0], kinds=kinds))
    ticks = plant.ticks()
    next(ticks)
    plant.apply(Allocation.of(1).grown(1, "huge").grown(1, "slow"))
    next(ticks)
    seen = plant.observe()
    # 1 + 8 · 1.5 + 0.5 workers of 10/s, and that is what they did.
    assert seen is not None
    assert seen.capacity == plant.could == 135.0


def test_operators_share_the_flow_by_their_selectivity() -> None:
    flow = Dataflow((Operator("split", 0.01, selectivity=3.0), Operator("count", 0.03, after=("split",))))
    seen = watch(world([6.0], dataflow=flow))[0]
    assert seen.operators["count"].input_rate == pytest.approx(18)
    assert seen.operators["count"].cores == pytest.approx(18 * 0.03)
    assert seen.delivered == pytest.approx(3 * seen.processed)


def test_a_gap_in_the_trace_passes_in_no_time() -> None:
    load = Load(np.array([600.0, 900.0, 300.0]), np.array([60.0, 120.0, 3660.0]), 60.0)
    seen = watch(replace(world([1.0]), load=load))
    assert [one.time_s for one in seen] == [60, 120, 3660]
    # 300 events waited before the gap; after it they have waited 20 s and not an hour.
    assert seen[1].latency_s == pytest.approx(20.1)
    assert seen[2].backlog == 0


class TestMicroBatches:
    def batches(self, rates: list[float], fixed_s: float = 2.0, **changes: Any) -> list[Observation]:
        spec = changes.pop("batch", BatchSpec(trigger_s=10.0))
        targets = changes.pop("targets", None)
        return watch(world(rates, capacity=linear(10.0, fixed_s), batch=spec, **changes), targets)

    def test_a_batch_takes_its_fixed_time_and_its_rows(self) -> None:
        last = self.batches([5.0, 5.0])[-1].batch
        assert last is not None
        # 50 rows in 10 s on 10 rows/s: 5 s, and 2 s fixed. It began at 110 s and ended at 117 s.
        assert (last.rows, last.execution_s, last.age_s) == pytest.approx((50, 7, 3))

    def test_events_count_as_processed_when_their_batch_ends(self) -> None:
        # Batches begin at 10, 20, …, 50 s with 50 rows each; the one of 50 s ends at 57 s.
        assert self.batches([5.0])[0].processed == pytest.approx(250)

    def test_the_next_batch_begins_at_once_after_an_overrun(self) -> None:
        # 9.5/s · 10 s = 95 rows take 9.5 + 2 s: longer than the trigger, so batches follow each other.
        seen = self.batches([9.5] * 30)
        assert seen[-1].batch is not None
        assert seen[-1].batch.rows > 200
        # In batches that long the fixed part matters less: 9.5/s can be sustained at 40 s a batch.
        assert seen[-1].latency_s is not None
        assert seen[-1].latency_s < 200

    def test_a_batch_is_no_larger_than_its_limit(self) -> None:
        seen = self.batches([9.0] * 10, batch=BatchSpec(10.0, rows_max=60.0))
        assert seen[-1].batch is not None
        assert seen[-1].batch.rows == 60
        # 60 rows take 8 s, so a batch every 10 s: 6/s, while 9/s arrive.
        assert seen[-1].backlog == pytest.approx(600 * 3, rel=0.05)

    def test_an_idle_trigger_runs_no_batch(self) -> None:
        assert self.batches([0.0, 0.0])[-1].batch is None

    def test_a_worker_that_joins_takes_tasks_of_the_batch_in_work(self) -> None:
        # 120 rows at 60 s: 2 s, then 10/s. A second worker comes at 65 s, when 90 are left: 4.5 s at 20/s.
        coming = WorkerSpec(start_s=5.0)
        last = self.batches([2.0, 2.0], targets={1: 2}, worker=coming, batch=BatchSpec(60.0))[-1].batch
        assert last is not None
        assert last.execution_s == pytest.approx(5.0 + 4.5)

    def test_sustainable_is_what_the_trigger_leaves(self) -> None:
        assert self.batches([1.0])[0].capacity == pytest.approx(10 * (1 - 2 / 10))


rates = st.lists(st.floats(0, 50), min_size=1, max_size=30)
specs = st.builds(
    WorkerSpec,
    start_s=st.sampled_from([0.0, 45.0, (10.0, 200.0)]),
    warm_s=st.sampled_from([0.0, 70.0]),
    speed_spread=st.sampled_from([0.0, 0.4]),
    speed_every_s=st.sampled_from([0.0, 50.0]),
    fails_every_s=st.sampled_from([0.0, 300.0]),
)


@settings(deadline=None)
@given(
    rates,
    specs,
    st.sampled_from([None, BatchSpec(7.0), BatchSpec(10.0, 200.0)]),
    st.sampled_from([PauseSpec(), PauseSpec(20.0)]),
    st.lists(st.integers(0, 6), min_size=1, max_size=30),
)
def test_nothing_is_lost(
    load: list[float], spec: WorkerSpec, batch: BatchSpec | None, pause: PauseSpec, counts: list[int]
) -> None:
    scenario = world(load, worker=spec, batch=batch, pause=pause, capacity=linear(10.0, 1.0))
    seen = watch(scenario, dict(enumerate(counts, start=1)))
    assert seen[-1].arrived == pytest.approx(60 * sum(load))
    answered = 0.0
    for one in seen:
        answered += one.paths["job"].count
        assert one.backlog is not None
        assert one.arrived == pytest.approx(one.processed + one.backlog)
        assert answered == pytest.approx(one.processed, abs=1e-6)
        assert one.processed <= one.arrived
    assert all(a.processed <= b.processed for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("batch", [None, BatchSpec(10.0)])
def test_the_simulated_plant_keeps_the_contract(batch: BatchSpec | None) -> None:
    spec = WorkerSpec(start_s=(20.0, 90.0), warm_s=30.0, speed_spread=0.2, speed_every_s=60.0, fails_every_s=900.0)
    plant = SimulatedPlant(world([25.0] * 60, worker=spec, noise=NoiseSpec(0.1, 0.1, 0.1), batch=batch))
    check_plant(plant, plant.ticks())
