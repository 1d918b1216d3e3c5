"""What a calibration adds to the simulator: the trigger's clock, slow first batches, meters as seen live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.models.capacity import linear
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, PauseSpec, WorkerSpec
from penstock.sim.workloads import Load


def watch(ticks: int = 6, targets: dict[int, int] | None = None, **changes: Any) -> list[Observation]:
    """Ticks of 5 s at 60/s on a worker that does 100/s, in batches that take 1 s before their first row.

    `targets` says after which tick to ask for how many workers.
    """
    still = Scenario.constant(rate=60.0, capacity_per_worker=100.0, workers_at_start=1)
    scenario = replace(still, load=Load.of(np.full(ticks, 300.0), 5.0), capacity=linear(100.0, 1.0), **changes)
    plant, seen = SimulatedPlant(scenario), []
    for tick, _ in enumerate(plant.ticks(), start=1):
        observation = plant.observe()
        assert observation is not None
        seen.append(observation)
        if targets and tick in targets:
            plant.apply(observation.target.resized(targets[tick]))
    return seen


def test_the_triggers_clock_strikes_first_after_its_offset() -> None:
    seen = watch(batch=BatchSpec(10.0, offset_s=3.0))
    # It strikes at 3, 13 and 23 s; 180 rows at 3 s take 1 + 1.8 s, so at 5 s nothing has ended and at 10 s 180 have.
    assert [one.processed for one in seen[:2]] == [0.0, pytest.approx(180.0)]
    assert seen[1].batch is not None
    assert seen[1].batch.age_s == pytest.approx(10.0 - 5.8)


def executions(seen: list[Observation]) -> list[float]:
    """Each once: a tick shows the last batch, also again."""
    shown = [one.batch.execution_s for one in seen if one.batch is not None]
    return [took_s for number, took_s in enumerate(shown) if number == 0 or took_s != shown[number - 1]]


def test_a_batch_waits_for_the_first_task_of_a_new_worker() -> None:
    # Two workers from 5 s on. 600 rows at 10 s: alone, the old one would take 7 s; both together 4 s.
    took = executions(watch(ticks=12, targets={1: 2}, batch=BatchSpec(10.0, first_s=9.0)))
    assert took[0] == pytest.approx(9.0)
    assert took[-1] == pytest.approx(4.0)
    # One that is cold for 3 s counts when it is done: 1 s, 2 s at 100/s, 400 rows at 200/s.
    assert executions(watch(ticks=4, targets={1: 2}, batch=BatchSpec(10.0, first_s=3.0)))[0] == pytest.approx(5.0)


def test_a_worker_that_comes_while_a_batch_runs_makes_it_wait_too_if_a_task_is_left() -> None:
    # 600 rows at 10 s take one worker 7 s. A second one comes at 15 s, when 200 are left: a third of the tasks.
    coming: dict[str, Any] = {"ticks": 8, "targets": {2: 2}, "worker": WorkerSpec(start_s=5.0)}
    assert executions(watch(batch=BatchSpec(10.0, first_s=8.0), **coming))[0] == pytest.approx(13.0)
    # Of ten tasks three are left, half of one in work: it takes one, which holds the batch.
    assert executions(watch(batch=BatchSpec(10.0, tasks=10, first_s=8.0), **coming))[0] == pytest.approx(13.0)
    # Of two tasks none is left, so it has its first in the next batch: 600 rows at 20 s, the old one takes 7 s, it 8.
    took = executions(watch(batch=BatchSpec(10.0, tasks=2, first_s=8.0), **coming))
    assert took[:2] == pytest.approx([7.0, 8.0])


def test_while_a_batch_waits_for_a_new_worker_the_others_idle() -> None:
    seen = watch(ticks=6, targets={1: 2}, batch=BatchSpec(10.0, first_s=19.0))
    # From 20 to 25 s the old worker has done its rows (1 + 6 s), and the new one is at its first task until 29 s.
    assert seen[4].workers.mean("cpu") == pytest.approx(0.5)


def test_where_all_workers_are_new_all_are_cold_first() -> None:
    # None at first; one comes at 5 s. 600 rows at 10 s: 4 s for its first task, and only then the rows.
    seen = watch(ticks=8, targets={1: 1}, workers_at_start=0, limits=Limits(0, 2), batch=BatchSpec(10.0, first_s=4.0))
    assert executions(seen)[0] == pytest.approx(4.0 + 1.0 + 6.0)


def test_a_worker_that_is_given_up_stops_at_once_or_drains() -> None:
    given_up: dict[str, Any] = {"workers_at_start": 2, "targets": {2: 1}, "ticks": 4}
    at_once = watch(batch=BatchSpec(10.0, offset_s=9.0), **given_up)[-1].batch
    drained = watch(batch=BatchSpec(10.0, offset_s=9.0, drains=True), **given_up)[-1].batch
    assert at_once is not None
    assert drained is not None
    # 540 rows at 9 s. Both: 1 + 540 / 200 = 3.7 s; with one from 10 s on, 1 + 540 / 100 = 6.4 s.
    assert [at_once.execution_s, drained.execution_s] == pytest.approx([6.4, 3.7])


def test_a_worker_that_drains_is_seen_to_serve_until_its_batch_has_ended() -> None:
    given_up: dict[str, Any] = {"workers_at_start": 2, "targets": {2: 1}, "ticks": 4}
    seen = watch(batch=BatchSpec(10.0, offset_s=9.0, drains=True), **given_up)
    # Given up at 10 s, while the batch of 9 s runs until 12.7 s.
    assert [dict(one.drained_s) for one in seen] == [{}, {}, {"w2": pytest.approx(2.7)}, {}]


def test_a_first_task_takes_no_less_than_its_rows_cost() -> None:
    # 600 rows at 10 s, in 3 tasks. The second worker comes at 11 s (fixed time over) and takes one of 200 rows: 2 s.
    coming: dict[str, Any] = {"ticks": 8, "targets": {2: 2}, "worker": WorkerSpec(start_s=1.0)}
    # Both have done 200 rows by 13 s, and share the last 200: 1 s. With rows for nothing it would be 3 s in all.
    assert executions(watch(batch=BatchSpec(10.0, tasks=3, first_s=0.1), **coming))[0] == pytest.approx(4.0)


def test_a_first_task_costs_its_rows_also_where_its_worker_comes_into_a_pause() -> None:
    # As above, but the job pauses from 11 to 13 s, as the worker joins: everything ends 2 s later.
    coming: dict[str, Any] = {"ticks": 8, "targets": {2: 2}, "worker": WorkerSpec(start_s=1.0)}
    paused = watch(batch=BatchSpec(10.0, tasks=3, first_s=0.1), pause=PauseSpec(reconfigure_s=2.0), **coming)
    assert executions(paused)[0] == pytest.approx(6.0)


def test_the_task_of_a_worker_that_has_left_is_done_by_the_others() -> None:
    # The second one comes at 14 s, takes 150 of the 300 rows that are left, and leaves at 15 s: 200 are done, 100 not.
    coming: dict[str, Any] = {"ticks": 8, "targets": {1: 2, 3: 1}, "worker": WorkerSpec(start_s=9.0)}
    assert executions(watch(batch=BatchSpec(10.0, tasks=4, first_s=0.1), **coming))[0] == pytest.approx(6.0)


def test_batches_are_as_unequal_as_they_were_asked_to_be_and_the_cpu_is_busy_meanwhile() -> None:
    seen = watch(ticks=2000, batch=BatchSpec(5.0, spread=0.1))
    times = np.array([one.batch.execution_s for one in seen if one.batch is not None and one.batch.rows == 300.0])
    # Each takes 1 + 300 / 100 = 4 s, give or take.
    assert float(np.median(times)) == pytest.approx(4.0, rel=0.02)
    assert float(np.std(np.log(times))) == pytest.approx(0.1, abs=0.02)
    assert np.mean([one.workers.mean("cpu") for one in seen[1:]]) == pytest.approx(0.6, abs=0.02)


def test_a_latency_without_the_service_to_come_is_the_age_of_the_oldest_event() -> None:
    foreseen = watch(batch=BatchSpec(10.0))[2]
    seen = watch(batch=BatchSpec(10.0, latency_includes_service=False))[2]
    # At 15 s: the batch of 10 s has 600 rows and ends at 17 s; its oldest event came at 0 s.
    assert [foreseen.latency_s, seen.latency_s] == pytest.approx([17.0, 15.0])


def test_a_cpu_meter_shows_something_idle_and_not_all_of_the_work() -> None:
    seen = watch(batch=BatchSpec(10.0), noise=NoiseSpec(cpu_idle=0.1, cpu_busy=0.9))
    # From 5 to 10 s nothing is worked on; from 10 to 15 s work begins after 1 s, so the load is 4/5: 0.1 + 0.8 · 0.8.
    assert [round(one.workers.mean("cpu"), 4) for one in seen[1:3]] == [0.1, 0.74]


def test_a_rate_may_be_seen_as_a_mean_over_some_ticks() -> None:
    load = Load.of(np.array([0.0, 300.0, 600.0, 600.0]), 5.0)
    scenario = replace(Scenario.constant(60.0, 100.0, 1), load=load, noise=NoiseSpec(rate_over_s=10.0))
    plant, rates = SimulatedPlant(scenario), []
    for _ in plant.ticks():
        observation = plant.observe()
        assert observation is not None
        rates.append(observation.input_rate)
    # 0, 60, 120 and 120/s, each with the one before it.
    assert rates == [0.0, 30.0, 90.0, 120.0]


def test_workers_may_be_busy_in_a_part_of_the_fixed_time() -> None:
    seen = watch(batch=BatchSpec(10.0, busy=0.5))
    # From 10 to 15 s: half of the 1 s of fixed time, and 4 s of rows.
    assert seen[2].workers.mean("cpu") == pytest.approx(4.5 / 5)


def test_impossible_values_are_refused_by_their_key() -> None:
    with pytest.raises(BadInput, match=r"batch\.offset_s is -1"):
        BatchSpec(10.0, offset_s=-1.0)
    with pytest.raises(BadInput, match=r"noise\.cpu_busy is 0\.1"):
        NoiseSpec(cpu_idle=0.2, cpu_busy=0.1)
