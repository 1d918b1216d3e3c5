"""The deadline policy: what it must keep, what it may cost, and by hand what it decides."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective
from penstock.core.observation import Observation
from penstock.core.score import Score, score
from penstock.models.capacity import linear
from penstock.policies.clairvoyant import Clairvoyant
from penstock.policies.deadline import PARTS, Deadline
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, PauseSpec, WorkerSpec
from penstock.sim.workloads import FlashCrowd, Jitter, Load, Sine, make_load
from penstock.testing import check_policy


def day(tick_s: float = 30.0, seed: int = 0, **changes: Any) -> Scenario:
    """Twelve hours of a wave with a crowd in it and noise on it; a worker does 50/s and starts in 90 s."""
    shapes = (Sine(100.0, 1000.0, 43200.0), FlashCrowd(600.0, 30000.0, 600.0), Jitter(0.05, 120.0))
    load = make_load(shapes, 43200.0, tick_s, seed)
    still = Scenario.constant(1.0, capacity_per_worker=50.0, workers_at_start=3)
    return replace(still, load=load, worker=WorkerSpec(start_s=90.0), limits=Limits(1, 64), **changes)


def run(scenario: Scenario, name: str = "deadline") -> tuple[list[Step], Score]:
    steps = list(replay(scenario, Named.parse(name).build(scenario.job())))
    return steps, score(steps, scenario.objective, scenario.price)


@pytest.mark.parametrize("tick_s", [10.0, 30.0, 60.0])
def test_it_keeps_the_bound_at_little_more_than_the_least_that_any_policy_could_pay(tick_s: float) -> None:
    scenario = day(tick_s)
    _, result = run(scenario)
    assert result.violation_share <= 0.001
    assert result.cost <= 1.15 * Clairvoyant(scenario.job()).bound.lower


def test_it_is_cheaper_than_thresholds_at_no_more_violations() -> None:
    scenario = day()
    own, thresholds = run(scenario)[1], run(scenario, "threshold")[1]
    assert own.cost < 0.85 * thresholds.cost
    assert own.violation_share <= thresholds.violation_share


def test_until_a_worker_was_seen_to_start_one_at_a_time_is_given_up_five_minutes_apart() -> None:
    quiet = replace(day(60.0), load=Load.of(np.full(60, 60.0), 60.0), workers_at_start=5)
    counts = [len(step.target.workers) for step in run(quiet)[0]]
    given_up = [tick for tick, (before, after) in enumerate(pairwise([5, *counts])) if after < before]
    assert counts[-1] == 1
    assert [later - earlier for earlier, later in pairwise(given_up)] == [5, 5, 5]
    bold = [len(step.target.workers) for step in run(quiet, "deadline:without=caution")[0]]
    assert bold[0] == 1


def test_where_a_new_worker_holds_a_batch_up_for_too_long_none_is_given_up_that_a_day_may_need() -> None:
    # Two crowds of a quarter of an hour: after the first, the workers that it took are kept for the second.
    load = make_load((FlashCrowd(300.0, 3600.0, 300.0), FlashCrowd(300.0, 10800.0, 300.0)), 14400.0, 30.0, 0)
    world = replace(day(30.0), load=load, capacity=linear(50.0, 1.5), objective=Objective(60.0))
    world = replace(world, worker=WorkerSpec(start_s=30.0))  # of itself soon enough
    slow = replace(world, batch=BatchSpec(10.0, first_s=55.0, tasks=32))
    quick = replace(world, batch=BatchSpec(10.0, first_s=2.0, tasks=32))
    between = {name: run(each)[0][270].target for name, each in (("slow", slow), ("quick", quick))}
    assert len(between["slow"].workers) >= 5
    assert len(between["quick"].workers) <= 2


def test_what_cannot_be_got_back_in_time_is_kept_for_what_came_and_no_more() -> None:
    # Six hours between 10/s and 1,000/s, then quiet: 22 workers of 50/s are a tenth more than the most that came.
    counts = np.concatenate([np.tile(np.repeat([600.0, 60000.0], 5), 36), np.full(60, 600.0)])
    world = day(60.0, objective=Objective(30.0))
    steps, _ = run(replace(world, load=Load.of(counts, 60.0)))
    assert len(steps[-1].target.workers) == 22
    assert "leaves no time to get one back: 22 stay" in steps[-1].decision.reason


def test_a_bound_shorter_than_a_start_is_missed_by_the_first_crowd_and_not_by_the_second() -> None:
    load = make_load((FlashCrowd(300.0, 3600.0, 300.0), FlashCrowd(300.0, 14400.0, 300.0)), 28800.0, 30.0, 0)
    steps, _ = run(replace(day(30.0), load=load, objective=Objective(30.0)))
    missed = [bool(step.seen.late_s) for step in steps]
    assert any(missed[:300])
    assert not any(missed[300:])
    # Where a crowd's workers come in time, they are given up after it.
    relaxed, _ = run(replace(day(30.0), load=load, objective=Objective(240.0)))
    assert len(relaxed[400].target.workers) < len(steps[400].target.workers)


class TestInMicroBatches:
    world = day(batch=BatchSpec(10.0), capacity=linear(50.0, 1.5))

    def test_batch_sizes_follow_the_workers_and_the_bound_is_kept(self) -> None:
        steps, result = run(self.world)
        assert result.violation_share <= 0.001
        limits = [step.seen.in_work.rows_max for step in steps if step.seen.in_work is not None]
        assert len({round(each) for each in limits if each}) > 20
        assert all(step.target.batch is not None for step in steps)

    def test_without_them_it_pays_more_and_misses_no_less(self) -> None:
        own, without = run(self.world)[1], run(self.world, "deadline:without=batches")[1]
        assert without.violation_share >= own.violation_share
        assert without.cost > own.cost

    def test_where_the_plant_cannot_change_them_it_goes_on_without(self) -> None:
        job = replace(self.world.job(), knobs=frozenset({Knob.WORKERS}))
        assert Deadline(job).needs == {Knob.WORKERS}
        assert Deadline(self.world.job()).needs == {Knob.WORKERS, Knob.BATCH_SIZE}


def test_workers_that_do_less_than_believed_are_found_out() -> None:
    # 50/s are believed, 40/s are true: with that belief alone a fifth of the load would wait for ever.
    scenario = day(capacity=linear(40.0), believed=linear(50.0))
    steps, result = run(scenario)
    assert steps[-1].decision.signals["capacity ratio"] == pytest.approx(0.8, abs=0.05)
    assert result.violation_share <= 0.01


def test_disturbances_all_at_once_are_survived() -> None:
    worker = WorkerSpec(start_s=(60.0, 120.0), speed_spread=0.1)
    scenario = replace(day(capacity=linear(45.0), believed=linear(50.0), pause=PauseSpec(5.0)), worker=worker)
    assert run(scenario)[1].violation_share <= 0.01


def test_by_hand_a_backlog_takes_the_workers_that_serve_it_in_time() -> None:
    job = Scenario.constant(1.0, 10.0).job()
    job = replace(job, objective=Objective(120.0), dataflow=replace(job.dataflow, service_s=0.0))
    policy = Deadline(job, phi=1.0, kappa=1e-9)
    one = Allocation.of(1)
    # 40/s for a minute on a worker that does 10/s and starts at once: 1,800 of 2,400 wait, and more come.
    seen = Observation(60.0, 60.0, 2400.0, 600.0, 600.0, 2400.0, 40.0, 1800.0, 45.0, 10.0, one, one)
    decision = policy.decide(seen)
    # Until 120 s what came by 0 s is due: nothing. So the window is one tick, and nothing is due in it.
    assert len(decision.target.workers) == 1
    seen = Observation(120.0, 60.0, 4800.0, 1200.0, 1200.0, 4800.0, 40.0, 3600.0, 90.0, 10.0, one, one)
    # At 180 s, all 2,400 that came by 60 s are due, of which 1,200 are served: 20/s, two workers.
    assert len(policy.decide(seen).target.workers) == 2


def test_a_start_longer_than_the_bound_is_provided_for() -> None:
    scenario = day(10.0, objective=Objective(30.0))
    _, result = run(scenario)
    assert result.violation_share <= 0.005


def test_the_rate_may_be_the_objective() -> None:
    scenario = day(objective=Objective())
    own, mst = run(scenario)[1], run(scenario, "mst")[1]
    assert own.violation_share <= mst.violation_share + 0.01


def test_its_parts_can_be_left_out_one_by_one() -> None:
    scenario = replace(day(), load=Load.of(np.full(60, 6000.0), 60.0))
    for part in PARTS:
        run(scenario, f"deadline:without={part}")
    with pytest.raises(BadInput, match="its parts are allowance, forecast"):
        Named.parse("deadline:without=luck").build(scenario.job())


def test_it_keeps_the_contract_of_a_policy() -> None:
    check_policy(Deadline)


def test_what_it_decides_depends_on_what_it_saw_alone() -> None:
    scenario = day()
    steps = [step for step, _ in zip(replay(scenario, Deadline(scenario.job())), range(300), strict=False)]
    again = Deadline(scenario.job())
    assert [again.decide(step.seen) for step in steps] == [step.decision for step in steps]


def test_counters_that_have_run_for_months_change_no_decision() -> None:
    scenario = day()
    steps = [step for step, _ in zip(replay(scenario, Deadline(scenario.job())), range(300), strict=False)]
    later = Deadline(scenario.job())
    for step in steps:
        seen = replace(step.seen, arrived=step.seen.arrived + 2.0**40, processed=step.seen.processed + 2.0**40)
        assert later.decide(seen).target == step.decision.target
