"""The look-ahead policy on simulated plants (paper 3): launches ahead, homes for all, hours, restarts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.score import Scorer
from penstock.models.capacity import linear
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PlacedSpec, WorkerSpec
from penstock.sim.variability import EC2_CORES, GeneratedSpeeds
from penstock.sim.workloads import Load

FLOW = Dataflow(
    (
        Operator("parse", 0.2),
        Operator("count", after=("parse",), alternates=(Alternate("exact", 0.5), Alternate("rough", 0.2, value=0.7))),
    )
)


def world(rates: list[float], start_s: float = 60.0, counts: bool = True) -> Scenario:
    """A rate for each five minutes."""
    load = Load.of(np.repeat(rates, 5) * 60.0, 60.0)
    return Scenario(
        "w",
        load,
        FLOW,
        linear(1.0),
        Limits(1, 40),
        objective=Objective(throughput=0.8),
        price=Price(0.1, "hour"),
        worker=WorkerSpec("small", cores=2.0, start_s=start_s),
        kinds=(WorkerSpec("large", cores=4.0, speed=2.0, per_hour=0.35, start_s=start_s),),
        placed=PlacedSpec(own_core=True, counts=counts),
        workers_at_start=2,
    )


def run(scenario: Scenario, name: str = "plasticc:forecast=oracle", rules: bool = False) -> list[Step]:
    named, job = Named.parse(name), scenario.job()
    return list(replay(scenario, named.build(job, named.rules(job) if rules else {})))


def relatives(steps: list[Step]) -> list[float]:
    """Ω of each five minutes."""
    ends = [(0.0, 0.0), *((step.seen.delivered, step.seen.deliverable) for step in steps[4::5])]
    return [(b[0] - a[0]) / (b[1] - a[1]) for a, b in itertools.pairwise(ends)]


def paid(steps: list[Step], scenario: Scenario) -> float:
    scorer = Scorer(scenario.objective, scenario.price, scenario.job().kinds)
    for step in steps:
        scorer.add(step)
    return scorer.result().cost


JUMP = [2.0] * 6 + [12.0] * 6


def test_workers_are_launched_before_the_rate_rises_and_reactive_ones_after() -> None:
    ahead, reactive = run(world(JUMP)), run(world(JUMP), "plasticc:forecast=caf,interval_s=300")
    first = next(step for step in ahead if len(step.target.workers) > 2 and step.seen.time_s > 600)
    # The rise is at 1800 s; workers take a minute to come.
    assert first.seen.time_s <= 1740
    assert relatives(ahead)[6] >= 0.8
    assert relatives(reactive)[6] < 0.6
    assert relatives(reactive)[-1] >= 0.79


@pytest.mark.parametrize("counts", [True, False])
def test_every_operator_has_a_home_on_workers_that_run_in_both_engines(counts: bool) -> None:
    scenario = world(JUMP, counts=counts)
    for step in run(scenario, rules=True):
        running = {worker.name for worker in step.seen.running.workers}
        assert set(step.target.instances) == {"parse", "count"}
        assert all(where and set(where) <= running for where in step.target.instances.values())
        assert "not applied" not in step.decision.reason


def test_a_fall_gives_workers_up_at_the_end_of_their_paid_hour_and_not_before() -> None:
    steps = run(world([12.0] * 6 + [2.0] * 20))
    stops = [
        (before, after)
        for before, after in itertools.pairwise(steps)
        if {w.name for w in before.target.workers} - {w.name for w in after.target.workers}
    ]
    assert stops
    for before, after in stops:
        gone = {w.name for w in before.target.workers} - {w.name for w in after.target.workers}
        for name in gone:
            paid_s = after.seen.time_s - after.seen.workers[name].paid_since_s
            # Within a minute of a whole hour.
            assert 0 <= -paid_s % 3600 < 60


def test_where_too_few_workers_may_be_rented_the_cheap_alternate_runs_and_it_is_said() -> None:
    steps = run(replace(world([30.0] * 6), limits=Limits(1, 3)))
    assert steps[-1].target.alternate == {"count": "rough"}
    assert "no plan was found that keeps the throughput" in steps[-1].decision.reason
    assert "1 operators degraded" in steps[-1].decision.reason


@pytest.mark.parametrize("planner", ["greedy", "joint", "two-stage"])
def test_fewer_cores_than_operators_are_shared_and_what_comes_of_it_is_foretold(planner: str) -> None:
    # Two cores for four operators; two of them are sources.
    flow = Dataflow((*FLOW.operators, Operator("other", 0.2), Operator("store", 0.2, after=("other",))))
    scenario = replace(world([4.0] * 6), dataflow=flow, limits=Limits(1, 1), workers_at_start=1, kinds=())
    steps = run(scenario, f"plasticc:forecast=oracle,planner={planner}")
    assert all(step.target.instances["store"] for step in steps)
    assert "4 instances on 1 workers, 1 operators degraded" in steps[0].decision.reason
    foretold = [step.decision.signals["throughput ahead"] for step in steps]
    last = steps[-1].seen
    assert last.delivered / last.deliverable == pytest.approx(foretold[-1], abs=0.05)


def test_an_interval_of_one_step_with_the_last_values_is_the_reactive_scheduler() -> None:
    scenario = replace(world([2.0, 6.0, 4.0, 9.0, 3.0, 7.0]), speeds=GeneratedSpeeds(EC2_CORES, 1))
    reactive = run(scenario, "plasticc:forecast=caf,interval_s=300")
    # It plans when the throughput has left its band, and never else.
    planned = {step.seen.time_s for step in reactive if "has left its band" in step.decision.reason}
    off = {300.0 * (n + 1) for n, each in enumerate(relatives(reactive)) if not 0.8 <= each <= 0.9}
    assert planned
    assert planned == off
    # What it plans, it plans for now: one stage, and launches at once.
    assert not any("to launch" in step.decision.reason for step in reactive if step.seen.time_s not in planned | {60.0})


def test_the_joint_planner_keeps_the_throughput_of_every_step_for_less_than_the_walk() -> None:
    scenario = world(JUMP * 2)
    walked, joint = run(scenario), run(scenario, "plasticc:forecast=oracle,planner=joint")
    assert min(relatives(joint)) >= 0.8
    # The first workers do for the peaks with the cheap alternate; the walk rents a large one.
    assert paid(joint, scenario) < paid(walked, scenario)


def test_the_joint_planner_launches_before_the_rate_rises() -> None:
    # At 2100 s, where a stage of two steps begins.
    steps = run(world([2.0] * 7 + [40.0] * 6), "plasticc:forecast=oracle,planner=joint")
    more = next(step for step in steps if len(step.target.workers) > 2)
    assert more.seen.time_s == 2040
    # Over the interval the throughput is kept, not in each step of it; whoever reacts serves a tenth in this one.
    assert relatives(steps)[7] > 0.7
    assert relatives(run(world([2.0] * 7 + [40.0] * 6), "plasticc:forecast=caf,interval_s=300"))[7] < 0.2


@pytest.mark.parametrize("planner", ["greedy", "joint"])
def test_a_worker_whose_hour_ends_with_the_tick_of_a_plan_is_given_up_then(planner: str) -> None:
    # Whoever reacts plans at the ends of steps, launches there, and so has hours that end there.
    scenario = world([6.0] * 12 + [1.0] * 24)
    steps = run(scenario, f"plasticc:forecast=caf,interval_s=300,planner={planner}")
    # Taken for paid for another hour, one of them cost 0.1 more.
    assert paid(steps, scenario) == pytest.approx(0.5)


def test_a_restart_goes_on_with_what_is_placed() -> None:
    scenario = world([6.0] * 6)
    steps = run(scenario)
    policy = Named.parse("plasticc:forecast=caf").build(scenario.job(), {})
    decision = policy.decide(steps[-1].seen)
    assert decision.reason.startswith("a restart")
    assert {w.name for w in decision.target.workers} >= {
        name for where in steps[-1].seen.target.instances.values() for name in where
    }


def test_a_real_forecaster_needs_no_oracle() -> None:
    scenario = world([4.0] * 6)
    job = replace(scenario.job(), oracle=None)
    steps = list(replay(scenario, Named.parse("plasticc").build(job, {})))
    assert steps[-1].seen.delivered / steps[-1].seen.deliverable > 0.75
    with pytest.raises(BadInput, match="only in a replay"):
        Named.parse("plasticc:forecast=oracle").build(job, {})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plasticc:forecast=tea-leaves", "unknown forecast"),
        ("plasticc:planner=magic", "unknown planner"),
        ("plasticc:forecast=oracle,interval_s=700", "multiple of 300"),
        ("plasticc:step_s=90", "multiple of 60"),
        ("plasticc:interval_s=3e8", "from 300 to 300000"),
        ("plasticc:least=1.5", "from 0.01 to 1"),
        ("plasticc:charge=day", "unknown charge"),
        ("plasticc:spread=wide", "unknown spread"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Named.parse(name).build(world([1.0]).job(), {})


def test_a_forecast_that_ends_before_a_worker_comes_is_refused() -> None:
    job = world([1.0], start_s=700.0).job()
    with pytest.raises(BadInput, match="give at least 900"):
        Named.parse("plasticc:forecast=oracle,interval_s=600").build(job, {})
    with pytest.raises(BadInput, match="the forecast ends before the next plan; give at least plan_s, 900"):
        Named.parse("plasticc:forecast=oracle,interval_s=600,plan_s=900").build(world([1.0]).job(), {})
    # One value for all steps can be held for as long as it takes.
    Named.parse("plasticc:forecast=caf,interval_s=300").build(job, {})


SCENARIO = """
duration_s = 7200
objective = "throughput>=0.8"
[price]
per_hour = 0.1
billing = "hour"
[limits]
workers_min = 1
workers_max = 30
[worker]
name = "small"
cores = 2
start_s = 60
[[kinds]]
name = "large"
cores = 4
speed = 2.0
per_hour = 0.35
start_s = 60
[placed]
own_core = true
[variability]
dips = 0.2
leaves = 0.5
slow = [0.5, 0.7]
rated = [0.9, 1.0]
[[operators]]
name = "parse"
cost_s = 0.2
[[operators]]
name = "count"
after = ["parse"]
[[operators.alternates]]
name = "exact"
cost_s = 0.5
[[operators.alternates]]
name = "rough"
cost_s = 0.2
value = 0.7
[[workload]]
shape = "sine"
low = 2
high = 20
period_s = 7200
"""


def test_it_is_replayed_on_a_scenario_file_with_kinds_and_alternates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "world.toml"
    path.write_text(SCENARIO)
    words = ["replay", "--scenario", str(path), "--policy", "plasticc", "--policy", "plasticc:forecast=oracle"]
    assert main([*words, "--output", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert main([*words, "--journal", str(tmp_path / "journals"), "--output", "json"]) == 0
    assert main(["explain", str(next((tmp_path / "journals").iterdir()))]) == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "parse"', 'name = "parse"\nafter = ["count"]', "circle"),
        ('name = "rough"', 'name = "rough"\nselectivity = -1', "selectivity is -1"),
        ('after = ["parse"]', 'after = ["parse", "parse"]', "'after' names an operator twice"),
    ],
)
def test_a_circle_and_a_negative_selectivity_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    path = tmp_path / "world.toml"
    path.write_text(SCENARIO.replace(old, new))
    assert main(["replay", "--scenario", str(path), "--policy", "plasticc"]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
