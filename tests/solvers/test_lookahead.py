"""Algorithm 1 of paper 3, as corrected: what it plans, what it never does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.solvers.initial import deploy
from penstock.solvers.layout import Machine
from penstock.solvers.lookahead import Offer, Planned, Rules, look_ahead
from penstock.solvers.two_stage import two_stage
from tests.solvers.made import STEP_S, layout

EXACT, ROUGH = Alternate("exact", 1.0), Alternate("rough", 0.5, value=0.9)
ONE = Dataflow((Operator("only", 1.0),))
TWO = Dataflow((Operator("only", alternates=(EXACT, ROUGH)),))
SMALL = Offer("small", cores=1, speed=1.0, price=0.1, start_s=60.0)
RULES = Rules(0.8, 0.9, sigma=0.01, period_s=43200.0, offers=(SMALL,), machines_max=50)


def machine(name: str, speeds: list[float], cores: int = 1, ends: float = np.inf) -> Machine:
    return Machine(name, "small", cores, np.array(speeds) * STEP_S, 0.1, ends)


def cores(planned: Planned, step: int, operator: str = "only") -> int:
    stage = [each for each in planned.stages if each.step <= step][-1]
    return len(stage.instances[operator])


def test_nothing_is_changed_where_the_interval_keeps_its_band() -> None:
    found = look_ahead(layout(ONE, [1.2] * 3, [machine("w1", [1.0] * 3)], [[0]]), RULES)
    # 1 of 1.2 a second is 0.83.
    assert found.relative == pytest.approx(1 / 1.2)
    assert [stage.step for stage in found.stages] == [0]
    assert found.launches == ()


def test_a_worker_is_launched_for_the_step_in_which_the_throughput_would_leave_its_band() -> None:
    found = look_ahead(layout(ONE, [1.2, 1.2, 2.4, 2.4], [machine("w1", [1.0] * 4)], [[0]]), RULES)
    # Ω up to each step: .83, .83, 3/4.8 = .63, .56: the second is the last that keeps it; the action is at the third.
    assert [each.launch for each in found.launches] == [2]
    assert [cores(found, step) for step in range(4)] == [1, 1, 2, 2]
    assert found.feasible


def test_a_dip_of_one_step_that_the_interval_makes_up_for_launches_nothing() -> None:
    # At 0.6 for one step the reactive planner, which sees no further, would rent.
    speeds = [0.6, 1.2, 1.2, 1.2]
    far = look_ahead(layout(ONE, [1.2] * 4, [machine("w1", speeds)], [[0]]), replace(RULES, high=1.0))
    near = look_ahead(layout(ONE, [1.2], [machine("w1", speeds[:1])], [[0]]), replace(RULES, high=1.0))
    assert (len(far.launches), len(near.launches)) == (0, 1)


def test_a_free_core_costs_nothing_and_is_taken_first() -> None:
    found = look_ahead(layout(TWO, [2.0] * 2, [machine("w1", [1.0] * 2, cores=2)], [[0]]), RULES)
    assert found.launches == ()
    assert cores(found, 0) == 2
    assert found.stages[-1].alternate == {"only": "exact"}


def test_a_cheaper_alternate_is_taken_where_its_value_is_worth_less_than_a_worker() -> None:
    world = layout(TWO, [2.0] * 2, [machine("w1", [1.0] * 2)], [[0]])
    # A worker: σ · 0.1. The alternate: 0.1 · 3600 s / 43200 s = 0.0083.
    dear = look_ahead(world, replace(RULES, sigma=0.1))
    assert (dear.launches, dear.stages[-1].alternate) == ((), {"only": "rough"})
    world = layout(TWO, [2.0] * 2, [machine("w1", [1.0] * 2)], [[0]])
    cheap = look_ahead(world, replace(RULES, sigma=0.05))
    assert (len(cheap.launches), cheap.stages[-1].alternate) == (1, {"only": "exact"})


def test_by_interval_a_value_counts_for_the_rest_of_it_only() -> None:
    world = layout(TWO, [2.0] * 2, [machine("w1", [1.0] * 2)], [[0]])
    # 0.1 · 600 s / 43200 s = 0.0014 is less than 0.05 · 0.1.
    found = look_ahead(world, replace(RULES, sigma=0.05, by_interval=True))
    assert found.stages[-1].alternate == {"only": "rough"}


def test_too_much_is_given_up_and_a_valuable_alternate_taken_back() -> None:
    world = layout(TWO, [1.0] * 2, [machine("w1", [1.0] * 2, cores=4)], [[0] * 4])
    world.switch(0, 1)
    found = look_ahead(world, RULES)
    assert found.stages[-1].alternate == {"only": "exact"}
    # One core does all of 1 a second.
    assert cores(found, 1) == 1


def test_a_machine_whose_paid_hour_ends_is_emptied_where_another_has_room() -> None:
    machines = [machine("w1", [1.0] * 3, cores=2), machine("w2", [1.0] * 3, ends=1.5)]
    found = look_ahead(layout(ONE, [2.3] * 3, machines, [[0, 1]]), RULES)
    assert found.stages[0].instances["only"] == ("w1", "w2")
    assert found.stages[-1].step == 1
    assert found.stages[-1].instances["only"] == ("w1", "w1")


def test_what_cannot_be_kept_is_a_degraded_plan_that_says_so() -> None:
    found = look_ahead(layout(TWO, [9.0] * 2, [machine("w1", [1.0] * 2)], [[0]]), replace(RULES, machines_max=1))
    assert not found.feasible
    # The cheapest alternate on what there is: 2 of 9 a second.
    assert found.stages[-1].alternate == {"only": "rough"}
    assert found.relative == pytest.approx(2 / 9)


def test_a_worker_that_comes_after_the_interval_is_not_asked_for() -> None:
    late = replace(SMALL, start_s=700.0)
    found = look_ahead(layout(ONE, [3.0] * 2, [machine("w1", [1.0] * 2)], [[0]]), replace(RULES, offers=(late,)))
    assert (found.launches, found.feasible) == ((), False)


def test_the_kind_whose_power_costs_least_is_rented() -> None:
    offers = (SMALL, Offer("large", cores=4, speed=2.0, price=0.5, start_s=60.0))
    found = look_ahead(layout(ONE, [2.0], [machine("w1", [1.0])], [[0]]), replace(RULES, offers=offers))
    assert [each.kind for each in found.launches] == ["large"]


def test_the_first_deployment_gives_every_operator_a_home() -> None:
    flow = Dataflow((Operator("a", 0.5), Operator("b", 0.5, after=("a",)), Operator("idle", 0.1)))
    empty = layout(flow, [2.0], [], [[], [], []])
    found = deploy(empty, RULES)
    assert all(found.stages[-1].instances.values())
    assert found.feasible


def test_an_operator_that_the_throughput_can_do_without_has_a_home_from_the_first_step_on() -> None:
    # `rare` brings one message in a hundred: at first nothing is planned for it, and the rise is at the third step.
    flow = Dataflow((Operator("common", 0.5), Operator("rare", 0.5)))
    world = layout(flow, [2.0, 2.0, 8.0], [], [[], []])
    world.known.arriving[:, 1] /= 100
    found = deploy(world, RULES)
    assert all(all(stage.instances.values()) for stage in found.stages)
    assert found.feasible


def test_operators_share_cores_where_there_are_too_few_and_the_throughput_ahead_says_so() -> None:
    flow = Dataflow((Operator("a", 0.5), Operator("b", 0.5, after=("a",)), Operator("c", 0.5, after=("b",))))
    world = layout(flow, [2.0], [machine("w1", [1.0], cores=2)], [[], [], []])
    found = deploy(world, replace(RULES, machines_max=1))
    assert found.stages[0].instances == {"a": ("w1",), "b": ("w1",), "c": ("w1",)}
    # Each has two thirds of a core: 4/3 of 2 a second.
    assert found.relative == pytest.approx(2 / 3)
    assert not found.feasible


def test_a_first_deployment_that_cannot_be_kept_is_degraded_at_once() -> None:
    world = layout(TWO, [9.0] * 2, [machine("w1", [1.0] * 2)], [[]])
    found = deploy(world, replace(RULES, machines_max=1))
    assert (found.feasible, found.stages[-1].alternate) == (False, {"only": "rough"})


def test_two_stages_choose_alternates_for_what_there_is_and_then_resources() -> None:
    world = layout(TWO, [2.0] * 2, [machine("w1", [1.0] * 2, cores=2)], [[0]])
    found = two_stage(world, RULES)
    # 2 a second at 0.8 take 1.6 cores exact, 0.8 rough: only the second fits one core, though another is free.
    assert found.stages[-1].alternate == {"only": "rough"}
    assert cores(found, 0) == 1


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_no_machine_is_ever_overfull_and_every_plan_ends(seed: int, operators: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [Alternate(f"a{n}", float(rng.uniform(0.1, 1)), float(rng.uniform(0.5, 2)), 1 - 0.1 * n) for n in range(3)]
    flow = Dataflow(
        tuple(Operator(f"o{n}", after=(f"o{n - 1}",) if n else (), alternates=tuple(kinds)) for n in range(operators))
    )
    machines = [machine(f"w{n}", rng.uniform(0.3, 1, steps).tolist(), cores=2, ends=float(n)) for n in range(operators)]
    world = layout(flow, rng.uniform(0, 9, steps).tolist(), machines, [[n] for n in range(operators)])
    found = look_ahead(world, replace(RULES, sigma=float(rng.uniform(0, 1)), machines_max=12))
    sizes = {each.name: each.cores for each in world.machines}
    for stage in found.stages:
        placed = [name for where in stage.instances.values() for name in where]
        assert all(placed.count(name) <= sizes[name] for name in set(placed))
        assert all(stage.instances.values())
    assert len(world.machines) <= 12
