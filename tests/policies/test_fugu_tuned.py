"""FUGU on a simulated plant: placing, moving, tuning itself; and the learner beside it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective
from penstock.models.capacity import linear
from penstock.policies.fugu_search import WHOLE, best, rows, settings_at, spans
from penstock.policies.fugu_settings import Settings
from penstock.policies.fugu_tuned import TunedFugu
from penstock.policies.fugu_window import Window
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.workloads import Load

MOVES = "pause_s=1,move_mb_s=10"


def world(hosts: list[float], queries: int = 8, **changes: Any) -> Scenario:
    """Chains of three operators; the load is given in hosts of two cores, every 10 s."""
    operators = []
    for number in range(queries):
        first, then = f"filter{number}", f"count{number}"
        operators += [Operator(first, 0.001), Operator(then, 0.003, state_mb=5.0 * number, after=(first,))]
    flow = Dataflow(tuple(operators), service_s=0.05)
    arrivals = np.array(hosts) * 2.0 / 0.004 * 10.0
    known: dict[str, Any] = {
        "name": "placed",
        "load": Load.of(arrivals, 10.0),
        "dataflow": flow,
        "capacity": linear(500.0),
        "limits": Limits(1, 8),
        "objective": Objective(latency_s=3.0),
        "worker": WorkerSpec(cores=2.0, start_s=5.0),
        "pause": PauseSpec(1.0, 10.0),
        "placed": PlacedSpec(),
        "workers_at_start": 2,
    }
    return Scenario(**(known | changes))


def ran(scenario: Scenario, name: str) -> list[Step]:
    return list(replay(scenario, Named.parse(name).build(scenario.job())))


def hosts_of(steps: list[Step]) -> list[int]:
    return [len(step.target.workers) for step in steps]


def test_hosts_follow_a_load_that_rises_and_falls_and_nothing_is_lost() -> None:
    scenario = world([1.0] * 20 + [3.0] * 40 + [0.5] * 80)
    steps = ran(scenario, f"fugu:{MOVES},lower=0.4,lower_ticks=5")
    hosts = hosts_of(steps)
    assert hosts[15] == 2
    # Three hosts' load within 80 % each, in whole operators of a sixteenth: at least four hosts.
    assert 4 <= hosts[55] <= 6
    assert hosts[-1] == 1
    last = steps[-1].seen
    assert last.arrived == pytest.approx(last.processed)


def test_every_operator_has_one_place_that_is_rented_at_every_step() -> None:
    scenario = world([0.8] * 10 + [3.0] * 30 + [0.5] * 60)
    for step in ran(scenario, f"fugu:{MOVES}"):
        rented = {worker.name for worker in step.target.workers}
        assert set(step.target.instances) == set(scenario.dataflow.order)
        assert all(len(places) == 1 and set(places) <= rented for places in step.target.instances.values())


def test_an_operator_larger_than_any_host_is_placed_and_said_to_have_no_room() -> None:
    scenario = world([2.0] * 10, queries=1, limits=Limits(1, 3))
    steps = ran(scenario, f"fugu:{MOVES}")
    assert set(steps[-1].target.instances) == {"filter0", "count0"}
    assert len({step.target.instances["count0"] for step in steps}) == 1


def test_the_safety_rules_of_a_live_run_stand_around_it_too() -> None:
    scenario = world([0.8] * 10 + [3.0] * 30 + [0.5] * 60)
    named = Named.parse(f"fugu:{MOVES}")
    guarded = list(replay(scenario, named.build(scenario.job(), named.rules(scenario.job()))))
    assert max(hosts_of(guarded)) >= 4


def test_a_job_with_two_kinds_of_workers_is_refused() -> None:
    with pytest.raises(BadInput, match="fugu rents one kind of worker: the job has worker, large"):
        Named.parse("fugu").build(world([1.0], kinds=(WorkerSpec("large", cores=4.0),)).job())


def test_tuning_adopts_what_is_cheaper_when_the_load_changes_and_the_journal_has_it() -> None:
    rng = np.random.default_rng(1)
    levels = np.repeat([1.0, 3.0, 0.6, 2.5, 0.6], 40) * rng.uniform(0.95, 1.05, 200)
    steps = ran(world(levels.tolist()), f"fugu-tuned:{MOVES},budget=100")
    tuned = [step for step in steps if "tuned on" in step.decision.reason]
    assert tuned
    signals = tuned[0].decision.signals
    assert signals["adopted"] == 1.0
    assert f"upper={signals['upper']:g}," in tuned[0].decision.reason
    assert {"lower", "upper_ticks", "lower_ticks", "grace_ticks", "packing"} <= set(signals)


def test_a_load_that_does_not_change_is_not_searched() -> None:
    steps = ran(world([1.0] * 60), f"fugu-tuned:{MOVES}")
    assert steps[-1].decision.signals["searches"] == 0.0


def test_two_replays_of_one_tuner_are_the_same() -> None:
    scenario = world([1.0] * 20 + [3.0] * 30 + [0.8] * 30)
    first, again = (ran(scenario, f"fugu-tuned:{MOVES},budget=60") for _ in range(2))
    assert [step.decision for step in first] == [step.decision for step in again]


def test_violations_come_first_and_then_cost() -> None:
    job = world([1.0]).job()
    window = Window.figure_3()
    first, printed = TunedFugu(job), TunedFugu(job, goal="printed")
    calm, quick = window.plain(Settings(0.89, 0.0, 4)), window.plain(Settings(0.8, 0.3, 1, 1, 1))
    late = replace(calm, violations=1)
    assert first._value(late, window.most) > first._value(quick, window.most)
    assert printed._value(late, window.most) == (window.most + 1,)
    assert printed._value(quick, window.most) == (10,)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fugu-tuned:goal=cheap", "printed, first"),
        ("fugu-tuned:budget=0", "budget is 0"),
        ("fugu-tuned:shortest=1", "shortest is 1"),
        ("fugu-rl:target=0", "target is 0"),
        ("fugu-rl:discount=1", "discount is 1"),
    ],
)
def test_bad_parameters_are_one_line(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Named.parse(name).build(world([1.0]).job())


def test_the_learner_keeps_the_limits_and_every_operator_placed() -> None:
    scenario = world([1.0] * 40 + [4.0] * 60 + [0.6] * 60)
    steps = ran(scenario, "fugu-rl")
    assert min(hosts_of(steps)) >= 1
    assert max(hosts_of(steps)) <= 8
    assert hosts_of(steps)[90] > hosts_of(steps)[35]
    assert all(set(step.target.instances) == set(scenario.dataflow.order) for step in steps)


class TestTheWholeSpace:
    def test_rows_are_those_of_the_configurations_in_order(self) -> None:
        for number in (0, 1, 7, 8, 4711, WHOLE - 1):
            assert rows(number, number + 1).tolist()[0] == list(settings_at(number).row())

    def test_its_parts_cover_it_once(self) -> None:
        parts = spans(7)
        assert parts[0][0] == 0
        assert parts[-1][1] == WHOLE
        assert all(before[1] == after[0] for before, after in pairwise(parts))

    def test_the_best_of_its_parts_is_the_best_of_all(self) -> None:
        window = replace(Window.figure_3(), bound_ms=3000).arrays()
        assert min(best(window, *part) for part in spans(5, 60_000)) == best(window, 0, 60_000)
