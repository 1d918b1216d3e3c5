"""The tuner around any policy: it searches when the load changes, adopts what is cheaper, and decides alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.core.score import Score, score
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.workloads import Load


def waves(periods: int = 4) -> Scenario:
    """Four hours up and down a period, from 20 to 200 events a second on workers of 10."""
    at = np.arange(periods * 240)
    rates = 110.0 - 90.0 * np.cos(2 * np.pi * at / 240)
    return replace(Scenario.constant(1.0, 10.0, workers_at_start=3), load=Load.of(rates * 60.0, 60.0))


def steps_of(name: str, world: Scenario) -> list[Step]:
    named, job = Named.parse(name), world.job()
    return list(replay(world, named.build(job, named.rules(job))))


def scored(steps: list[Step], world: Scenario) -> Score:
    return score(steps, world.objective, world.price)


def test_thresholds_that_waste_workers_are_replaced_by_cheaper_ones_that_miss_no_more() -> None:
    world = waves()
    plain, tuned = steps_of("threshold", world), steps_of("tuned:threshold:budget=20,shortest=60", world)
    assert tuned[-1].decision.signals["adopted"] >= 1
    assert any("; tuned on " in step.decision.reason for step in tuned)
    # Within the violations allowed, 0.1 % of a window each.
    assert scored(tuned, world).cost < scored(plain, world).cost
    assert scored(tuned, world).violation_share <= scored(plain, world).violation_share + 0.01


def test_it_decides_alike_each_time() -> None:
    world = waves(2)
    first, again = (steps_of("tuned:threshold:budget=8", world) for _ in range(2))
    assert [step.target for step in first] == [step.target for step in again]


def test_adopted_parameters_are_in_the_journal() -> None:
    last = steps_of("tuned:threshold:budget=20", waves())[-1].decision.signals
    assert {"upper adopted", "lower adopted", "searches", "adopted"} <= set(last)


def test_a_load_that_does_not_change_is_not_searched() -> None:
    world = replace(waves(), load=Load.of(np.full(300, 3000.0), 60.0))
    assert steps_of("tuned:threshold", world)[-1].decision.signals["searches"] == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tuned", "name what it tunes, as in tuned:threshold"),
        ("tuned:budget=3", "name what it tunes"),
        ("tuned:treshold", "did you mean 'threshold'?"),
        ("tuned:static", "it has nothing to tune"),
        ("tuned:threshold:upper=0.5", "unknown parameter of policy"),
        ("tuned:threshold:budget=0", "tuned:budget is 0"),
        ("tuned:threshold:shortest=300", "tuned:shortest is 300: it must be from 10 to 240"),
        ("tuned:fugu", "take fugu-tuned"),
    ],
)
def test_bad_input_is_one_line(name: str, says: str) -> None:
    world = waves(1)
    with pytest.raises(BadInput, match=says.replace("?", r"\?")):
        Named.parse(name).build(world.job())
