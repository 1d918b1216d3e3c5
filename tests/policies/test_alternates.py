"""Cheaper alternates as the default policy's last resort, and paper 3's plan where all workers serve all operators."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from penstock.core.allocation import Knob
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.loop import Step, control
from penstock.core.objective import Limits, Objective
from penstock.models.capacity import linear
from penstock.policies.alternates import ladder
from penstock.policies.registry import Named
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec
from penstock.sim.workloads import Load
from penstock.testing import check_policy

FLOW = Dataflow((Operator("count", alternates=(Alternate("all", 0.1), Alternate("hot", 0.02, value=0.5))),))
WAVE = 40 - 30 * np.cos(2 * np.pi * np.arange(120) / 120)  # an hour of half minutes, 10 to 70 events/s
LOOK_AHEAD = "plasticc:forecast=oracle,interval_s=600,plan_s=60,step_s=60,least=0.95"


def world(rates: np.ndarray, batch: bool = True) -> Scenario:
    """A worker does 10 events/s by `all`, 50 by `hot`; there may be five."""
    return Scenario(
        "wave",
        Load.of(rates * 30.0, 30.0),
        FLOW,
        linear(10.0),
        Limits(1, 5),
        objective=Objective(60.0),
        batch=BatchSpec(10.0) if batch else None,
        workers_at_start=2,
    )


def run(scenario: Scenario, name: str, guarded: bool = True) -> list[Step]:
    plant, job = SimulatedPlant(scenario), scenario.job()
    named = Named.parse(name)
    policy = named.build_safe(job, lambda _: False) if guarded else named.build(job)
    return list(control(plant, policy, job.limits, plant.ticks()))


def alternates(steps: list[Step]) -> list[str]:
    return [step.target.alternate.get("count", "all") for step in steps]


@pytest.mark.parametrize("batch", [True, False])
def test_a_cheaper_alternate_is_the_last_resort_and_is_undone_when_there_is_room(batch: bool) -> None:
    steps = run(world(WAVE, batch), "deadline")
    active = alternates(steps)
    # 70 events/s are more than 5 workers do by `all`; one switch there and one back, no flapping.
    assert sum(one != other for one, other in pairwise(active)) == 2
    first, last = active.index("hot"), len(active) - 1 - active[::-1].index("hot")
    for step in steps[first : last + 1]:
        assert len(step.target.workers) == 5
    assert len(steps[first].seen.running.workers) == 5
    assert "5 workers are too few: count by hot" in steps[first].decision.reason
    assert "degraded until there is room: count by hot" in steps[first + 1].decision.reason
    assert "there is room: count by all again" in steps[last + 1].decision.reason
    # Where it comes back, five workers do what comes by the better one.
    assert steps[last + 1].seen.input_rate * 1.2 <= 50
    assert max(step.seen.latency_s or 0.0 for step in steps) <= 60


def test_no_worker_is_replaced_by_another_while_a_cheaper_alternate_runs() -> None:
    # Workers take a minute: those that were asked for anew at each tick never came, 383 in two hours.
    slow = world(WAVE)
    slow = replace(slow, worker=replace(slow.worker, start_s=60.0))
    steps = run(slow, "deadline")
    degraded = [step for step in steps if step.target.alternate.get("count") == "hot"]
    assert degraded
    assert len({tuple(worker.name for worker in step.target.workers) for step in degraded}) == 1


def test_the_better_alternate_comes_back_to_all_workers() -> None:
    # By `hot` one worker does what five do by `all`: cut with the switch, events waited for 104 s.
    slow = world(np.concatenate([WAVE, WAVE]))
    slow = replace(slow, worker=replace(slow.worker, start_s=60.0))
    steps = run(slow, "deadline")
    active = alternates(steps)
    back = [place for place, (one, other) in enumerate(pairwise(active)) if (one, other) == ("hot", "all")]
    assert len(back) == 2
    for place in back:
        assert len(steps[place + 1].target.workers) == 5
        # Given up one after the other, and none asked for again.
        counts = [len(step.target.workers) for step in steps[place + 1 : place + 10]]
        assert counts == sorted(counts, reverse=True)
    assert max(step.seen.latency_s or 0.0 for step in steps[back[0] : back[0] + 20]) <= 60


def test_without_the_last_resort_the_same_load_misses_its_objective() -> None:
    steps = run(world(WAVE), "deadline:without=alternates")
    assert {*alternates(steps)} == {"all"}
    assert max(step.seen.latency_s or 0.0 for step in steps) > 60


def test_where_workers_suffice_nothing_is_degraded() -> None:
    assert {*alternates(run(world(WAVE / 2), "deadline"))} == {"all"}


def test_a_job_without_alternates_is_decided_as_before() -> None:
    plain = replace(world(WAVE / 2), dataflow=Dataflow((Operator("count", 0.1),)))
    assert Knob.ALTERNATE not in Named.parse("deadline").build(plain.job()).needs
    assert all(not step.target.alternate for step in run(plain, "deadline"))


def test_rungs_lose_the_least_value_for_what_they_save_first() -> None:
    dear = Operator("a", alternates=(Alternate("full", 1.0), Alternate("half", 0.5, value=0.9)))
    poor = Operator("b", after=("a",), alternates=(Alternate("full", 1.0), Alternate("tiny", 0.4, value=0.2)))
    rungs = [dict(each) for each in ladder(Dataflow((dear, poor)))]
    # Half a core-second for a tenth of a value, against 0.6 for 0.8.
    full = {"a": "full", "b": "full"}
    assert rungs == [full, full | {"a": "half"}, {"a": "half", "b": "tiny"}]


def test_the_plan_asks_for_workers_before_the_rate_rises() -> None:
    jump = np.repeat([10.0, 40.0], 40)
    # A σ so small that value comes first: workers are asked for, and nothing is degraded.
    ahead = run(world(jump), f"{LOOK_AHEAD},sigma=0.01")
    reactive = run(world(jump), "plasticc:forecast=caf,interval_s=120,plan_s=60,step_s=60,least=0.95,sigma=0.01")

    def worst(steps: list[Step]) -> float:
        return max(step.seen.latency_s or 0.0 for step in steps)

    assert len(next(step for step in ahead if step.seen.time_s >= 1200.0).target.workers) >= 4
    assert worst(ahead) < worst(reactive)


def test_where_all_workers_are_too_few_the_plan_is_degraded_and_says_so() -> None:
    steps = run(world(np.full(40, 200.0)), LOOK_AHEAD)
    assert steps[-1].target.alternate == {"count": "hot"}
    assert "degraded: count by hot" in steps[-1].decision.reason
    steps = run(world(np.full(40, 400.0)), LOOK_AHEAD)
    assert len(steps[-1].target.workers) == 5
    assert "no plan keeps the throughput" in steps[-1].decision.reason
    assert "degraded: count by hot" in steps[-1].decision.reason


def test_without_placement_and_without_alternates_it_plans_workers() -> None:
    check_policy(lambda job: Named.parse("plasticc:interval_s=600,plan_s=60,step_s=60").build(job))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plasticc:interval_s=90,step_s=60", "it must be a multiple of 60 s"),
        ("plasticc:interval_s=30,step_s=60", "interval_s is 30: it must be at least 60"),
        ("plasticc:season_s=10,step_s=60", "season_s is 10"),
        ("plasticc:forecast=stars", "unknown forecast 'stars'"),
        ("deadline:forecast=stars", "unknown deadline:forecast 'stars'"),
        ("deadline:without=stars", "its parts are"),
    ],
)
def test_what_cannot_be_planned_is_one_line(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Named.parse(name).build(world(WAVE).job())


def test_a_forecast_that_ends_before_a_worker_has_come_is_refused() -> None:
    slow = world(WAVE)
    slow = replace(slow, worker=replace(slow.worker, start_s=600.0))
    with pytest.raises(BadInput, match="a worker starts in 600 s, after the forecast's end; give at least 660"):
        Named.parse("plasticc:forecast=oracle,interval_s=300,plan_s=60,step_s=60").build(slow.job())


def test_a_circle_of_operators_and_a_negative_selectivity_are_refused() -> None:
    with pytest.raises(BadInput, match="operators feed each other in a circle"):
        Dataflow((Operator("a", 0.1, after=("b",)), Operator("b", 0.1, after=("a",))))
    with pytest.raises(BadInput, match=r"alternate 'hot': selectivity is -1: it must be from 0 to"):
        Alternate("hot", 0.1, selectivity=-1.0)


@pytest.mark.parametrize("name", ["caf", "waaf", "seasonal-naive", "holt-winters"])
def test_the_default_policy_takes_any_forecaster_and_decides_alike_when_it_sees_alike(name: str) -> None:
    check_policy(lambda job: Named.parse(f"deadline:forecast={name}").build(job))
