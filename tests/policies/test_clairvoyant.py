"""The clairvoyant: its replay is what it predicted, and nobody who violates no more pays less than its bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation
from penstock.core.score import Score, score
from penstock.models.capacity import linear
from penstock.policies.clairvoyant import Clairvoyant, cautious, task_of
from penstock.policies.static import StaticPeak
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, WorkerSpec
from penstock.sim.workloads import Load
from penstock.solvers.schedule import unavoidable
from penstock.testing import check_policy


def scenario(objective: str = "latency<=120s", billing: str = "second", start_s: float = 90.0) -> Scenario:
    """Half a day of minutes that need one to ten workers, and a crowd that needs more than there may be."""
    rng = np.random.default_rng(7)
    minutes = np.arange(720)
    arrivals = rng.gamma(12.0, (5.0 + 4.0 * np.sin(minutes / 115.0)) * 3000.0 / 12.0)
    arrivals[400:420] += 25 * 3000.0
    world = Scenario.constant(50.0, capacity_per_worker=50.0, workers_at_start=3)
    return replace(
        world,
        load=Load.of(np.round(arrivals), 60.0),
        limits=Limits(1, 16),
        objective=Objective.parse(objective),
        price=Price(0.10, billing),
        worker=WorkerSpec(start_s=start_s),
    )


class Scripted:
    """A policy that asks for what it was told."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, counts: list[int]) -> None:
        self._counts = iter(counts)

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target.resized(next(self._counts, len(seen.target.workers))), "as told")


def replayed(world: Scenario, policy: Clairvoyant | StaticPeak) -> Score:
    return score(replay(world, policy), world.objective, world.price)


def _missed_at_the_end(step: Step, objective: Objective) -> bool:
    seen = replace(step.seen, late_s=None)
    return bool(objective.missed(seen, seen.input_rate * seen.span_s, step.could))


@pytest.mark.parametrize("objective", ["latency<=120s", "latency<=20s", "latency<=30m", "rate"])
@pytest.mark.parametrize(("billing", "start_s"), [("second", 90.0), ("minute", 0.0), ("hour", 300.0)])
def test_the_replay_costs_and_violates_exactly_what_was_predicted(objective: str, billing: str, start_s: float) -> None:
    world = scenario(objective, billing, start_s)
    policy = Clairvoyant(world.job())
    steps = list(replay(world, policy))
    assert score(steps, world.objective, world.price).cost == pytest.approx(policy.bound.cost)
    # The plan looks at the ends of ticks, and counts on workers from the first whole one on.
    missed = [_missed_at_the_end(step, world.objective) for step in steps]
    job = world.job()
    foreseen = unavoidable(cautious(job, task_of(job))).mean()
    # What is mended after a trial, where the bound is no whole number of ticks, may miss less than that.
    expected = pytest.approx(foreseen) if objective != "latency<=20s" else pytest.approx(foreseen, abs=2 / len(missed))
    assert sum(missed) / len(missed) == expected
    assert policy.bound.lower <= policy.bound.cost


def test_the_crowd_cannot_be_served_in_time_and_all_else_is() -> None:
    missed = unavoidable(task_of(scenario().job()))
    assert not missed[5:400].any()
    assert missed[405:420].all()


def batched(hours: int = 4, trigger_s: float = 10.0, **changes: Any) -> Scenario:
    """Minutes that need two to ten workers, and every hour a spike; 1.5 s before the first row of a batch."""
    minutes = np.arange(60 * hours)
    arrivals = np.random.default_rng(3).gamma(12.0, (6.0 + 3.0 * np.sin(minutes / 40.0)) * 3000.0 / 12.0)
    arrivals[30::60] *= 2.0
    changes = {"batch": BatchSpec(trigger_s=trigger_s), "workers_at_start": 14, **changes}
    load = Load.of(np.round(arrivals), 60.0)
    return replace(scenario(), load=load, capacity=linear(50.0, 1.5), limits=Limits(1, 32), **changes)


@pytest.mark.parametrize("trigger_s", [10.0, 30.0, 60.0])
def test_in_micro_batches_the_schedule_misses_nothing(trigger_s: float) -> None:
    world = batched(trigger_s=trigger_s)
    policy = Clairvoyant(world.job())
    run = replayed(world, policy)
    assert run.violation_share == 0.0
    assert run.cost == pytest.approx(policy.bound.cost)


def test_in_micro_batches_the_schedule_is_a_reference() -> None:
    world = batched()
    # With no slack and in batches of one trigger alone it was 35 % above the bound.
    assert Clairvoyant(world.job()).bound.gap <= 0.12


def test_a_trial_is_late_when_the_replay_is() -> None:
    world = batched(5, worker=WorkerSpec(start_s=(20.0, 90.0), speed_spread=0.3, speed_every_s=200.0))
    counts = [3, 3, 9, 2, 2, 7, *[4] * 294]
    oracle = world.job().oracle
    assert oracle is not None
    assert oracle.trial is not None
    trial, late_s = oracle.trial(), []
    for tick, workers in enumerate(counts):
        if tick == 20:
            # There and back again.
            saved = trial.saved()
            trial.step(1)
            trial.restored(saved)
        late_s.append(trial.step(workers))
    assert late_s == [step.seen.late_s for step in replay(world, Scripted(counts[1:]))]
    assert sum(late_s) > 60.0


def test_in_micro_batches_the_crowd_is_missed_and_the_bound_says_what_it_counts_on() -> None:
    world = replace(scenario(), batch=BatchSpec(trigger_s=10.0))
    policy, peak = Clairvoyant(world.job()), StaticPeak(world.job())
    run, most = replayed(world, policy), replayed(world, peak)
    assert policy.bound.lower <= run.cost == pytest.approx(policy.bound.cost)
    assert run.cost < most.cost
    assert run.violation_share <= most.violation_share + 0.01
    assert "counts on batches" in policy.bound.note


def test_workers_for_the_peak_cost_more_than_the_bound() -> None:
    world = scenario()
    bound = Clairvoyant(world.job()).bound
    assert bound.gap <= 0.03
    assert replayed(world, StaticPeak(world.job())).cost > 1.5 * bound.cost


def test_a_reason_says_how_many_workers_and_for_what() -> None:
    world = scenario()
    reasons = [step.decision.reason for step in replay(world, Clairvoyant(world.job()))]
    assert any("->" in reason and "/s will arrive at" in reason for reason in reasons)


def test_it_keeps_the_contract_of_policies() -> None:
    check_policy(Clairvoyant)


def test_a_live_job_has_no_future_to_know() -> None:
    with pytest.raises(BadInput, match="clairvoyant knows the future only in a replay"):
        Clairvoyant(replace(scenario().job(), oracle=None))


def test_doubling_the_price_doubles_bound_and_cost() -> None:
    job = scenario().job()
    once, twice = Clairvoyant(job).bound, Clairvoyant(replace(job, price=Price(0.20))).bound
    assert twice.lower == pytest.approx(2 * once.lower)
    assert twice.cost == pytest.approx(2 * once.cost)
    assert twice.workers == once.workers


@pytest.mark.parametrize("objective", ["latency<=30s", "latency<=75s", "latency<=100s"])
def test_a_bound_that_is_no_whole_number_of_ticks_is_not_missed_between_two(objective: str) -> None:
    world = scenario(objective)
    full = score(replay(world, Scripted([16] * 720)), world.objective, world.price)
    found = replayed(world, Clairvoyant(world.job()))
    # A tick that all workers miss in part may be missed whole: the crowd's first and last are 0.3 % of the day.
    assert found.violation_share < full.violation_share + 0.003
    assert Clairvoyant(world.job()).bound.lower <= found.cost < 0.8 * full.cost
